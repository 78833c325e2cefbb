"""Who hears whom."""

import dataclasses
import json
import pickle

from episodes import rounds

from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.interface.question import Options, Words
from llm_coop_envs.policies import play


def talk_env(**settings):
    env = parallel_env(rows=12, cols=12, people=5, record=True, replan_probability=0.5, **settings)
    # A row: 0 and 1 next to each other, 2 exactly 5 cells from 0, 3 beyond; 4 far away.
    env.reset(seed=1, options={"positions": [(5, 1), (5, 2), (5, 6), (5, 7), (10, 10)]})
    return env


def say_all(env):
    while env.phase == "talk":
        env.step({f"evacuee_{i}": {"message": f"I am {i}"} for i in env.on_turn.tolist()})


def test_hearing_is_euclidean_up_to_the_radius_and_includes_later_speakers():
    env = talk_env()
    order = env.get_state()["own"]["crowd"]["planners"]["values"]
    assert sorted(order) == [0, 1, 2, 3, 4]
    say_all(env)
    assert env.phase == "exit"
    _, infos = env.look()
    heard = {a: [message.speaker for message in info["slots"].heard] for a, info in infos.items()}
    assert heard == {
        "evacuee_0": ["evacuee_1", "evacuee_2"],
        "evacuee_1": ["evacuee_0", "evacuee_2", "evacuee_3"],
        "evacuee_2": ["evacuee_3", "evacuee_1", "evacuee_0"],
        "evacuee_3": ["evacuee_2", "evacuee_1"],
        "evacuee_4": [],
    }


def test_while_talking_and_without_later_speakers_only_earlier_ones_are_heard():
    near = {0: {1, 2}, 1: {0, 2, 3}, 2: {0, 1, 3}, 3: {1, 2}, 4: set()}
    env = talk_env(hear_later_speakers=False)
    order = env.get_state()["own"]["crowd"]["planners"]["values"]
    expected = {i: {j for j in near[i] if order.index(j) < order.index(i)} for i in range(5)}
    at_turn = {}
    while env.phase == "talk":
        _, infos = env.look()
        for i in env.on_turn.tolist():
            at_turn[i] = {int(m.speaker[-1]) for m in infos[f"evacuee_{i}"]["slots"].heard}
        env.step({f"evacuee_{i}": {"message": f"I am {i}"} for i in env.on_turn.tolist()})
    assert at_turn == expected
    state = json.loads(json.dumps(env.get_state()))
    for env_ in (env, parallel_env(rows=12, cols=12, people=5, replan_probability=0.5, hear_later_speakers=False)):
        env_.set_state(state)
        _, infos = env_.look()
        assert {i: {int(m.speaker[-1]) for m in infos[f"evacuee_{i}"]["slots"].heard} for i in range(5)} == expected


def test_a_snapshot_in_the_middle_of_a_talk_keeps_who_hears_whom():
    env = talk_env(hear_later_speakers=False)
    twin = parallel_env(rows=12, cols=12, people=5, replan_probability=0.5, hear_later_speakers=False)
    twin.set_state(json.loads(json.dumps(env.get_state())))
    say_all(env)
    say_all(twin)
    assert [i["slots"] for i in env.look()[1].values()] == [i["slots"] for i in twin.look()[1].values()]


def test_messages_live_one_round_and_only_planners_hear():
    env = talk_env()
    for _ in range(3):
        say_all(env)
        planners = env.get_state()["own"]["crowd"]["planners"]["values"]
        _, infos = env.look()
        for agent, info in infos.items():
            heard = {int(message.speaker[-1]) for message in info["slots"].heard}
            assert heard <= set(planners)
            if int(agent[-1]) not in planners:
                assert heard == set()
                assert info["slots"].plans is False
        number = env.round
        while env.agents and env.round == number:
            env.step({})


def test_talking_changes_nothing_in_the_published_stream():
    quiet = parallel_env(people=30, talk=False, record=True)
    loud = parallel_env(people=30, record=True)
    play(quiet, NearestExit(), seed=4)
    play(loud, NearestExit(), seed=4)
    assert [e["positions"] for e in rounds(quiet)] == [e["positions"] for e in rounds(loud)]
    shuffled = parallel_env(people=30, talk=False, record=True, option_order="shuffled")
    play(shuffled, NearestExit(), seed=4)
    assert [e["positions"] for e in rounds(quiet)] == [e["positions"] for e in rounds(shuffled)]


def test_slots_are_whole_and_plain():
    env = talk_env()
    say_all(env)
    for _ in range(2):
        for info in env.look()[1].values():
            slots = info["slots"]
            fields = {field.name for field in dataclasses.fields(slots)}
            assert set(vars(slots)) == fields
            assert type(slots)(**vars(slots)) == slots
            assert pickle.loads(pickle.dumps(slots)) == slots
            flat = [*vars(slots).values(), *(value for exit_ in slots.exits for value in exit_)]
            plain = (str, int, float, bool, tuple, type(None), Options, Words)
            assert all(type(value) in plain for value in flat)
        env.step({})
