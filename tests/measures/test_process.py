"""What was announced and what was chosen, from events."""

from dataclasses import replace

import numpy as np
import pytest

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.kbc.scripted import KBCPolicy, numbers_in
from llm_coop_envs.measures.process import ABOUT, process_measures, talk_rounds
from llm_coop_envs.measures.topics import TOPICS
from llm_coop_envs.policies import make, play

SETTINGS = {
    "bertrand": {"firms": 3, "rounds": 2, "exchanges": 2, "collusion_window": 0},
    "kbc": {"players": 3, "rounds": 1, "session": "repeated"},
    "evacuation": {"people": 3, "rows": 9, "cols": 9},
}


def episode(scenario, messages, chosen, **settings):
    """A record of one round: who said what, in order, and who chose what, in choices."""
    env = find_scenario(scenario).environment(record=True, **SETTINGS[scenario], **settings)
    env.begin(seed=0)
    names, phase = env.possible_agents, "exit" if scenario == "evacuation" else "act"
    events = [env.events[0]]
    events += [
        {"type": "message", "round": 1, "agent": names[i], "text": text, "hearers": None} for i, text in messages
    ]
    events += [
        {"type": "choice", "round": 1, "agent": names[i], "phase": phase, "choice": value, "flags": flags}
        for i, value, flags in chosen
    ]
    return names, events, find_scenario(scenario)


def test_announcements_are_kept_broken_or_not_there():
    messages = [(0, "Let us all ask 1.8."), (1, "Agreed, I will ask 1.8 this round."), (2, "I will ask 1.9.")]
    names, events, scenario = episode("bertrand", messages, [(0, 1.8, []), (1, 1.8, []), (2, 1.5, [])])
    (talk_round,) = talk_rounds(events, scenario.measured)
    assert talk_round.agreement == (1.8, [names[0], names[1]])
    assert (talk_round.keepers, talk_round.breakers) == ([names[0], names[1]], [names[2]])
    row = process_measures(events, scenario)
    assert row.keys() == ABOUT.keys()
    assert {name: row[name] for name in list(row)[:6]} == {
        "announced_share": 1.0,
        "announcements_kept": 2,
        "announcements_broken": 1,
        "kept_share": pytest.approx(2 / 3),
        "agreements": 1,
        "agreed_share": pytest.approx(2 / 3),
    }


def test_the_last_announcement_counts_and_what_is_no_number_changes_nothing():
    messages = [(0, "I will ask 1.8."), (0, "No: I will ask 1.6."), (0, "Nice weather."), (1, "What about round 3?")]
    names, events, scenario = episode("bertrand", messages, [(0, 1.6, []), (1, 1.6, []), (2, 1.6, ["illegal_choice"])])
    (talk_round,) = talk_rounds(events, scenario.measured)
    assert talk_round.announced == {names[0]: 1.6}
    assert set(talk_round.chosen) == set(names[:2])
    assert talk_round.agreement is None
    assert process_measures(events, scenario)["agreed_share"] == 0.0


def test_without_talk_nothing_is_kept():
    _, events, scenario = episode("kbc", [], [(0, 7, []), (1, 7, [])])
    row = process_measures(events, scenario)
    assert row["kept_share"] is None
    assert (row["announced_share"], row["agreements"]) == (0.0, 0)


def test_integers_and_options_are_read_as_what_they_stand_for():
    names, events, scenario = episode("kbc", [(0, "I will name 17."), (1, "17 it is.")], [(0, 17, []), (1, 17, [])])
    assert talk_rounds(events, scenario.measured)[0].agreement == (17.0, names[:2])
    messages = [(0, "I am going to the left exit."), (1, "The left exit is crowded. I am going to the bottom exit.")]
    names, events, scenario = episode("evacuation", messages, [])
    exits = events[0]["room"]["exit_names"]
    chosen = {names[0]: exits.index("left"), names[1]: exits.index("left")}
    events += [
        {"type": "choice", "round": 1, "agent": agent, "phase": phase, "choice": choice, "flags": []}
        for agent, choice in chosen.items()
        for phase in ("exit", "move")
    ]
    (talk_round,) = talk_rounds(events, scenario.measured)
    assert (talk_round.keepers, talk_round.breakers) == ([names[0]], [names[1]])


def test_on_a_grid_a_choice_is_the_price_it_lists():
    scenario = find_scenario("bertrand")
    env = scenario.environment(record=True, preset="calvano", rounds=1, talk=True)
    env.begin(seed=0)
    start, grid, name = env.events[0], env.settings.grids[0], env.possible_agents[0]
    events = [
        start,
        {"type": "message", "round": 1, "agent": name, "text": f"I will ask {grid[7]:.6g}.", "hearers": None},
        {"type": "choice", "round": 1, "agent": name, "phase": "act", "choice": 7, "flags": []},
    ]
    assert talk_rounds(events, scenario.measured)[0].keepers == [name]


def test_a_scenario_that_does_not_say_what_is_asked_has_topics_alone():
    _, events, scenario = episode("kbc", [(0, "Let us all name 17 together.")], [])
    with pytest.raises(ValueError, match="what is asked"):
        talk_rounds(events, replace(scenario.measured, asked=None))
    row = process_measures(events, replace(scenario, measures=replace(scenario.measured, asked=None)))
    assert {name.rpartition("_change")[0] or name for name in row} == {f"talk_of_{name}" for name in TOPICS}
    assert row["talk_of_cooperation"] == 1.0


def test_without_talk_there_are_no_columns():
    _, events, scenario = episode("kbc", [], [(0, 7, [])], talk=False)
    assert process_measures(events, scenario) == {}


def test_heard_is_what_was_delivered_to_whom():
    names, events, scenario = episode("evacuation", [], [])
    exits = events[0]["room"]["exit_names"]

    def say(agent, text, hearers, **fields):
        return {"type": "message", "round": 1, "agent": names[agent], "text": text, "hearers": hearers, **fields}

    events += [
        say(0, f"To the {exits[0]} exit!", [names[1]]),
        say(2, f"To the {exits[1]} exit!", [names[1]], delivered={"treatment": "drop", "text": None}),
        say(1, f"To the {exits[1]} exit!", [names[2]], delivered={"treatment": "delay", "text": "left", "round": 2}),
        {"type": "choice", "round": 1, "agent": names[1], "phase": "exit", "choice": 0, "flags": []},
        {"type": "choice", "round": 2, "agent": names[2], "phase": "exit", "choice": 0, "flags": []},
    ]
    first, second = talk_rounds(events, scenario.measured)
    assert (first.heard, second.heard) == ({names[1]: (0.0,)}, {names[2]: (float(exits.index("left")),)})


def test_everyone_is_the_same_as_all_others_by_name():
    rng = np.random.default_rng(0)
    messages = [(int(speaker), f"I will name {number}.") for speaker, number in rng.integers(0, 3, (12, 2))]
    names, events, scenario = episode("kbc", messages, [(speaker, 1, []) for speaker in range(3)])
    named = [
        {**event, "hearers": [agent for agent in names if agent != event["agent"]]} if "text" in event else event
        for event in events
    ]
    (to_all,), (by_name,) = (talk_rounds(some, scenario.measured) for some in (events, named))
    assert to_all.heard == by_name.heard
    assert {len(values) for values in to_all.heard.values()} == {
        12 - [speaker for speaker, _ in messages].count(k) for k in range(3)
    }


def test_a_regulator_neither_announces_nor_chooses():
    scenario = find_scenario("bertrand")
    powers = {"on": ["talk", "choices"], "powers": ["log"]}
    env = scenario.environment(record=True, firms=2, rounds=2, collusion_window=0, regulator=powers)
    firms = {name: make("bertrand/price_matching") for name in env.possible_agents[:-1]}
    play(env, {**firms, env.possible_agents[-1]: make("regulator/always", action="log")}, seed=0)
    assert any(event["type"] == "regulation" for event in env.events)
    assert process_measures(env.events, scenario)["kept_share"] == 1.0


class Listener(KBCPolicy):
    """Names a number of its own, or one that it heard, and says any; `listens` says how often it does which."""

    def __init__(self, listens):
        self.listens = listens

    def number(self, slots):
        heard = [number for message in slots.heard if not message.own for number in numbers_in(message.text, 0, 100)]
        return heard[-1] if heard and self.episode.rng.random() < self.listens else self.draw_number()

    def say(self, slots):
        return f"I am thinking of {self.spell_number(self.draw_number())}."


def heard_and_done(policy):
    """The shares of what was heard and followed, and by chance, as means over episodes: (2, 2)."""
    scenario = find_scenario("kbc")
    rows = []
    for seed in range(20):
        env = scenario.environment(record=True, players=2, session="repeated", rounds=20, talk_mode="simultaneous")
        play(env, policy, seed=seed)
        row = process_measures(env.events, scenario)
        rows.append([[row[f"{measure}_{how}"] for how in ("share", "by_chance")] for measure in ("followed", "moved")])
    return np.mean(rows, axis=0)


def test_what_is_used_is_above_chance_and_what_is_not_is_at_chance():
    (followed, by_chance), (moved, moved_by_chance) = heard_and_done(Listener(0.5))
    assert followed > by_chance + 0.3
    assert moved > moved_by_chance + 0.05
    (followed, by_chance), (moved, moved_by_chance) = heard_and_done(Listener(0.0))
    assert followed == pytest.approx(by_chance, abs=0.02)
    assert moved == pytest.approx(moved_by_chance, abs=0.03)
