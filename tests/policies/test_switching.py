"""Seats whose policy changes with the rounds, and forced choices."""

import asyncio

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.policies.kinds import make
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.switching import Successor, Switching
from llm_coop_envs.treatments.changes import Change

CASES = {
    "kbc": (kbc_v0, {"players": 4, "exchanges": 3}, "kbc/uniform", {"choice": 77}, 77),
    "bertrand": (bertrand_v0, {"rounds": 5}, "bertrand/uniform", {"choice": 1.25}, 1.25),
    "bertrand-grid": (bertrand_v0, {"rounds": 5, "prices": "grid"}, "bertrand/uniform", {"choice": 0}, 0),
    "evacuation": (
        evacuation_v0,
        {"rows": 9, "cols": 9, "people": 6, "rounds": 5, "replan_probability": 1.0},
        "evacuation/random",
        {"choice": "left", "phase": "exit", "otherwise": "random"},
        1,
    ),
}


def choices(env, agent, phase):
    found = {}
    for event in env.events:
        if event["type"] == "choice" and event["agent"] == agent and event["phase"] == phase:
            found[event["round"]] = event["choice"]
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_choice_is_forced_from_a_round_on_for_one_player(name):
    version, settings, usual, options, wanted = CASES[name]
    env, other = (version.parallel_env(record=True, **settings) for _ in range(2))
    agent, *rest = env.possible_agents
    play(env, make(usual), seed=3)
    when = Change(from_round=2, until_round=3, players=(agent,))
    play(other, Switching(make(usual), [Successor(change=when, policy=make("forced", **options))]), seed=3)
    phase = options.get("phase", "act")
    forced = choices(other, agent, phase)
    assert {2, 3} <= forced.keys()
    assert all(value == wanted for number, value in forced.items() if 2 <= number <= 3)
    assert any(value != wanted for number, value in forced.items() if not 2 <= number <= 3)
    # Until then nothing is otherwise, and the others' random numbers never are.
    assert [e for e in env.events if e["round"] < 2] == [e for e in other.events if e["round"] < 2]
    if name != "evacuation":  # where other places offer other moves
        assert all(choices(env, one, phase) == choices(other, one, phase) for one in rest)


def test_a_forced_choice_that_is_none_is_flagged():
    env = kbc_v0.parallel_env(record=True, players=2, session="single", talk=False)
    play(env, make("forced", choice=500), seed=0)
    assert [event["flags"] for event in env.events if event["type"] == "choice"] == [["illegal_choice"]] * 2


@pytest.mark.parametrize(
    ("options", "field"),
    [({}, "policy"), ({"choice": True}, "choice"), ({"choce": 3}, "choce"), ({"choice": 3, "phase": 4}, "phase")],
)
def test_a_forced_choice_must_be_one(options, field):
    with pytest.raises(SettingsError) as caught:
        make("forced", **options)
    assert caught.value.field == field


def test_branches_of_a_switching_seat_go_on_alike():
    env = bertrand_v0.parallel_env(record=True, rounds=9)
    when = Change(from_round=3)
    seat = Switching(make("bertrand/uniform"), [Successor(change=when, policy=make("bertrand/uniform"))])
    game = Branching(env, seat, seed=0)
    asyncio.run(game.play(4))
    first = asyncio.run(game.branch(3, "a"))
    assert first == asyncio.run(game.branch(3, "b"))
    assert first == asyncio.run(game.play(3))


def test_models_that_follow_each_other_share_their_memory():
    settings = LLMSettings(model="m")
    first, second = LLMPolicy(None, settings), LLMPolicy(None, settings)
    seat = Switching(first, [Successor(change=Change(from_round=2, players=("firm_0",)), policy=second)])
    env = bertrand_v0.parallel_env()
    seat.begin(
        Episode(
            scenario="bertrand_v0",
            settings=env.settings,
            agents=("firm_0", "firm_1"),
            seats=("firm_0", "firm_1"),
            rng=np.random.default_rng(0),
        )
    )
    second._memories["firm_0"].write("plan", Note(3, "stay high"))
    assert first._memories["firm_0"].last("plan").text == "stay high"
    assert set(second._memories) == {"firm_0"}
    state = seat.get_state()
    first._memories["firm_0"].write("plan", Note(4, "go low"))
    seat.set_state(state)
    assert second._memories["firm_0"].last("plan").text == "stay high"
    assert second._memories["firm_0"] is first._memories["firm_0"]


def test_a_successor_that_a_mix_leaves_no_seat_is_not_begun():
    """The seats of a mix are dealt anew in each episode: those whom a change means may all go to others."""
    version, settings, usual, options, _ = CASES["evacuation"]
    env = version.parallel_env(record=True, **settings)
    first, *rest = env.possible_agents
    change = Change(from_round=2, players=(first,))
    switching = Switching(make(usual), [Successor(change=change, policy=make("forced", **options))])
    play(env, {first: make(usual), **dict.fromkeys(rest, switching)}, seed=3)
    switching.set_state(switching.get_state())
    plain, others = version.parallel_env(record=True, **settings), make(usual)
    play(plain, {first: make(usual), **dict.fromkeys(rest, others)}, seed=3)
    assert env.events == plain.events
