"""What players of the contest see: slots, texts, features, the state."""

import numpy as np
import pytest

from llm_coop_envs import kbc_v0


def act_all(env, choice, message="hello"):
    value = np.array([choice], dtype=np.float64) if env.settings.choices == "real" else choice
    return env.step({agent: {"choice": value, "message": message} for agent in env.agents})


def test_sessions_without_rounds_or_groups_have_none_in_the_slots():
    slots = kbc_v0.parallel_env(players=2).reset(seed=0)[1]["player_1"]["slots"]
    assert (slots.round, slots.group, slots.groups, slots.turn, slots.turns) == (0, 0, (), 0, 0)
    talking = kbc_v0.parallel_env(preset="shall_we_talk", players=2)
    slots_by_round = [talking.reset(seed=0)[1]["player_1"]["slots"]]
    while talking.agents:
        slots_by_round.append(act_all(talking, 5)[4]["player_1"]["slots"])
    assert [(slots.turn, slots.turns) for slots in slots_by_round] == [(1, 2), (1, 2), (2, 2), (2, 2), (0, 2), (0, 0)]


def test_nested_sessions_tell_nothing_of_earlier_numbers():
    def observe_naming(choice):
        env = kbc_v0.parallel_env(players=3)
        observations, infos = env.reset(seed=4)
        seen = []
        while env.agents:
            observations, _, _, _, infos = act_all(env, choice)
            if env.agents:
                seen.append({a: (o["text"], o["observation"].tolist(), o["messages"]) for a, o in observations.items()})
                seen.append({a: info["slots"] for a, info in infos.items()})
        return seen

    assert observe_naming(3) == observe_naming(77)


def test_the_question_at_k_0_has_no_word_of_talk():
    env = kbc_v0.parallel_env(players=3)
    talking = env.reset(seed=4)[0]["player_0"]["text"]
    silent = kbc_v0.parallel_env(players=3, talk=False).reset(seed=4)[0]["player_0"]["text"]
    assert talking == silent


def test_repeated_sessions_announce_with_two_decimals():
    env = kbc_v0.parallel_env(players=3, session="repeated", rounds=3, talk=False)
    env.reset(seed=0)
    _, _, _, _, infos = env.step({f"player_{i}": {"choice": x} for i, x in enumerate((10, 20, 70))})
    slots = infos["player_1"]["slots"]
    assert slots.round == 2
    assert slots.past == ((1, 22.22, 20, ()),)
    columns = dict(zip(env.feature_names, env.features()[1].tolist(), strict=True))
    assert columns == pytest.approx(
        {
            "progress": 1 / 3,
            "deciding": 1,
            "ratio": 2 / 3,
            "offset": 0,
            "own_weight": 1 / 3,
            "announced": 1,
            "last_target": 0.2222,
            "own_last": 0.2,
        },
        rel=1e-6,
    )


def test_long_sessions_show_the_latest_rounds():
    env = kbc_v0.parallel_env(players=2, session="repeated", rounds=5, history=3, talk=False, groups=2)
    env.reset(seed=0)
    slots_by_round = [act_all(env, number)[4]["player_1"]["slots"] for number in (10, 20, 30, 40, 50)]
    rounds_shown = [[(past.round, past.own) for past in slots.past] for slots in slots_by_round]
    assert rounds_shown == [
        [(1, 10)],
        [(1, 10), (2, 20)],
        [(1, 10), (2, 20), (3, 30)],
        [(2, 20), (3, 30), (4, 40)],
        [(3, 30), (4, 40), (5, 50)],
    ]
    assert [past.target for past in slots_by_round[-1].past] == [20, 26.67, 33.33]
    assert [past.group_numbers for past in slots_by_round[-1].past] == [(30, 30), (40, 40), (50, 50)]


def test_group_play_announces_all_groups():
    env = kbc_v0.parallel_env(players=5, session="repeated", rounds=2, groups=[3, 2], talk=False, ratio="1/2", offset=5)
    assert env.reset(seed=0)[1]["player_4"]["slots"].group == 2
    _, rewards, _, _, infos = env.step({f"player_{i}": {"choice": x} for i, x in enumerate((0, 10, 10, 40, 40))})
    slots = infos["player_3"]["slots"]
    assert slots.past == ((1, 16.67, 40, (6.67, 40)),)
    assert slots.groups == (3, 2)
    assert list(rewards.values()) == [100, 100, 100, 0, 0]
    columns = dict(zip(env.feature_names, env.features()[3].tolist(), strict=True))
    assert columns["own_weight"] == pytest.approx(1 / 4)
    assert columns["offset"] == pytest.approx(0.05)
    assert columns["own_group_last"] == columns["highest_group_last"] == pytest.approx(0.4)
    assert columns["lowest_group_last"] == pytest.approx(0.0667)


def test_the_state_holds_the_last_numbers():
    env = kbc_v0.parallel_env(players=2, low=10, high=30, talk=False)
    env.reset(seed=0)
    env.step({"player_0": {"choice": 5}, "player_1": {"choice": 20}})
    assert env.state()[-3:].tolist() == [0.25, 0.25, 1.0]


@pytest.mark.parametrize(
    ("first", "in_talk", "expected"),
    [
        (0, True, [(0, "act"), (1, "talk"), (1, "act"), (2, "talk"), (2, "act")]),
        (1, False, [(1, "act"), (2, "act")]),
        (2, True, [(2, "talk"), (2, "act")]),
    ],
)
def test_where_a_persona_is_shown(first, in_talk, expected):
    env = kbc_v0.parallel_env(
        players=2, exchanges=2, personas=["I am one.", "I am two."], persona_from=first, persona_in_talk=in_talk
    )
    observations, infos = env.reset(seed=0)
    slots_by_round = []
    while env.agents:
        if "I am two." in observations["player_1"]["text"]:
            slots_by_round.append((env.round, env.phase))
            assert infos["player_1"]["slots"].persona == "I am two."
        assert "I am one." not in observations["player_1"]["text"]
        observations, _, _, _, infos = act_all(env, 10)
    assert list(dict.fromkeys(slots_by_round)) == expected


def test_one_persona_is_everyones():
    env = kbc_v0.parallel_env(players=3, personas=["I am calm."])
    assert all("I am calm." in o["text"] for o in env.reset(seed=0)[0].values())
