"""When a number of ours is the printed one."""

import pytest

from llm_coop_envs.baselines.q_learning.reproduce.published import Printed, figure_4


@pytest.mark.parametrize(
    ("printed", "digits", "found", "agrees"),
    [
        (0.849, 3, 0.8487, True),
        (0.849, 3, 0.8484, False),
        (0.849, 3, 0.8496, False),
        (-12.7, 1, -12.711, True),
        (-12.7, 1, -12.76, False),
        (70.05, 2, 70.046, True),
        (0.002, 3, 0.0015, True),
        (0.002, 3, float("nan"), False),
    ],
)
def test_ours_must_round_to_the_printed_one(printed, digits, found, agrees):
    assert Printed(name="", source="", value=printed, digits=digits, ours=found).agrees == agrees


def test_what_was_read_off_may_lie_apart():
    near = Printed(name="", source="", value=1.795, digits=3, ours=1.7913, allowed=0.005)
    far = Printed(name="", source="", value=1.795, digits=3, ours=1.789, allowed=0.005)
    assert near.agrees
    assert not far.agrees


def test_the_answer_to_a_price_cut():
    found = figure_4()
    assert (found["nash"], found["joint"]) == (1.472927, 1.924981)
    assert found["deviator"] == [1.792, 1.505, 1.56, 1.579, 1.639, 1.693, 1.733, 1.762, 1.777, 1.785]
    assert found["rival"] == [1.795, 1.795, 1.551, 1.592, 1.638, 1.694, 1.737, 1.765, 1.78]
    assert "Figure 4" in found["source"]
