"""What was announced and what was chosen, from events."""

import pytest

from llm_coop_envs.benchmarks.measures.process import ABOUT, process_measures, talk_rounds
from llm_coop_envs.core.registry import find_scenario

SETTINGS = {
    "bertrand": {"firms": 3, "rounds": 2, "exchanges": 2, "collusion_window": 0},
    "kbc": {"players": 3, "rounds": 1, "session": "repeated"},
    "evacuation": {"people": 3, "rows": 9, "cols": 9},
}


def episode(scenario, said, chosen):
    """A record of one round: who said what, in order, and who chose what, in choices."""
    env = find_scenario(scenario).environment(record=True, **SETTINGS[scenario])
    env.begin(seed=0)
    names, phase = env.possible_agents, "exit" if scenario == "evacuation" else "act"
    events = [env.events[0]]
    events += [{"type": "message", "round": 1, "agent": names[i], "text": text} for i, text in said]
    events += [
        {"type": "choice", "round": 1, "agent": names[i], "phase": phase, "choice": value, "flags": flags}
        for i, value, flags in chosen
    ]
    return names, events, find_scenario(scenario).measured


def test_announcements_are_kept_broken_or_not_there():
    said = [(0, "Let us all ask 1.8."), (1, "Agreed, I will ask 1.8 this round."), (2, "I will ask 1.9.")]
    names, events, measures = episode("bertrand", said, [(0, 1.8, []), (1, 1.8, []), (2, 1.5, [])])
    (found,) = talk_rounds(events, measures)
    assert found.agreement == (1.8, [names[0], names[1]])
    assert (found.kept, found.broken) == ([names[0], names[1]], [names[2]])
    row = process_measures(events, measures)
    assert row == {
        "announced_share": 1.0,
        "announcements_kept": 2,
        "announcements_broken": 1,
        "kept_share": pytest.approx(2 / 3),
        "agreements": 1,
        "agreed_share": pytest.approx(2 / 3),
    }
    assert row.keys() == ABOUT.keys()


def test_the_last_announcement_counts_and_what_is_no_number_changes_nothing():
    said = [(0, "I will ask 1.8."), (0, "No: I will ask 1.6."), (0, "Nice weather."), (1, "What about round 3?")]
    names, events, measures = episode("bertrand", said, [(0, 1.6, []), (1, 1.6, []), (2, 1.6, ["illegal_choice"])])
    (found,) = talk_rounds(events, measures)
    assert found.announced == {names[0]: 1.6}
    assert set(found.chosen) == set(names[:2])
    assert found.agreement is None
    assert process_measures(events, measures)["agreed_share"] == 0.0


def test_without_talk_nothing_is_kept():
    _, events, measures = episode("kbc", [], [(0, 7, []), (1, 7, [])])
    row = process_measures(events, measures)
    assert row["kept_share"] is None
    assert (row["announced_share"], row["agreements"]) == (0.0, 0)


def test_integers_and_options_are_read_as_what_they_stand_for():
    names, events, measures = episode("kbc", [(0, "I will name 17."), (1, "17 it is.")], [(0, 17, []), (1, 17, [])])
    assert talk_rounds(events, measures)[0].agreement == (17.0, names[:2])
    said = [(0, "I am going to the left exit."), (1, "The left exit is crowded. I am going to the bottom exit.")]
    names, events, measures = episode("evacuation", said, [])
    exits = events[0]["room"]["exit_names"]
    chosen = {names[0]: exits.index("left"), names[1]: exits.index("left")}
    events += [
        {"type": "choice", "round": 1, "agent": who, "phase": phase, "choice": what, "flags": []}
        for who, what in chosen.items()
        for phase in ("exit", "move")
    ]
    (found,) = talk_rounds(events, measures)
    assert (found.kept, found.broken) == ([names[0]], [names[1]])


def test_on_a_grid_a_choice_is_the_price_it_lists():
    scenario = find_scenario("bertrand")
    env = scenario.environment(record=True, preset="calvano", rounds=1, talk=True)
    env.begin(seed=0)
    start, grid, name = env.events[0], env.settings.grids[0], env.possible_agents[0]
    events = [
        start,
        {"type": "message", "round": 1, "agent": name, "text": f"I will ask {grid[7]:.6g}."},
        {"type": "choice", "round": 1, "agent": name, "phase": "act", "choice": 7, "flags": []},
    ]
    assert talk_rounds(events, scenario.measured)[0].kept == [name]


def test_a_scenario_that_does_not_say_what_is_asked_is_refused():
    from dataclasses import replace

    _, events, measures = episode("kbc", [], [])
    with pytest.raises(ValueError, match="what is asked"):
        talk_rounds(events, replace(measures, asked=None))
