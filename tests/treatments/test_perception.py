"""What players see and keep of what happens: information, noise and memory, in every scenario, from a round on."""

from typing import Any

import numpy as np
import pytest
from talkers import ENVS

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.slots import OwnRound, PastRound

WORDINGS = ["en-a", "en-b", "de-a"]
CONTEST = {"players": 3, "session": "repeated", "rounds": 4, "talk": False}
MARKET = {"rounds": 4, "talk": False, "firms": 3, "bin_size": 1, "initial_prices": 1.5}
ROOM = {"rows": 9, "cols": 9, "people": 8, "rounds": 4, "replan_probability": 1.0}
GAMES = {
    "kbc": (kbc_v0, "player", CONTEST),
    "kbc-groups": (kbc_v0, "player", {**CONTEST, "groups": [1, 2]}),
    "bertrand": (bertrand_v0, "firm", MARKET),
    "evacuation": (evacuation_v0, "evacuee", {**ROOM, "talk": False}),
    "evacuation-together": (evacuation_v0, "evacuee", {**ROOM, "talk": False, "engine": "simultaneous"}),
}


def made(name, **more):
    module, role, settings = GAMES[name]
    return module.parallel_env(**{**settings, **more}), role


def choices(env):
    """Somebody else's in each round, all legal, and the same whatever players see."""
    found = {}
    for number, agent in enumerate(env.agents):
        mask = env.masks()
        if mask is None:
            found[agent] = {"choice": 1.2 + 0.1 * number}
        else:
            legal = np.flatnonzero(mask[env.possible_agents.index(agent)])
            found[agent] = {"choice": int(legal[(7 * number + env.round) % len(legal)])}
    return found


def views(env):
    """What everybody is shown, by step and agent."""
    env.reset(seed=4)
    found = {}
    while env.agents:
        observations, infos = env.look()
        assert all(np.array_equal(observations[a]["observation"], env.features()[env._index[a]]) for a in observations)
        found |= {(env.cycles, a): (env.round, observations[a], infos[a]) for a in observations}
        env.step(choices(env))
    return found


def same(one, other):
    """Whether two views show the same."""
    (_, seen, info), (_, others, others_info) = one, other
    rows = np.array_equal(seen["observation"], others["observation"])
    return rows and seen["text"] == others["text"] and info["slots"] == others_info["slots"]


@pytest.mark.parametrize("setting", [{"information": "own"}, {"observation_noise": 0.3}, {"memory": 0}])
@pytest.mark.parametrize("name", GAMES)
def test_it_changes_for_some_from_a_round_on_and_what_is_played_stays(name, setting):
    env, role = made(name, record=True)
    usual = views(env)
    change = {"from_round": 3, "players": f"{role}_1", "settings": setting}
    treated, _ = made(name, record=True, changes=[change])
    found = views(treated)
    differ = {key for key in usual if not same(usual[key], found[key])}
    assert {agent for _, agent in differ} == {f"{role}_1"}
    rounds = {usual[key][0] for key in differ}
    # What is seen of round 3 shows in round 4 where prices and targets are told afterwards.
    after = 4 if setting.get("observation_noise") and not name.startswith("evacuation") else 3
    assert min(rounds) == after
    plain = [event for event in treated.events if event["type"] not in ("start", "change")]
    assert plain == [event for event in env.events if event["type"] != "start"]
    assert all(
        np.array_equal(usual[key][2]["action_mask"]["choice"], found[key][2]["action_mask"]["choice"]) for key in usual
    )


HOMOGENEOUS = {"demand": "linear", "quality": 1.0, "cost": 0.0, "beta": 1.0, "d": 1.0, "clamp_demand": True}
#: What two players do otherwise, so that it makes no difference to what the first gets, and where people may stand
#: that are not in its way.
OTHERWISE = {
    "player": [{"player_0": 0, "player_1": 50, "player_2": 60}, {"player_0": 0, "player_1": 80, "player_2": 90}],
    "firm": [{"firm_0": 0.9, "firm_1": 0.2}, {"firm_0": 0.9, "firm_1": 0.5}],
    "evacuee": [[[1, 1], *([row, 7] for row in range(1, 8))], [[1, 1], *([7, col] for col in range(1, 8))]],
}


@pytest.mark.parametrize("information", ["own", "all"])
@pytest.mark.parametrize("name", GAMES)
def test_of_others_nothing_is_left_in_numbers_and_words(name, information):
    """Whoever learns only of itself is shown the same, whatever others do that neither pays nor blocks it."""
    shown = []
    for k in (0, 1):
        more = {**HOMOGENEOUS, "firms": 2, "initial_prices": None} if name == "bertrand" else {}
        env, role = made(name, information=information, **more)
        room = role == "evacuee"
        env.reset(seed=1, options={"positions": OTHERWISE[role][k]} if room else {})
        found = []
        while env.round < (2 if room else 4) and env.agents:
            if 0 in env.on_turn:
                found.append((env.round, *(view[f"{role}_0"] for view in env.look(on_turn=True))))
            env.step(choices(env) if room else {a: {"choice": c} for a, c in OTHERWISE[role][k].items()})
        shown.append(found)
    assert len(shown[0]) == len(shown[1]) > 1
    assert all(same(*pair) for pair in zip(*shown, strict=True)) == (information == "own")


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_player_is_told_only_what_it_won(wording):
    change = {"from_round": 3, "players": "player_0", "settings": {"information": "own"}}
    env = kbc_v0.parallel_env(**CONTEST, changes=[change], wording=wording, currency="% of a pie")
    env.reset(seed=0)
    texts = {}
    while env.agents:
        observations, infos = env.look()
        texts |= {(env.round, agent): (view["text"], infos[agent]["slots"]) for agent, view in observations.items()}
        env.step({"player_0": {"choice": 30}, "player_1": {"choice": 50}, "player_2": {"choice": 61}})
    text, slots = texts[3, "player_0"]
    assert slots.past == (OwnRound(1, 30, 100), OwnRound(2, 30, 100))
    assert "30, " in text or "30 and" in text
    assert "100 % of a pie" in text
    assert "31.33" not in text
    assert slots.series() == {"your number": [(1.0, 30), (2.0, 30)]}
    other, others = texts[3, "player_1"]
    assert others.past[0] == PastRound(1, 31.33, 50, ())
    assert "31.33" in other
    assert "31.33" in texts[2, "player_0"][0]


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_person_sees_nobody_and_may_still_go_where_it_may(wording):
    env, usual = (evacuation_v0.parallel_env(**ROOM, wording=wording, information=one) for one in ("own", "all"))
    seen, others = views(env), views(usual)
    assert seen.keys() == others.keys()
    for (_, agent), (_, observation, info) in seen.items():
        slots = info["slots"]
        assert [one.people for one in slots.exits] == [None] * 3
        assert slots.around is None
        row = dict(zip(env.feature_names, observation["observation"].tolist(), strict=True))
        assert {row[f"people_{one.name}"] for one in slots.exits} | {row["around"]} == {-1.0}, agent
    for key, (_, observation, info) in others.items():
        assert info["slots"].options == seen[key][2]["slots"].options
        assert observation["text"] != seen[key][1]["text"]


@pytest.mark.parametrize(
    ("wording", "first"),
    [
        ("en-a", "You have not chosen an exit before."),
        ("en-b", "This is your first choice of a way out."),
        ("de-a", "Du hast noch keinen Ausgang gewählt."),
    ],
)
def test_a_person_without_memory_is_told_nothing_that_is_false(wording, first):
    found = {
        memory: views(evacuation_v0.parallel_env(**{**ROOM, "talk": False}, wording=wording, memory=memory))
        for memory in (None, 0, 1)
    }
    assert any(first in view["text"] for _, view, _ in found[None].values())
    for key, (_, _, info) in found[None].items():
        _, view, forgot = found[0][key]
        assert (forgot["slots"].previous, forgot["slots"].past_exits) == (None, ())
        assert first not in view["text"]
        assert found[1][key][2]["slots"].past_exits == info["slots"].past_exits[-1:]


def test_what_was_said_in_earlier_rounds_is_forgotten():
    """In the published contest what was said is all that there is to remember."""
    heard = {}
    for memory in (None, 1, 0):
        env = kbc_v0.parallel_env(players=3, order="fixed", memory=memory)
        env.reset(seed=0)
        while env.agents:
            if env.phase == "act":
                observations, infos = env.look()
                slots = infos["player_2"]["slots"]
                heard[memory, env.round] = [one.text for one in slots.heard]
                others = [one.text for one in slots.heard if not one.own]
                assert [one["text"] for one in observations["player_2"]["messages"]] == others
            env.step({agent: {"choice": 1, "message": f"{agent} in {env.round}"} for agent in env.agents})
    said = {k: [f"player_{i} in {k}" for i in range(3)] for k in (1, 2, 3)}
    assert heard[None, 3] == said[1] + said[2] + said[3]
    assert heard[1, 3] == said[2] + said[3]
    assert heard[0, 3] == said[3]
    assert heard[0, 0] == []


@pytest.mark.parametrize("memory", [0, 1])
def test_a_delayed_message_is_remembered_from_when_it_is_heard(memory):
    env = kbc_v0.parallel_env(players=2, order="fixed", memory=memory, delivery="delay", delivery_delay=1)
    env.reset(seed=0)
    found = {}
    while env.agents:
        if env.phase == "act":
            found[env.round] = [one.text for one in env.look()[1]["player_1"]["slots"].heard if not one.own]
        env.step({agent: {"choice": 1, "message": f"in {env.round}"} for agent in env.agents})
    assert found[2] == ["in 1"]
    assert found[3] == (["in 1", "in 2"] if memory else ["in 2"])


@pytest.mark.parametrize("memory", [0, None])
@pytest.mark.parametrize("name", ["kbc", "kbc-groups", "bertrand"])
def test_of_a_forgotten_past_nothing_is_left_in_numbers_and_words(name, memory):
    shown = []
    for k in (0, 1):
        more = {**HOMOGENEOUS, "firms": 2, "initial_prices": None} if name == "bertrand" else {}
        env, role = made(name, memory=memory, **more)
        env.reset(seed=1)
        while env.round < 3:
            env.step({agent: {"choice": choice} for agent, choice in OTHERWISE[role][k].items()})
        shown.append((3, *(view[f"{role}_1"] for view in env.look())))
    assert same(*shown) == (memory == 0)


def test_the_last_move_is_forgotten_in_numbers_too():
    moved = {}
    for memory in (0, None):
        env, _ = made("evacuation-together", memory=memory)
        columns = [env.feature_names.index(name) for name in ("last_down", "last_right")]
        moved[memory] = {key: view["observation"][columns].any() for key, (_, view, _) in views(env).items()}
    assert any(moved[None].values())
    assert not any(moved[0].values())


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_who_does_not_see_is_not_told_by_a_listener_either(noise):
    env = kbc_v0.parallel_env(
        **{**CONTEST, "rounds": 3},
        listeners=[{"on": "winning_number"}],
        observation_noise=noise,
        record=True,
        changes=[{"from_round": 1, "players": "player_0", "settings": {"information": "own"}}],
    )
    env.reset(seed=0)
    told = {}
    while env.agents:
        told = {agent: info["slots"] for agent, info in env.look()[1].items()}
        env.step({agent: {"choice": 30} for agent in env.agents})
    assert told["player_0"].notice == ""
    assert f"{told['player_1'].past[-1].target:g}" in told["player_1"].notice
    assert (told["player_1"].notice == told["player_2"].notice) == (not noise)
    news = [event["agents"] for event in env.events if event["type"] == "news"]
    assert sorted(agent for agents in news for agent in agents) == ["player_1"] * 3 + ["player_2"] * 3


@pytest.mark.parametrize("name", GAMES)
def test_numbers_are_as_far_off_as_words(name):
    env, _ = made(name, observation_noise=0.4)
    places = {feature: k for k, feature in enumerate(env.feature_names)}
    low, high = (np.broadcast_to(bound, len(places)) for bound in env.feature_bounds)
    compared = 0
    for _, observation, info in views(env).values():
        slots, row = info["slots"], observation["observation"]
        expected = {}
        if name.startswith("kbc") and slots.past:
            last = slots.past[-1]
            expected["last_target"] = last.target / 100
            if slots.groups:
                expected["own_group_last"] = last.group_numbers[slots.group - 1] / 100
                expected["lowest_group_last"] = min(last.group_numbers) / 100
        elif name == "bertrand" and slots.history:
            marks = env.settings.equilibria
            expected = {
                f"rival_price_{k}": (price - marks.nash[0]) / (marks.joint[0] - marks.nash[0])
                for k, price in enumerate(slots.history[-1].rival_prices, 1)
            }
        elif name.startswith("evacuation"):
            expected = {f"people_{one.name}": one.people / 100 for one in slots.exits}
        for feature, value in expected.items():
            k = places[feature]
            assert row[k] == pytest.approx(float(np.clip(value, low[k], high[k])), abs=1e-4), feature
            compared += 1
    assert compared > 8


def test_a_scenario_without_such_a_thing_says_so():
    for setting in ({"information": "own"}, {"observation_noise": 0.1}, {"memory": 3}):
        with pytest.raises(SettingsError, match="means nothing in this scenario"):
            ENVS["toy"](**setting)
    wrong: list[tuple[str, Any]] = [("memory", -1), ("information", "some"), ("observation_noise", 2)]
    for name, value in wrong:
        with pytest.raises(SettingsError, match=f"^{name}="):
            kbc_v0.parallel_env(**{name: value})
