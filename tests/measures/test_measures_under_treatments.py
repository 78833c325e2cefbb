"""Each measure of each scenario under each treatment, against a count of what players saw, said and did."""

import json

import pytest
from configurations import SMALL_ROOM
from spied import count_contest, count_evacuation, count_market, count_talk, watch

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.measures.process import process_measures

SCENARIOS = {
    "kbc": ({"players": 5, "session": "repeated", "rounds": 5, "talk_turns": 1}, {10: 10, 20: 20, 35: 35}),
    "bertrand": ({"firms": 4, "rounds": 6, "collusion_window": 0, "exchanges": 2}, {1.5: 1.5, 1.7: 1.7, 1.85: 1.85}),
    "evacuation": (
        {**SMALL_ROOM, "rounds": 12, "replan_probability": 0.6, "control": "exit", "injury": "active"},
        {"bottom": 0, "left": 1, "right": 2},
    ),
}
LEAVERS = [{"from_round": 3, "players": ["*_1", "*_3"], "settings": {"present": False}}]
STOPS = {"powers": ["veto"], "on": ["choices"]}
TREATMENTS = {
    "plain": {},
    **{name: {"delivery": name} for name in ("drop", "delay", "shuffle", "swap", "neutral", "paraphrase")},
    "half_dropped": {"delivery": "drop", "delivery_share": 0.5},
    "half_late": {"delivery": "delay", "delivery_share": 0.5, "delivery_delay": 2},
    "together": {"talk_mode": "simultaneous"},
    "leaving": {"changes": LEAVERS},
    "late_and_leaving": {"changes": LEAVERS, "delivery": "delay"},
    "invalid": {},
    "stopped": {"regulator": STOPS},
    "forced": {"initial_prices": 1.6, "force_first_price": True},
    "on_a_grid": {"prices": "grid"},
    "in_order": {"hear_later_speakers": False},
    "in_order_and_late": {"hear_later_speakers": False, "delivery": "delay", "delivery_share": 0.5},
    "walking": {"control": "move"},
}
ONLY = {
    "forced": ("bertrand",),
    "on_a_grid": ("bertrand",),
    **dict.fromkeys(("in_order", "in_order_and_late", "walking"), ("evacuation",)),
}
CASES = [
    (scenario, treatment)
    for scenario in SCENARIOS
    for treatment in TREATMENTS
    if scenario in ONLY.get(treatment, SCENARIOS)
]


def played(scenario, treatment, seed=3):
    """An episode as it was watched, its events, and the scenario."""
    settings, pool = SCENARIOS[scenario]
    env = find_scenario(scenario).environment(record=True, **{**settings, **TREATMENTS[treatment]})
    if treatment == "on_a_grid":
        grid = env.settings.grids[0]
        # They announce prices between those of the grid, and mean the nearest.
        pool = {f"{(grid[k] + grid[k] + grid[k + 1]) / 3:.5g}": k for k in (3, 6, 9)}
    spoiled = 0.3 if treatment == "invalid" else 0.0
    forced = (1,) if treatment == "forced" else ()
    counts = {}
    if scenario == "bertrand":  # a price far beyond the range becomes the highest, a stopped one the Nash price
        counts = {"spoiled_counts": env.settings.cap, "instead": env.settings.equilibria.nash[0]}
    watched = watch(env, scenario, pool, seed=seed, spoiled=spoiled, forced=forced, **counts)
    return watched, json.loads(json.dumps(env.events)), find_scenario(scenario)


@pytest.mark.parametrize(("scenario", "treatment"), CASES)
def test_measures_of_talk(scenario, treatment):
    watched, events, descriptor = played(scenario, treatment)
    row = process_measures(events, descriptor)
    expected = count_talk(watched, numbers=scenario != "evacuation" and treatment != "on_a_grid")
    if treatment == "on_a_grid":  # options by rank have no distances: what hangs on these is counted elsewhere
        expected = {name: value for name, value in expected.items() if not name.startswith("moved")}
    assert {name: row[name] for name in expected} == pytest.approx(expected, nan_ok=False)
    if treatment in ("drop", "neutral"):
        assert row["heard_choices"] == 0
    if treatment in ("plain", "on_a_grid"):
        assert row["announcements_kept"] > 0
        assert row["agreements"] > 0
        assert row["followed_share"] > 0
    assert descriptor.episode_metrics(events)["messages"] == watched.messages


COUNTS = {"kbc": count_contest, "bertrand": count_market, "evacuation": count_evacuation}
ELSEWHERE = {
    "kbc": {f"nyt_{name}_{end}" for name in ("wasserstein", "total_variation") for end in ("first", "last")},
    "bertrand": {
        *(
            "end",
            "nash_price",
            "joint_price",
            "collusiveness_index",
            "monopoly_found",
            "optimal_rounds",
            "forced_rounds",
        ),
        *("together_share", "together_longest", "together_from", "window_round"),
        # Of six rounds the last fifty are all.
        *("profit_gain_last", "mean_price_last", "price_spread_last"),
    },
    "evacuation": {
        *("rounds", "mean_round", "last_round", "balance", "waiting", "waiting_share", "detour", "path_score"),
        *("overtaken", *(f"escaped_round_{number}" for number in range(5, 51, 5))),
    },
}
"""Measures that hang on no treatment, or that the scenario's own tests work out by hand."""


@pytest.mark.parametrize(("scenario", "treatment"), [case for case in CASES if case[1] not in ("forced", "on_a_grid")])
def test_measures_of_the_scenario(scenario, treatment):
    watched, events, descriptor = played(scenario, treatment)
    row = descriptor.episode_metrics(events)
    expected = COUNTS[scenario](watched, watched.env.settings)
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row.keys() - expected.keys() == ELSEWHERE[scenario]


def test_the_treatments_do_what_they_are_there_for():
    rows = {case: find_scenario(case[0]).episode_metrics(played(*case)[1]) for case in CASES if case[0] == "evacuation"}
    assert rows["evacuation", "leaving"]["taken_out"] > 0
    assert rows["evacuation", "plain"]["exit_changes_after_message"] > 0
    assert rows["evacuation", "drop"]["exit_changes_after_message"] == 0
    late = rows["evacuation", "in_order_and_late"]["exit_changes_after_message"]
    assert rows["evacuation", "drop"]["change_rate_after_message"] is None
    assert late > 0
