"""Many evacuations at once play as each of them alone, bit for bit."""

import json
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from paired_batches import play_pairs, random_choices, same

from llm_coop_envs import evacuation_v0
from llm_coop_envs.errors import MissingExtra, SettingsError, SnapshotError
from llm_coop_envs.evacuation import batch as batches
from llm_coop_envs.evacuation.stepping import play_copies
from llm_coop_envs.util.compiling import numba

pytestmark = pytest.mark.skipif(numba is None, reason="evacuations are stepped in batches by the compiler")


def tried(times):
    """Try so many examples, however long they take."""
    return settings(max_examples=times, suppress_health_check=list(HealthCheck), database=None)


@st.composite
def evacuations(draw):
    """Settings of any evacuation without talk, crowded so that people meet."""
    rows, cols = draw(st.integers(3, 14)), draw(st.integers(3, 14))
    inner = [(row, col) for row in range(1, rows - 1) for col in range(1, cols - 1)]
    desks = draw(st.lists(st.sampled_from(inner), unique=True, max_size=len(inner) // 4))
    walls = [(row, col) for row in range(rows) for col in range(cols) if row in (0, rows - 1) or col in (0, cols - 1)]
    cells = draw(st.lists(st.sampled_from(walls), unique=True, min_size=1, max_size=6))
    lag, control = draw(st.booleans()), draw(st.sampled_from(["move", "exit"]))
    injury = draw(st.sampled_from(["inert", "off", "active"]))
    below = draw(st.integers(0, 3)) == 0 and len(desks) > 0
    chosen = {
        "talk": False,
        "rows": rows,
        "cols": cols,
        "people": len(desks) if below else draw(st.integers(1, len(inner) - len(desks))),
        "start": "below_desks" if below else "random",
        "exits": [(draw(st.sampled_from(["a", "b", "c"])), *cell) for cell in cells],
        "desks": desks or "none",
        "control": control,
        "engine": draw(st.sampled_from(["sequential", "simultaneous"])),
        "diagonals": draw(st.booleans()),
        "rounds": draw(st.sampled_from([1, 2, 3, 5, 8, 40])),
        "removal_lag": lag,
        "extra_round": lag and draw(st.booleans()),
        "replan_probability": draw(st.sampled_from([0, 0.2, 0.5, 1])),
        "all_plan_first": control == "exit" or draw(st.booleans()),
        "count_self": draw(st.booleans()),
        "count_desks": draw(st.booleans()),
        "crowd_count": draw(st.sampled_from(["near", "visible"])),
        "personas": draw(st.sampled_from(["two_by_two", "selfish", "none"])),
        "persona_swap": draw(st.booleans()),
        "option_order": draw(st.sampled_from(["fixed", "shuffled"])),
        "injury": injury,
        "disabled_block": injury == "active" and draw(st.booleans()),
        "information": draw(st.sampled_from(["all", "all", "own"])),
        "memory": draw(st.sampled_from([None, None, 0, 3])),
        "reward_inside": draw(st.sampled_from([-1, 0, 0.1, -0.3])),
        "reward_out": draw(st.sampled_from([0, 0.7])),
        "reward_lost": draw(st.sampled_from([None, 0, -2.5])),
        "max_cycles": draw(st.sampled_from([None, None, 7])),
    }
    try:
        evacuation_v0.parallel_env(**chosen)
    except SettingsError:
        assume(False)
    return chosen


def pairs(chosen, copies, steps, seed):
    return play_pairs(
        evacuation_v0.batch_env(copies, **chosen), lambda: evacuation_v0.parallel_env(**chosen), steps, seed
    )


@tried(8)
@given(evacuations(), st.integers(0, 2**32))
def test_copies_play_as_the_environment_alone(chosen, seed):
    pairs(chosen, 2, 12, seed)


@pytest.mark.rare
def test_a_hundred_thousand_steps_play_as_the_environment_alone():
    played = 0

    @tried(120)
    @given(evacuations(), st.integers(0, 2**32))
    def play(chosen, seed):
        nonlocal played
        played += pairs(chosen, 4, 40, seed)

    play()
    assert played >= 100_000


@pytest.mark.parametrize(
    "chosen",
    [
        {"preset": "no_talk", "rounds": 3},
        {"preset": "desks", "crowd_count": "visible", "count_self": False, "control": "exit", "rounds": 3},
        {"preset": "no_diagonals", "engine": "simultaneous", "rounds": 3},
        {"rows": 5, "cols": 90, "people": 200, "control": "exit", "rounds": 5},
    ],
)
def test_published_and_wide_rooms_play_as_the_environment_alone(chosen):
    assert pairs({"talk": False, **chosen}, 2, 6, 1) > 1000


@pytest.mark.parametrize("blocks", [False, True])
def test_people_who_are_overtaken_and_disabled_play_as_in_the_environment_alone(blocks):
    chosen = {
        **{"talk": False, "rows": 9, "cols": 9, "people": 45, "exits": [("a", 0, 0)], "rounds": 80},
        **{"injury": "active", "disabled_block": blocks, "control": "exit", "reward_lost": -500},
    }
    batch, lost = evacuation_v0.batch_env(1, **chosen), 0
    batch.reset(seed=0)
    for _ in range(40):
        _, rewards, _, _, infos = batch.step(np.zeros(batch.turn.shape, dtype=int))
        lost += np.count_nonzero(rewards < -400) if "ended" not in infos else 0
    assert lost, "the case is one in which somebody is disabled"
    pairs(chosen, 2, 60, 0)


def test_who_leaves_sees_once_more_and_then_nothing():
    batch = evacuation_v0.batch_env(3, talk=False, control="exit", rows=9, cols=9, people=12)
    batch.reset(seed=1)
    was_in = batch.present
    for _ in range(8):
        seen, _, terminations, _, infos = batch.step(np.zeros(was_in.shape, dtype=int))
        going_on = np.setdiff1d(np.arange(3), infos.get("ended", []))
        assert (seen.any(axis=2) == was_in)[going_on].all()
        assert (terminations == was_in & ~batch.present)[going_on].all()
        was_in = batch.present
    assert not was_in.all()


def test_a_state_goes_on_as_if_nothing_had_happened():
    chosen = {"talk": False, "rows": 8, "cols": 8, "people": 14, "rounds": 5, "engine": "simultaneous"}
    batch, rng = evacuation_v0.batch_env(3, **chosen), np.random.default_rng(0)
    batch.reset(seed=3)
    for _ in range(7):
        batch.step(random_choices(batch, rng))
    other = evacuation_v0.batch_env(3, **chosen)
    state = json.loads(json.dumps(batch.get_state()))
    other.set_state(state)
    for _ in range(20):
        actions = random_choices(batch, rng)
        for ours, theirs in zip(batch.step(actions)[:4], other.step(actions)[:4], strict=True):
            assert same(ours, theirs)
    assert same(batch.state(), other.state())
    with pytest.raises(SnapshotError, match="another room"):
        evacuation_v0.batch_env(3, **{**chosen, "rows": 9}).set_state(state)


@tried(15)
@given(evacuations(), st.integers(0, 2**32))
def test_a_state_of_any_game_is_taken(chosen, seed):
    batch, rng = evacuation_v0.batch_env(2, **chosen), np.random.default_rng(seed)
    batch.reset(seed=seed)
    for _ in range(12):
        batch.set_state(batch.get_state())
        batch.step(random_choices(batch, rng))


@pytest.mark.parametrize(
    ("array", "field", "value"),
    [
        *(("people", "cell", value) for value in (-1, 0, 10**9)),
        *(("people", field, 10**9) for field in ("previous", "heading", "target")),
        *(("game", field, 10**9) for field in ("count", "round", "due", "phase")),
        *(("queue", None, value) for value in (-1, 0, 10**9)),
        *(("grid", None, value) for value in (0, 1, "a", [])),
        *(("people", "inside", value) for value in (False, None, [1, 2])),
    ],
)
def test_a_damaged_state_is_refused_before_compiled_code_reads_it(array, field, value):
    batch = evacuation_v0.batch_env(2, talk=False, rows=6, cols=6, people=5)
    batch.reset(seed=0)
    state = batch.get_state()
    packed = state["crowds"][array] if field is None else state["crowds"][array][field]
    packed["values"] = value if isinstance(value, list) else np.full(np.shape(packed["values"]), value).tolist()
    with pytest.raises(SnapshotError, match=r"damaged|another room"):
        batch.set_state(state)
    batch.step(np.zeros((2, 5), dtype=int))


def test_choices_may_lie_in_memory_as_they_like():
    batch = evacuation_v0.batch_env(4, talk=False, people=5)
    batch.reset(seed=0)
    seen = batch.step(np.zeros((4, 5), dtype=np.int64))[0]
    batch.reset(seed=0)
    frozen = np.zeros((5, 4), dtype=np.int8).T
    frozen.setflags(write=False)
    assert same(batch.step(frozen)[0], seen)
    assert len(play_copies.signatures) == 1, "the compiler works once, whatever the caller's array is"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("talk", True),
        ("record", True),
        ("observation_noise", 0.1),
        ("changes", [{"from_round": 2, "settings": {"present": False}, "players": "evacuee_1"}]),
        ("regulator", {"powers": ["log"], "on": ["choices"]}),
        ("listeners", [{"on": "crowded_exit"}]),
    ],
)
def test_what_a_batch_cannot_play_is_named(name, value):
    with pytest.raises(SettingsError, match=f"{name}.*cannot be played in a batch"):
        evacuation_v0.batch_env(2, **{"talk": False, name: value})


def test_without_the_compiler_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtra, match=r"evacuations in a batch.*llm-coop-envs\[rl\]"):
        evacuation_v0.batch_env(2, talk=False)


def test_with_another_numpy_it_is_said_that_a_batch_would_not_play_the_same(monkeypatch):
    monkeypatch.setattr(batches, "draws_as_numpy", lambda: False)
    with pytest.raises(SettingsError, match=r"numpy=.*play copies of parallel_env one by one"):
        evacuation_v0.batch_env(2, talk=False)
