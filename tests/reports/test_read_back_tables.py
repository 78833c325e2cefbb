"""Tables of comparisons, power, published measures and answers, and pages on runs that were branched, cut short or
misunderstood, compared with a reckoning of its own from what was recorded: events and journal, nothing in between.
"""

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from model_studies import answering, asking, play
from reading_back import DASH, check_cell, played, prices_of_each, rounds_in
from scipy import stats
from small import small_study

import llm_coop_envs
from llm_coop_envs.policies.llm.journal import read_questions
from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.reports.contrast_tables import contrast_tables
from llm_coop_envs.reports.contrasts import compare_arms
from llm_coop_envs.reports.published_measures import published_tables
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.branch import begin_branch, plan_branch
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study

FEW = settings(phases=(Phase.explicit, Phase.generate), max_examples=3, derandomize=True, database=None)
MANY = settings(FEW, max_examples=150)
MEASURES = ("variance_last", "mean_last")


def last_numbers(events):
    return np.array(rounds_in(events)[-1]["choices"], dtype=float)


def signs_p(differences):
    """The share of all ways to turn pairs round whose mean is at least as far from 0."""
    found = np.abs(np.array(list(product((1, -1), repeat=len(differences)))) @ differences)
    return np.mean(found >= abs(sum(differences)) - 1e-9 * max(1.0, np.abs(differences).max()))


def pairs_for(effect, power):
    """By trying: the fewest pairs, from 6 on, with that power."""
    n = np.arange(6, 1500)
    bound, shift = stats.t.ppf(0.975, n - 1), abs(effect) * np.sqrt(n)
    # Of effects that are very large SciPy knows neither tail.
    found = np.nan_to_num(stats.nct.sf(bound, n - 1, shift), nan=1.0)
    opposite = np.nan_to_num(stats.nct.cdf(-bound, n - 1, shift), nan=0.0)
    return n[np.argmax(found + opposite >= power)]


PAIR = st.fixed_dictionaries(
    {
        "players": st.integers(3, 6),
        "policies": st.sampled_from([("poisson", "uniform"), ("uniform", "uniform")]),
        "seeds": st.lists(st.integers(0, 30), min_size=6, max_size=8, unique=True),
    }
)


@FEW
@given(PAIR)
def test_differences_and_the_pairs_that_would_find_them(drawn):
    common = {"players": drawn["players"], "session": "single", "talk": False}
    arms = [("two_thirds", common, policy, drawn["seeds"]) for policy in drawn["policies"]]
    section, events = played("kbc", arms, pair="p")
    tables = contrast_tables(compare_arms([section], MEASURES), section)
    rows = {row.name: row for row in tables[0].rows}
    values = {
        "variance_last": [[np.var(last_numbers(one)) for one in events[name]] for name in ("c0", "c1")],
        "mean_last": [[np.mean(last_numbers(one)) for one in events[name]] for name in ("c0", "c1")],
    }
    # Three who draw a number may draw the same with another seed: an arm with copies and under 6 courses is not tested.
    distinct = min(len({tuple(last_numbers(one)) for one in own}) for own in events.values())
    if distinct < 6:
        assert all(row.cells[5].number is None for row in rows.values())
        return
    raw, power = {}, {row.name: row for table in tables[1:] for row in table.rows}
    for name, (first, second) in values.items():
        apart = np.subtract(second, first)
        a, b, difference, effect, _, p, _ = (cell.number for cell in rows[name].cells)
        assert (a.mean, b.mean, difference.mean) == pytest.approx((np.mean(first), np.mean(second), apart.mean()))
        assert rows[name].cells[4].text == str(len(apart))
        raw[name] = signs_p(apart)
        assert p == pytest.approx(raw[name])
        if apart.std() < 1e-9:
            assert effect is None
            assert name not in power
            continue
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / math.sqrt(len(apart))
        assert (difference.low, difference.high) == pytest.approx((apart.mean() - half, apart.mean() + half))
        size = apart.mean() / apart.std(ddof=1)
        assert effect.mean == pytest.approx(size)
        for end, chance in ((effect.low, 0.975), (effect.high, 0.025)):
            root = math.sqrt(len(apart))
            assert stats.nct.cdf(size * root, len(apart) - 1, end * root) == pytest.approx(chance, abs=1e-4)
        told = power[name].cells
        assert told[0].text == str(len(apart))
        for cell, wanted in zip(told[3:], (0.8, 0.9), strict=True):
            # For less it takes long to try, and up to 12 pairs the power is that of the permutation test.
            if abs(size) > 0.1 and pairs_for(size, wanted) > 12:
                assert cell.text == f"{pairs_for(size, wanted):,}"
    ordered = sorted(raw, key=raw.get)
    smallest = min(1.0, 2 * raw[ordered[0]])
    holm = {ordered[0]: smallest, ordered[1]: min(1.0, max(smallest, raw[ordered[1]]))}
    assert {name: row.cells[-1].number for name, row in rows.items()} == pytest.approx(holm)


# Contests and markets that were published, and what nobody published: another number of players or firms, a regulator.
WATCHED = {"regulator": {"powers": ["log"], "announced": False}}
GAMES = [
    ("kbc", "two_thirds", {"session": "single", "talk": False, "players": 24}, "mean_first"),
    ("kbc", "two_thirds", {"session": "single", "talk": False, "players": 5}, None),
    ("kbc", "two_thirds", {"session": "single", "talk": False, "players": 24, **WATCHED}, None),
    ("bertrand", "fish_monopoly", {}, "mean_price_last"),
    ("bertrand", "fish_monopoly", {"rounds": 7}, None),
    ("bertrand", "fish_monopoly", WATCHED, None),
]


def recorded(measure, events):
    found = rounds_in(events)
    return np.mean(found[0]["choices"]) if measure == "mean_first" else np.mean([e["prices"] for e in found[-50:]])


@FEW
@given(st.lists(st.sampled_from(GAMES), min_size=1, max_size=3, unique_by=str), st.integers(1, 3))
def test_published_measures_beside_ours(games, episodes):
    for scenario in {game[0] for game in games}:
        mine = [game for game in games if game[0] == scenario]
        policy = {"kbc": "poisson", "bertrand": "best_reply"}[scenario]
        seats = "{all: %s, regulator_0: regulator/never}"
        section, events = played(
            scenario,
            [
                (preset, options, seats % policy if "regulator" in options else policy, list(range(episodes)))
                for _, preset, options, _ in mine
            ],
        )
        file = llm_coop_envs.__path__[0] + f"/{scenario}/published.json"
        with open(file, encoding="utf-8") as text:
            known = json.load(text)["measures"]
        section.source = ", ".join(entry.get("study", "") for entry in known)
        tables = published_tables(section)
        wanted = {f"c{i}": measure for i, (*_, measure) in enumerate(mine) if measure is not None}
        if not wanted:
            assert not any(row.cells for table in tables for row in table.rows)
            continue
        (table,) = tables
        assert {row.name for row in table.rows if not row.published} == set(wanted)
        for row in table.rows:
            for measure, cell in zip(table.head[1:], row.cells, strict=True):
                if row.published:
                    values = [e["value"] for e in known if e["title"] == row.name and e.get("measure") == measure]
                    assert [f"{value:g}" for value in values] == ([] if cell.text == DASH else [cell.text])
                elif measure == wanted[row.name]:
                    check_cell(
                        cell, [recorded(measure, one) for one in events[row.name]], 1 if scenario == "kbc" else 2
                    )


ASKED = """\
name: asked
seed: 1
conditions:
  - {name: kbc, scenario: kbc, settings: {players: 3, exchanges: 1}, policies: poisson, seeds: [0, 1]}
  - {name: firms, scenario: bertrand, settings: {rounds: 4, exchanges: 1, collusion_window: 0},
     policies: price_matching, seeds: [0, 1, 2]}
"""
FORCED = 1.7


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run whose model often says what nobody can read, and a branch of its firms."""
    folder = tmp_path_factory.mktemp("asked")
    with answering(faults=Faults(shares={"garbage": 0.5, "truncated": 0.2}, seed=4)) as server:
        play(server, folder / "run", ASKED)
        arms = folder / "arms.yaml"
        arms.write_text(f"arms: [{{name: forced, policy: {{name: forced, options: {{choice: {FORCED}}}}}}}]")
        branch = plan_branch(folder / "run", 3, arms, lambda study: study)
        begin_branch(branch, folder / "branch")
        run_study(branch.study, folder / "branch", access=asking(server))
    return folder


@pytest.mark.parametrize("name", ["run", "branch"])
def test_what_became_of_the_answers_is_what_the_journal_holds(folders, name):
    run = open_run(folders / name)
    _, answers = read_run(run)
    outcomes, by_question = answers.tables()[:2]
    decisions, counts = {}, {}
    for key, line in read_questions(run.folder):
        condition, _, _ = key.episode.rpartition("/")
        for row in ((condition,), (condition, key.call)):
            decisions.setdefault(row, set()).add((key.episode, key.agent, key.step, key.call))
            found = counts.setdefault(row, Counter())
            reply = line["reply"]
            found["prompt"] += reply["usage"]["prompt"]
            found["completion"] += reply["usage"]["completion"]
            found["cut off"] += reply["finish_reason"] == "length"
    told = {(row.conditions[0],): row for row in outcomes.rows if row.name != "all"}
    told |= {(row.conditions[0], row.name): row for row in by_question.rows}
    assert set(told) == set(decisions)
    for place, row in told.items():
        cells = dict(zip(outcomes.head[1:], row.cells, strict=True))
        assert cells["decisions"].text == f"{len(decisions[place]):,}"
        assert cells["tokens"].text == f"{counts[place]['prompt']:,}"
        assert cells["tokens"].below == f"+ {counts[place]['completion']:,}"
        assert cells["cut off"].text == f"{counts[place]['cut off']:,}"
        # Whatever was chosen by a fallback was flagged when it was played.
        if place[1:] in (("choose",), ("price",)):
            (seeds,) = [one.seeds for one in run.conditions if one.name == place[0]]
            events = [event for seed in seeds for event in run.read_events(place[0], seed)[1]]
            flagged = sum(bool(event["flags"]) for event in events if event["type"] == "choice")
            assert cells["fallback"].text == f"{flagged:,}"
    assert any(row.cells[4].text != "0" for row in outcomes.rows)


def test_rows_with_and_without_fallbacks_are_those_of_the_events(folders):
    run = open_run(folders / "run")
    kbc = next(one for one in read_run(run)[0] if one.scenario.name == "kbc")
    rows = {row.name: row for table in kbc.tables() for row in table.rows}
    kept = []
    for seed in (0, 1):
        _, events = run.read_events("kbc", seed)
        flagged = {(e["round"], e["agent"]) for e in events if e["type"] == "choice" and e["flags"]}
        names = events[0]["agents"]
        kept.append(
            {
                e["round"]: [c for who, c in zip(names, e["choices"], strict=True) if (e["round"], who) not in flagged]
                for e in rounds_in(events)
            }
        )
        kept[-1]["all"] = {e["round"]: e["choices"] for e in rounds_in(events)}
    for place, cell in enumerate(rows["kbc"].cells):
        check_cell(cell, [np.var(one["all"][place]) for one in kept], 0)
    # An episode of which nothing is left is no episode of that row, which says how many there are.
    some = [one for one in kept if any(one[k] for k in one if k != "all")]
    unflagged = rows["kbc, without flagged choices"]
    assert f"n = {len(some)}" in unflagged.below
    values = [[np.var(one[k]) if one[k] else None for one in some] for k in range(len(rows["kbc"].cells))]
    for cell, found in zip(unflagged.cells, values, strict=True):
        check_cell(cell, found, 0)


def test_a_branch_shows_what_the_run_played_and_then_what_the_arm_did(folders):
    source, branch = open_run(folders / "run"), open_run(folders / "branch")
    (section,), _ = read_run(branch)
    drawn = prices_of_each(section)
    before = [[e["prices"] for e in rounds_in(source.read_events("firms", seed)[1])] for seed in (0, 1, 2)]
    assert set(drawn) == {"firms-as_it_was", "firms-forced"}
    for name, drawing in drawn.items():
        (axes,) = drawing.figure.axes
        (thick,) = [line for line in axes.lines if "n = " in str(line.get_label())]
        wanted = np.mean(before, axis=(0, 2))
        wanted[2:] = FORCED if name == "firms-forced" else wanted[2:]
        assert thick.get_ydata() == pytest.approx(wanted)
    (table,) = section.tables()
    for row in (one for one in table.rows if "without" not in one.name):
        played = [rounds_in(branch.read_events(row.conditions[0], seed)[1]) for seed in (0, 1, 2)]
        # What the study forces is drawn, because rivals meet with it, and is none of the firms' prices.
        chosen = 2 if row.conditions == ("firms-forced",) else None
        found = [e["prices"] for rounds in played for e in rounds[:chosen]]
        assert float(row.cells[-1].text) == pytest.approx(np.mean(found), abs=0.006)


@FEW
@given(st.integers(1, 5), st.integers(3, 5))
def test_a_run_that_was_cut_short_shows_what_was_finished(tmp_path_factory, limit, players):
    text = "name: short\nconditions:\n"
    for name in ("a", "b"):
        text += f"  - {{name: {name}, scenario: kbc, settings: {{players: {players}, session: single, talk: false}},\n"
        text += "     policies: uniform, seeds: [0, 1, 2]}\n"
    folder = tmp_path_factory.mktemp("short") / "run"
    run = run_study(small_study(text), folder, limit=limit).run
    (section,), _ = read_run(open_run(folder))
    there = {}
    for name, seed in run.finished():
        there.setdefault(name, {})[seed] = np.var(last_numbers(run.read_events(name, seed)[1]))
    assert sum(map(len, there.values())) == limit
    (table,) = section.tables()
    assert {row.name for row in table.rows} == set(there)
    for row in table.rows:
        assert row.below == f"scripted, n = {len(there[row.name])}"
        check_cell(row.cells[0], list(there[row.name].values()), 0)


@pytest.mark.rare
@pytest.mark.parametrize(
    ("check", "drawn"),
    [
        (test_differences_and_the_pairs_that_would_find_them, (PAIR,)),
        (
            test_published_measures_beside_ours,
            (st.lists(st.sampled_from(GAMES), min_size=1, max_size=3, unique_by=str), st.integers(1, 3)),
        ),
    ],
)
@MANY
@given(data=st.data())
def test_many_more(check, drawn, data):
    check.hypothesis.inner_test(*map(data.draw, drawn))
