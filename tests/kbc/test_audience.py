"""Who hears a player of the number contest: everyone, its group, its neighbours; and whom all hear."""

import json

import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import ScriptedPolicy, make, play


class Telling(ScriptedPolicy):
    """Says whom it has heard so far, so that a transcript shows what each knew when it spoke."""

    slots_only = True

    def decide(self, request):
        slots = request.info["slots"]
        speakers = ",".join(sorted(line.speaker.removeprefix("player_") for line in slots.heard if not line.own))
        return {"message": f"heard {speakers}", "choice": 0}


def messages_by_talk(env):
    messages = {}
    for event in env.events:
        if event["type"] == "message":
            messages.setdefault(event["talk"], {})[event["agent"]] = event
    return messages


CASES = {
    "group": {"audience": "group", "groups": [3, 3, 2]},
    "announced": {"audience": "group", "groups": 2, "announcers": ["player_1"]},
    "neighbours": {"audience": "neighbours", "hearers": 3},
    "mixed": {"audience": "neighbours", "hearers": 2, "announcers": "player_[07]"},
}


@pytest.mark.parametrize("name", CASES)
def test_the_parallel_form_is_that_of_one_by_one(name):
    env = kbc_v0.parallel_env(players=8, session="single", talk_turns=2, record=True, **CASES[name])
    play(env, Telling(), seed=4)
    ears = {agent: set() for agent in env.possible_agents}
    steps = set()
    for talk in messages_by_talk(env).values():
        for event in sorted(talk.values(), key=lambda event: event["position"]):
            agent = event["agent"]
            speakers = ",".join(sorted(speaker.removeprefix("player_") for _, speaker in ears[agent]))
            assert event["text"] == f"heard {speakers}"
            steps.add(event["step"])
            for hearer in event["hearers"] or env.possible_agents:
                if hearer != agent:
                    ears[hearer].add((event["talk"], agent))
    assert len(steps) < 16  # some spoke side by side


def test_groups_hear_their_own_talk_and_all_hear_who_announces():
    env = kbc_v0.parallel_env(players=6, session="single", record=True, **CASES["announced"])
    play(env, Telling(), seed=0)
    for talk in messages_by_talk(env).values():
        assert talk["player_0"]["hearers"] == ["player_1", "player_2"]
        assert talk["player_1"]["hearers"] is None
        assert talk["player_5"]["hearers"] == ["player_3", "player_4"]


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_players_are_told_who_hears_them(wording):
    def texts(**settings):
        env = kbc_v0.parallel_env(players=8, session="single", order="fixed", wording=wording, **settings)
        observations, _ = env.reset(seed=0)
        return [observations[agent]["text"] for agent in env.possible_agents]

    usual = texts()
    group, announced = texts(**CASES["group"]), texts(**CASES["announced"])
    near = texts(**CASES["neighbours"])
    everything = {"en-a": "everybody hears every word", "en-b": "heard by all.", "de-a": "alle hören alles"}[wording]
    assert all(everything in text for text in usual)
    assert not any(everything in text for text in (*group, *announced, *near))
    assert all(" 3 " in text for text in near)
    last = {"en-a": "of whom you are one", "en-b": "you among them", "de-a": "du gehörst dazu"}[wording]
    assert [last in text for text in announced] == [k == 1 for k in range(8)]
    assert not any("{{" in text or "\n\n\n" in text for text in (*group, *announced, *near))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"audience": "group"}, "audience"),
        ({"audience": "some"}, "audience"),
        ({"announcers": ["player_0"]}, "announcers"),
        ({"audience": "neighbours", "announcers": ["player_9"]}, "announcers"),
        ({"audience": "neighbours", "announcers": 3}, "announcers"),
        ({"audience": "neighbours", "hearers": 0}, "hearers"),
    ],
)
def test_impossible_audiences_are_refused(settings, field):
    with pytest.raises(SettingsError, match=field):
        kbc_v0.parallel_env(players=6, **settings)


def test_settings_of_older_studies_stay_byte_for_byte():
    assert not {"audience", "hearers", "announcers"} & set(kbc_v0.parallel_env().settings.to_json())


def test_a_snapshot_in_the_middle_of_a_neighbourhood_s_talk_goes_on_the_same():
    def go_on(env):
        while env.agents:
            observations, infos = env.look(on_turn=True)
            env.submit(
                {
                    agent: {"message": f"{len(infos[agent]['slots'].heard)}", "choice": len(observation["messages"])}
                    for agent, observation in observations.items()
                }
            )
        return env.events[-12:]

    settings = {"players": 8, "session": "single", "record": True, **CASES["mixed"]}
    env, other = kbc_v0.parallel_env(**settings), kbc_v0.parallel_env(**settings)
    env.begin(seed=1)
    for _ in range(3):
        env.submit({env.possible_agents[i]: {"message": f"from {i}"} for i in env.on_turn.tolist()})
    other.set_state(json.loads(json.dumps(env.get_state())))
    assert go_on(env) == go_on(other)


def test_followers_agree_inside_a_group_but_not_across():
    env = kbc_v0.parallel_env(players=6, session="single", groups=2, audience="group", record=True, order="fixed")
    seats = dict.fromkeys(env.possible_agents, make("kbc/follower"))
    seats["player_0"], seats["player_3"] = make("kbc/announcer", number=7), make("kbc/announcer", number=70)
    play(env, seats, seed=0)
    assert next(event["choices"] for event in env.events if event["type"] == "round") == [7, 7, 7, 70, 70, 70]
