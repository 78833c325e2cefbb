"""Talk that ends with a round, in every scenario."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from talkers import ENVS, told

from llm_coop_envs import bertrand_v0, kbc_v0


def of_round(events, last):
    return [event for event in events if event["type"] != "start" and event["round"] <= last]


@pytest.mark.parametrize("name", ENVS)
@given(until=st.integers(1, 5), seed=st.integers(0, 100))
@settings(max_examples=10)
def test_up_to_that_round_nothing_changes_and_then_nobody_speaks(name, until, seed):
    usual, _ = told(ENVS[name](), seed)
    events, may_talk = told(ENVS[name](talk_until=until), seed)
    last = max(event["round"] for event in events)
    # The last event of a round with talk may be that of the round's end, which the next one's beginning follows.
    assert of_round(events, until) == of_round(usual, until)
    spoken = {event["round"] for event in events if event["type"] == "message"}
    assert spoken
    assert max(spoken) <= until
    assert all(known == {round_ <= until} for round_, known in may_talk.items())
    if until >= last:
        assert events[1:] == usual[1:]


def test_what_was_said_in_a_contest_is_still_known():
    env = kbc_v0.parallel_env(players=2, talk_until=1)
    _, infos = env.reset(seed=0)
    while env.agents:
        last = infos["player_0"]["slots"]
        *_, infos = env.step({a: {"message": "22", "choice": 1} for a in env.agents})
    assert (last.turns, len(last.heard)) == (0, 2)


def test_firms_hear_nothing_of_earlier_rounds():
    env = bertrand_v0.parallel_env(talk_until=1, rounds=2)
    _, infos = env.reset(seed=0)
    while env.agents:
        last = infos["firm_0"]["slots"]
        *_, infos = env.step({a: {"message": "Hello.", "choice": 2.0} for a in env.agents})
    assert (last.round, last.said, last.exchanges) == (2, (), 0)
