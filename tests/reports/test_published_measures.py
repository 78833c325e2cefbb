"""Published measures stand beside conditions that played the same game, and beside no others."""

import re

import pytest
from invoking import invoke
from small import small_study

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.reports.published_measures import published_tables
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import is_shown_beside
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import load_study, shipped_studies

MARKETS = """\
name: markets
conditions:
  - {name: two, scenario: bertrand, preset: fish, policies: best_reply, seeds: [0]}
  - {name: alone, scenario: bertrand, preset: fish_monopoly, policies: best_reply, seeds: [0]}
  - {name: unit, scenario: bertrand, preset: fish_monopoly, policies: best_reply, seeds: [0],
     settings: {price_unit: 10}}
  - {name: other, scenario: bertrand, preset: calvano, settings: {rounds: 2}, policies: best_reply, seeds: [0]}
"""


SOURCE = "source: EconEvals; Fish et al.; Romero et al.\n"


def test_each_value_stands_beside_its_own_game(tmp_path):
    run = run_study(small_study(SOURCE + MARKETS), tmp_path / "run").run
    ((section,), _) = read_run(run)
    section.source = run.manifest["source"]
    (table,) = published_tables(section)
    index, optimal, price = (
        table.head.index(name) for name in ("collusiveness_index", "optimal_rounds", "mean_price_last")
    )
    rows = {row.name: ["", *(cell.text for cell in row.cells)] for row in table.rows}
    assert "other" not in rows
    assert rows["GPT-4o"][index] == "0.71"
    assert rows["Mistral Large, one firm"][price] == "1.8028"
    dash = rows["GPT-4o"][price]
    # One unit of money is published, and a single firm has no index.
    assert [rows[name][price] == dash for name in ("two", "alone", "unit")] == [True, False, True]
    assert [rows[name][index] == dash for name in ("two", "alone", "unit")] == [False, True, True]
    assert rows["unit"][optimal] == "1"
    assert any(note.startswith("Claude 3.5 Sonnet; Gemini 1.5 Pro; GPT-4o: EconEvals") for note in table.notes)
    assert any("3.7 % for each firm more" in note for note in table.notes)


#: What stands in the reports of shipped studies, beside how many of their conditions.
BESIDE = {
    "bertrand_robustness": {"GPT-4, temperatures": 5},
    "bertrand_talk": {
        "GPT-4, talk until round 400": 1,
        "GPT-4, talk, selfish persona from round 400": 3,
        "GPT-4, encouraged to cooperate": 3,
    },
    "econ_evals": {"Claude 3.5 Sonnet": 6, "Gemini 1.5 Pro": 6, "GPT-4o": 6},
    "evacuation_robustness": {"GPT-4, 400 people": 1},
    "fish": {"GPT-4, one firm": 3, "Mistral Large, one firm": 1, "Mistral Large, two to five firms": 27},
    "heterogeneity": {"Firms that are not alike": 4},
    "kbc_one_shot": {
        "Models asked once": 5,
        "People, readers of the New York Times": 3,
        "Two players": 2,
    },
    "kbc_rewards": {
        "GPT-4, amplified reward": 1,
        "GPT-4, independent reward": 1,
        "GPT-4, exclusive reward": 1,
        "GPT-4, play judged by hand": 6,
    },
}


def test_published_values_stand_in_the_studies_that_they_concern_and_each_in_one():
    found = {}
    for name in shipped_studies():
        study = load_study(name)
        for one in study.conditions:
            for entry in one.spec.published.get("measures", ()):
                if study.source and is_shown_beside(one, entry, study.source):
                    found.setdefault(name, {}).setdefault(entry["title"], set()).add(one.name)
    assert {name: {title: len(arms) for title, arms in titles.items()} for name, titles in found.items()} == BESIDE
    told = {title for titles in BESIDE.values() for title in titles}
    assert {e["title"] for one in scenarios().values() for e in one.published.get("measures", ())} == told


def test_a_study_without_a_source_is_shown_nobodys_findings(tmp_path):
    """A study of one's own in the market of a paper was shown what that paper found in another study."""
    for name in shipped_studies():
        for one in load_study(name).conditions:
            for entry in one.spec.published.get("measures", ()):
                assert not is_shown_beside(one, entry, ""), (name, one.name, entry["title"])
    run = run_study(small_study(MARKETS), tmp_path / "run").run
    ((section,), _) = read_run(run)
    assert published_tables(section) == []


PAPERS_GAMES = """\
name: games
conditions:
  - &kbc {name: kbc, scenario: kbc, preset: two_thirds, policies: poisson, seeds: [1, 2], pair: kbc}
  - {<<: *kbc, name: silent, settings: {talk: false}}
  - {name: talk, scenario: bertrand, preset: team_up_linear, policies: price_matching, seeds: [1]}
  - {name: room, scenario: evacuation, preset: team_up, policies: nearest_exit, seeds: [4]}
"""
WORDS_OF_OTHERS = re.compile(r"published|GPT-4|New York Times|speak of collusion", re.IGNORECASE)


@pytest.mark.parametrize(
    "source",
    [
        "source: a paper of mine\n",
        pytest.param("", marks=pytest.mark.rare),
        pytest.param("source: Wu et al. 2024\n", marks=pytest.mark.rare),
    ],
)
def test_the_page_of_a_study_shows_nothing_of_papers_that_it_does_not_name(source, tmp_path):
    """Tables, figures, captions, the first screen and its small pictures, in the very games of a paper."""
    run_study(small_study(source + PAPERS_GAMES), tmp_path / "run", workers=1)
    assert invoke("report", tmp_path / "run").exit_code == 0
    page = (tmp_path / "run" / "report" / "index.html").read_text()
    shown = re.sub(r"<style>.*?</style>|<script.*?</script>|data:[^\"]*|<pre.*?</pre>", "", page, flags=re.DOTALL)
    found = {match[0] for match in WORDS_OF_OTHERS.finditer(shown)}
    of_others = {"published", "Published", "GPT-4", "New York Times", "speak of collusion"}
    assert found == (of_others if "Wu" in source else set())


def test_a_published_mean_says_of_how_many():
    """Single answers of models stood among means."""
    for scenario in scenarios().values():
        for entry in scenario.published.get("measures", ()):
            if "mean" in entry.get("measure", ""):
                assert "runs" in entry or re.search(
                    r"[\d,]+ (answers|runs)|of how many runs was not read", entry["source"]
                ), entry["title"]
