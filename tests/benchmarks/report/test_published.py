"""The published values are pinned: whoever changes a digit has to change it twice."""

import pytest

from llm_coop_envs.benchmarks.report import published as load


def test_the_evacuation_table():
    rows = {row.arm: row for row in load.escape_table()}
    assert {arm: row.escaped for arm, row in rows.items()} == {
        "no_communication": (9.4, 31.2, 51.2, 65.6, 78.6, 88.4, 96.6, 99.0, 99.8, 99.8),
        "communication": (9.8, 31.6, 48.8, 67.2, 80.6, 92.2, 97.2, 98.8, 99.8, 100.0),
        "communication_selfish": (9.4, 31.2, 48.2, 64.4, 77.0, 87.4, 95.0, 98.0, 99.0, 99.0),
    }
    for row in rows.values():
        assert (row.people, row.runs, row.rounds) == (100, 5, tuple(range(5, 51, 5)))
        assert "Table 2" in row.source
        assert row.talk == row.arm.startswith("communication")


def test_the_published_evacuation_run():
    run = load.escape_run()
    assert (run.seed, run.talk, run.people) == (4, True, 100)
    assert [run.escaped[min(r, 47)] for r in range(5, 51, 5)] == [9, 31, 45, 60, 74, 89, 98, 99, 99, 100]
    assert {name: counts[-1] for name, counts in run.reached.items()} == {"left": 37, "bottom": 29, "right": 34}


def test_whoever_reaches_an_exit_has_left_one_step_later():
    run = load.escape_run()
    for step in range(1, len(run.frames)):
        assert sum(counts[step - 1] for counts in run.reached.values()) == run.escaped[step]
        assert run.frames[step] == step


def test_the_variance_arms():
    arms = {arm.arm: arm for arm in load.variance_arms()}
    assert {name: arm.mean for name, arm in arms.items()} == {
        "gpt_4": (157, 51, 30, 18),
        "gpt_4_cooperate": (120, 2, 1, 1),
        "gpt_4_uncooperative": (207, 127, 125, 77),
        "claude_3_sonnet": (450, 28, 43, 41),
        "gpt_4_t_0": (123, 81, 75, 29),
        "gpt_4_t_1_2": (177, 66, 53, 53),
    }
    assert arms["gpt_4"].band == ((107, 208), (0, 116), (0, 74), (0, 44))
    assert arms["gpt_4_cooperate"].band == ((71, 168), None, None, None)
    for arm in arms.values():
        assert (arm.k, arm.runs, arm.precision) == ((0, 1, 2, 3), 15, 2.0)
        for mean, band in zip(arm.mean, arm.band, strict=True):
            assert band is None or band[0] <= mean <= band[1]


def test_the_price_paths_and_levels():
    levels = load.price_levels()
    assert (levels.nash, levels.cartel, levels.start) == (6, 8, 2)
    assert (levels.collusion_rounds, levels.longest, levels.runs) == (200, 1200, 5)
    silent, talking = load.price_paths()
    assert (silent.talk, talking.talk) == (False, True)
    assert [len(path.prices) for path in (silent, talking)] == [2, 1]
    assert dict(zip(silent.rounds, zip(*silent.prices, strict=True), strict=True))[340] == (8.10, 7.82)
    assert [series[-1] for series in silent.prices] == [7.05, 7.10]
    assert dict(zip(talking.rounds, talking.prices[0], strict=True)) == {
        20: 6.5, 40: 6.66, 100: 6.85, 200: 7.18, 300: 7.5, 400: 7.6, 500: 7.7, 580: 7.77,
    }  # fmt: skip


@pytest.mark.parametrize("read", [load.escape_table, load.variance_arms, load.price_paths])
def test_every_value_names_its_source(read):
    assert all("Wu et al. 2024" in item.source for item in read())


def test_the_answer_to_a_price_cut():
    found = load.impulse_response()
    assert (found.nash, found.joint) == (1.472927, 1.924981)
    assert found.deviator == (1.792, 1.505, 1.56, 1.579, 1.639, 1.693, 1.733, 1.762, 1.777, 1.785)
    assert found.rival == (1.795, 1.795, 1.551, 1.592, 1.638, 1.694, 1.737, 1.765, 1.78)
    assert "Figure 4" in found.source
