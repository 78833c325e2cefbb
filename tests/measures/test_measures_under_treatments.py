"""Each measure of each scenario under each treatment, against a count of what players saw, said and did."""

import json

import pytest
from configurations import SMALL_ROOM
from spied import count_contest, count_evacuation, count_market, count_talk, watch

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.measures.process import process_measures
from llm_coop_envs.runs.episode import _record_changes
from llm_coop_envs.studies.conditions import PolicyChange
from llm_coop_envs.treatments.changes import Change, fits_any

SCENARIOS = {
    "kbc": ({"players": 5, "session": "repeated", "rounds": 5, "talk_turns": 1}, {10: 10, 20: 20, 35: 35}),
    "bertrand": (
        {"firms": 4, "rounds": 6, "collusion_window": 0, "exchanges": 2, "collusion_tolerance": 0.35},
        {1.5: 1.5, 1.7: 1.7, 1.85: 1.85},
    ),
    "evacuation": (
        {**SMALL_ROOM, "rounds": 12, "replan_probability": 0.8, "control": "exit", "injury": "active"},
        {"bottom": 0, "left": 1, "right": 2},
    ),
}
# Whom a study forces: players, first round, last round, which value of the pool.
CUTS = {
    "cut": (("*_1", "*_2"), 2, 3, 0),
    "cut_at_first": (("*_0",), 0, 2, 1),
    "all_cut": (("*",), 1, 2, 1),
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
    "cut": {},
    "cut_at_first": {},
    "all_cut": {},
    "held": {"collusion_window": 2, "collusion_tolerance": 0.6},
    "on_a_grid": {"prices": "grid"},
    "in_order": {"hear_later_speakers": False},
    "in_order_and_late": {"hear_later_speakers": False, "delivery": "delay", "delivery_share": 0.5},
    "walking": {"control": "move"},
    "stumbling": {"control": "move"},
    "crowded": {"people": 40},
}
ONLY = {
    "forced": ("bertrand",),
    "held": ("bertrand",),
    "on_a_grid": ("bertrand",),
    **dict.fromkeys(("in_order", "in_order_and_late", "walking", "stumbling", "crowded"), ("evacuation",)),
}
CASES = [
    (scenario, treatment)
    for scenario in SCENARIOS
    for treatment in TREATMENTS
    if scenario in ONLY.get(treatment, SCENARIOS)
]


def played(scenario, treatment, seed=3, **changed):
    """An episode as it was watched, its events, and the scenario."""
    settings, pool = SCENARIOS[scenario]
    env = find_scenario(scenario).environment(record=True, **{**settings, **TREATMENTS[treatment], **changed})
    counts = {}
    if scenario == "bertrand":  # a price far beyond the range becomes the highest, a stopped one the Nash price
        counts = {"spoiled_counts": env.settings.cap, "instead": env.settings.equilibria.nash[0]}
    if treatment == "on_a_grid":
        grid = env.settings.grids[0]
        # They announce prices between those of the grid, and mean the nearest.
        pool = {f"{(grid[k] + grid[k] + grid[k + 1]) / 3:.5g}": k for k in (3, 6, 9)}
        counts["worth"] = {value: grid[k] for value, k in pool.items()}
    if treatment == "forced":
        counts |= {"forced": (1,), "laid_down": TREATMENTS["forced"]["initial_prices"]}
    if treatment in CUTS:
        players, first, last, value = CUTS[treatment]
        who = [agent for agent in env.possible_agents if fits_any(agent, players)]
        value = [*pool][value]
        change = PolicyChange(
            when=Change(from_round=first, until_round=last, players=players),
            policy="forced",
            options={"choice": value, **({"phase": "exit"} if scenario == "evacuation" else {})},
        )
        counts["cut"] = who, range(first, last + 1), value, _record_changes([change], None)
    spoiled = 0.3 if treatment in ("invalid", "stumbling") else 0.0
    watched = watch(env, scenario, pool, seed=seed, spoiled=spoiled, **counts)
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


@pytest.mark.parametrize(("scenario", "treatment"), CASES)
def test_measures_of_the_scenario(scenario, treatment):
    watched, events, descriptor = played(scenario, treatment)
    row = descriptor.episode_metrics(events)
    expected = COUNTS[scenario](watched, watched.env.settings)
    assert row == pytest.approx(expected)


LONG = ("plain", "forced", "invalid", "on_a_grid", "cut", "all_cut")


@pytest.mark.parametrize("treatment", [*LONG, "leaving"])
def test_measures_of_long_markets(treatment):
    watched, events, descriptor = played("bertrand", treatment, talk=False, rounds=302)
    row = descriptor.episode_metrics(events)
    assert row == pytest.approx(count_market(watched, watched.env.settings))
    assert row["collusiveness_index"] > 0
    assert row["profit_gain"] != pytest.approx(row["profit_gain_last"])
    assert treatment == "leaving" or 0 < row["together_share"] < 1


@pytest.mark.parametrize("rounds", [100, 101, 130])
@pytest.mark.parametrize("treatment", [name for name in LONG if name != "cut"])
def test_measures_of_a_single_firm(treatment, rounds):
    watched, events, descriptor = played("bertrand", treatment, talk=False, firms=1, rounds=rounds)
    row = descriptor.episode_metrics(events)
    forced = {*watched.forced, *(choice.round for choice in watched.choices if choice.forced)}
    own = [choice.counted for choice in watched.choices if choice.round not in forced]
    best = watched.env.settings.equilibria
    ends = [sorted(own[-100:])[k] for k in (9, 89)] if len(own) >= 100 else []
    found = all(abs(end / best.joint[0] - 1) <= 0.05 for end in ends) if ends else None
    late = [rewards["firm_0"] >= 0.99 * best.joint_profit[0] for _, number, rewards, _ in watched.steps if number > 100]
    assert row["monopoly_found"] == found
    assert row["optimal_rounds"] == pytest.approx(sum(late) / len(late) if late else None)
    assert (row["forced_rounds"], row["mean_price"]) == (len(forced), pytest.approx(sum(own) / len(own)))
    assert row["collusiveness_index"] is None
    assert (row["together_share"], row["together_longest"], row["window_round"]) == (0, 0, None)


def test_the_treatments_do_what_they_are_there_for():
    rows = {case: find_scenario(case[0]).episode_metrics(played(*case)[1]) for case in CASES if case[0] == "evacuation"}
    assert rows["evacuation", "leaving"]["taken_out"] > 0
    assert rows["evacuation", "plain"]["exit_changes_after_message"] > 0
    assert rows["evacuation", "drop"]["exit_changes_after_message"] == 0
    late = rows["evacuation", "in_order_and_late"]["exit_changes_after_message"]
    assert rows["evacuation", "drop"]["change_rate_after_message"] is None
    assert late > 0
