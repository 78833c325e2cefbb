"""Many contests at once play as each of them alone, bit for bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paired_batches import play_pairs

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc import batch as batches


def tried(times):
    """Try so many examples, however long they take."""
    return settings(max_examples=times, suppress_health_check=list(HealthCheck), database=None)


@st.composite
def contests(draw):
    """Settings of any contest without talk and groups."""
    low = draw(st.integers(-20, 20))
    chosen = {
        "talk": False,
        "players": draw(st.integers(2, 9)),
        "low": low,
        "high": low + draw(st.integers(1, 100)),
        "ratio": draw(st.sampled_from(["2/3", "1/2", "1", "3/2", "51/100", "999999999999/1000000000000"])),
        "offset": draw(st.sampled_from([0, 5, "-1/3"])),
        "choices": draw(st.sampled_from(["integer", "real"])),
        "winner_rule": draw(st.sampled_from(["nearest", "first_value", "tolerance"])),
        "tolerance": draw(st.sampled_from(["1/2", 0, 7])),
        "reward_rule": draw(st.sampled_from(["exclusive", "independent", "amplified"])),
        "statistic": draw(st.sampled_from(["mean", "median", "max"])),
        "session": draw(st.sampled_from(["nested", "single", "repeated"])),
        "rounds": draw(st.integers(1, 4)),
        "information": draw(st.sampled_from(["all", "all", "own"])),
        "memory": draw(st.sampled_from([None, 0, 2])),
        "opponents": draw(st.sampled_from(["", "experts", "people who like numbers"])),
        "max_cycles": draw(st.sampled_from([None, 3])),
    }
    return chosen


def pairs(chosen, copies, steps, seed):
    return play_pairs(kbc_v0.batch_env(copies, **chosen), lambda: kbc_v0.parallel_env(**chosen), steps, seed)


@tried(20)
@given(contests(), st.integers(0, 2**32))
def test_copies_play_as_the_environment_alone(chosen, seed):
    pairs(chosen, 3, 8, seed)


@pytest.mark.rare
def test_a_hundred_thousand_steps_play_as_the_environment_alone():
    played = 0

    @tried(500)
    @given(contests(), st.integers(0, 2**32))
    def play(chosen, seed):
        nonlocal played
        played += pairs(chosen, 5, 12, seed)

    play()
    assert played >= 100_000


@pytest.mark.parametrize("preset", ["two_thirds", "shall_we_talk", "half_plus_five"])
def test_published_contests_play_as_the_environment_alone(preset):
    assert pairs({"preset": preset, "talk": False}, 4, 10, 1) == 4 * 10 * 24


def test_targets_that_are_not_computed_in_advance(monkeypatch):
    monkeypatch.setattr(batches, "_TABLE", 0)
    pairs({"talk": False, "session": "repeated"}, 3, 6, 2)


def test_numbers_on_both_sides_of_the_target_win_together():
    batch = kbc_v0.batch_env(2, talk=False, session="single", players=3, ratio="1/2")
    batch.reset(seed=0)
    # The targets are 20 and 50/3: 10 and 30 are equally near to the first.
    _, rewards, terminations, _, infos = batch.step(np.array([[10, 30, 80], [10, 30, 60]]))
    assert rewards.tolist() == [[100, 100, 0], [100, 0, 0]]
    assert terminations.all()
    assert infos["ended"].tolist() == [0, 1]


@pytest.mark.parametrize(("name", "value"), [("talk", True), ("groups", 2)])
def test_what_a_batch_cannot_play_is_named(name, value):
    with pytest.raises(SettingsError, match=f"{name}.*cannot be played in a batch"):
        kbc_v0.batch_env(2, **{"talk": False, name: value})
