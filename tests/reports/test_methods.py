"""What a report says of how it was made is what was configured, and what it is to be cited with."""

import json
import re
from pathlib import Path

import pytest
import yaml
from small import small_study

import llm_coop_envs
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.methods import methods, presets, seats_text, seeds_text, shared_switches, switches
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import marked, marks_text
from llm_coop_envs.runs.citation import AUTHORS, TITLE, WU_2024, entries
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.statistics.intervals import FEW

TREATED = """\
name: treated
source: Wu et al. 2024, a section; arXiv 2601.11369
seed: 3
conditions:
  - name: usual
    title: untreated
    scenario: bertrand
    preset: team_up_linear
    settings: {rounds: 12, collusion_window: 0}
    policies: {firm_0: {name: price_matching, options: {step: 0.25}}, firm_1: price_matching}
    seeds: [4, 5]
    pair: prices
  - name: silent
    scenario: bertrand
    preset: team_up_linear
    settings: {rounds: 12, collusion_window: 0}
    policies: price_matching
    seeds: [4, 5]
    pair: prices
    changes:
      - {from_round: 5, until_round: 8, settings: {talk: false}}
      - {from_round: 30, settings: {talk: false}}
  - {name: alone, scenario: kbc, settings: {talk: false, players: 3}, policies: poisson, seeds: [7]}
"""


@pytest.fixture(scope="module")
def treated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treated") / "run"
    run_study(small_study(TREATED), folder)
    return folder


def told(folder):
    run = open_run(folder)
    return " ".join(methods(run, *read_run(run)))


def test_methods_say_what_was_configured(treated):
    text = told(treated)
    for part in (
        f"'treated' was played with llm-coop-envs {llm_coop_envs.__version__}: 5 episodes of 3 conditions",
        "2 players and 12 rounds in an episode",
        "3 players and 4 rounds in an episode",
        "'silent' (talk; preset team_up_linear; talk = false in rounds 5 to 8; talk = false from round 30 on; 2 epi",
        "talk; preset team_up_linear; 2 episodes",
        'Preset team_up_linear: cost = 2, quality = 14, demand = "linear",',
        "Set besides in every condition: rounds = 12, collusion_window = 0.",
        "no talk",
        "bertrand/price_matching (scripted), kbc/poisson (scripted)",
        "no language model was asked",
        "4 to 5 (bertrand 'untreated', bertrand 'silent'); 7 (kbc 'alone')",
        "seed, 3",
        "played: bertrand 'untreated', bertrand 'silent'.",
        "A single episode has no interval.",
        "permutation",
        "No finished episode was left out.",
        "was illegal or missing",
    ):
        assert part in text, part
    assert not re.search(r"\d\.\d{9}", text)


def test_methods_of_what_was_not_finished(tmp_path):
    run_study(small_study(TREATED), tmp_path / "run", limit=1)
    text = told(tmp_path / "run")
    assert "1 episode of 1 condition." in text
    assert "Of 5 episodes of the study 4 had not been played." in text
    assert "permutation" not in text
    assert "95 % intervals" not in text


def test_switches_are_what_differs_from_the_preset_or_the_defaults(treated):
    usual, silent, alone = open_run(treated).conditions
    assert switches(alone) == {"players": "3"}
    both = shared_switches([usual, silent])
    assert both == {"rounds": "12", "collusion_window": "0"}
    assert presets([usual, silent])["team_up_linear"]["demand"] == '"linear"'
    assert presets([alone]) == {}
    page = write_report(treated, treated.parent / "report").read_text(encoding="utf-8")
    row = re.search(r'<tr id="condition-usual">.*?</tr>', page, re.DOTALL).group()
    assert "step = 0.25" in row
    assert "rounds = 12" not in row  # it stands above the table: every condition has it
    assert "rounds = 12" in page
    assert "preset team_up_linear" in row
    assert page.count("demand = &#34;linear&#34;") == 2  # once above the table, once in the methods
    assert "seeds 4 to 5" in row
    assert "seed 7<" in page


def test_shares_add_up_and_long_lists_of_seeds_are_cut(treated):
    mixed = small_study(
        TREATED.replace("policies: poisson", "policies: {mix: [{name: poisson, share: 5}, {name: level_k}]}")
    )
    assert seats_text(mixed.conditions[2]) == "all: 83.3 % kbc/poisson + 16.7 % kbc/level_k"
    assert seeds_text([9, 1, 4, 2], limit=3) == "9, 1, 4, \N{HORIZONTAL ELLIPSIS} (4)"


def test_changes_are_marked_where_they_begin_and_end(treated):
    section = read_run(open_run(treated))[0][0]
    usual, silent = section.conditions
    panel = section.episode_panel(silent, 0)
    assert [(one.at, one.label) for one in marked(panel, [silent]).marks] == [
        (4.5, "talk = false"),
        (8.5, "no longer talk = false"),
    ]
    assert marked(panel, [usual]).marks == []
    assert next(one.label for one in marked(panel, [usual, silent]).marks) == "silent: talk = false"
    assert marks_text([usual]) == ""
    (drawing,) = section.prices()
    assert "talk = false in rounds 5 to 8" in drawing.caption
    (axes,) = drawing.figure.axes
    assert "silent: talk = false" in {text.get_text() for text in axes.texts}


def test_several_changes_at_once_share_a_line(treated):
    silent = read_run(open_run(treated))[0][0].conditions[1]
    panel = read_run(open_run(treated))[0][0].episode_panel(silent, 0)
    first, second = marked(panel, [silent] * 5).marks
    assert first.label.split("\n") == ["silent: talk = false"] * 3 + ["..."]
    assert max(map(len, second.label.split("\n"))) <= 34


def test_the_software_is_cited_as_it_asks_for():
    file = Path(__file__).parents[2] / "CITATION.cff"
    cff = yaml.safe_load(file.read_text(encoding="utf-8"))
    (author,) = cff["authors"]
    assert (cff["title"], author["name"], str(cff["version"])) == (TITLE, AUTHORS, llm_coop_envs.__version__)
    (paper,) = cff["references"]
    for text in (paper["doi"], paper["authors"][-1]["family-names"], str(paper["year"])):
        assert text in WU_2024.bibtex


def test_archives_are_told_the_same():
    home = Path(__file__).parents[2]
    codemeta, zenodo = (
        json.loads((home / name).read_text(encoding="utf-8")) for name in ("codemeta.json", ".zenodo.json")
    )
    assert (codemeta["version"], codemeta["author"][0]["name"]) == (llm_coop_envs.__version__, AUTHORS)
    assert zenodo["creators"] == [{"name": AUTHORS}]
    assert codemeta["license"].endswith(f"/{zenodo['license']}")
    assert (codemeta["description"], codemeta["keywords"]) == (zenodo["description"], zenodo["keywords"])


def test_the_papers_that_a_study_names_are_cited():
    software, wu, number = entries("Wu et al. 2024, arXiv 2402.12327; arXiv 2601.11369")
    assert software.startswith("@software{llm_coop_envs,")
    assert wu == WU_2024.bibtex
    assert "eprint = {2601.11369}" in number
    for entry in entries("; ".join(paper for paper in ("Wu et al. 2024", "Calvano et al. 2020", "arXiv 2404.00806"))):
        assert entry.count("{") == entry.count("}")


def test_what_came_of_talk_is_a_part_of_the_page(tmp_path, treated):
    page = write_report(treated, tmp_path).read_text(encoding="utf-8")
    assert "Talk, and what came of it" in page
    (path,) = tmp_path.glob("tables/bertrand_talk_1_*.csv")
    assert "kept_share" in path.read_text(encoding="utf-8")
    fields = next(
        one["schema"]["fields"]
        for one in json.loads((tmp_path / "datapackage.json").read_text())["resources"]
        if one["name"] == "episodes"
    )
    kept = next(one for one in fields if one["name"] == "kept_share")
    assert "kept" in kept["description"]
    # Nobody could speak in the beauty contest.
    assert not list(tmp_path.glob("tables/kbc_talk*"))


MARKETS = """\
name: markets
conditions:
  - {name: low, scenario: bertrand, preset: calvano, settings: {rounds: 3}, policies: tit_for_tat, seeds: [0]}
  - {name: high, scenario: bertrand, preset: team_up, settings: {rounds: 3}, policies: tit_for_tat, seeds: [0]}
"""


def test_markets_with_other_prices_have_axes_of_their_own(tmp_path):
    run_study(small_study(MARKETS), tmp_path / "run")
    (section,) = read_run(open_run(tmp_path / "run"))[0]
    (low,), (high,) = (drawing.figure.axes for drawing in section.prices())
    assert low.get_ylim()[1] < 3 < 6 < high.get_ylim()[1]


def test_the_method_of_intervals_that_is_named_is_the_one_that_is_used(treated):
    text = told(treated)
    assert "on the scale of the logarithm or logit" in text
    assert f"fewer than {FEW} episodes" in text


def test_an_evacuation_has_no_more_rounds_than_its_limit(tmp_path):
    settings = "{people: 12, rows: 11, cols: 11, rounds: 3, control: exit, talk: false}"
    condition = f"{{name: a, scenario: evacuation, settings: {settings}, policies: nearest_exit, seeds: [1, 2]}}"
    run_study(small_study(f"name: short\nconditions:\n  - {condition}\n"), tmp_path / "run")
    assert "12 players and 3 rounds in an episode" in told(tmp_path / "run")
    (section,), _ = read_run(open_run(tmp_path / "run"))
    (drawing,) = section.snapshots()
    assert "after rounds 0, 2. " in drawing.caption
    assert "The episode ended before round 4." in drawing.caption


LEAVING = """\
name: leaving
conditions:
  - name: prices
    scenario: bertrand
    preset: team_up_linear
    settings: {rounds: 6, collusion_window: 0, firms: 3}
    policies: price_matching
    seeds: [1]
    pair: prices
    variants:
      - {name: stay}
      - {name: leave, changes: [{from_round: 4, players: firm_2, settings: {present: false}}]}
"""


def test_the_nash_price_that_is_drawn_is_said_to_be_that_of_all_firms_where_some_leave(tmp_path):
    run_study(small_study(LEAVING), tmp_path / "run")
    (section,), _ = read_run(open_run(tmp_path / "run"))
    assert "price, while all firms are there (others hold once some have left)." in section.prices()[0].caption
