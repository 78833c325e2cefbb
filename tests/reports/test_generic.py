"""A scenario that brings no section of its own has one all the same, in reports and in figures."""

from dataclasses import replace

import pytest
from small import small_study
from toy import ToyEnv

from llm_coop_envs.core import registry
from llm_coop_envs.core.scenario import Measures, Scenario
from llm_coop_envs.policies import ScriptedPolicy
from llm_coop_envs.render.charts.layout import panels_of
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.figures import draw_figures, known_figures
from llm_coop_envs.reports.measure_tables import measures_table
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.statistics.intervals import COUNT, FROM_0, YES_OR_NO, mean_interval

TOY = """\
name: toys
conditions:
  - {name: loud, title: they talk, scenario: toy, policies: {mix: [{name: two, options: {temperature: 0.5}}]},
     settings: {rounds: 4}, seeds: [1, 2, 3]}
  - {name: short, scenario: toy, policies: {mix: [{name: two, options: {temperature: 1.5}}]},
     settings: {rounds: 2, talk: false}, seeds: [1, 2]}
  - {name: beside, scenario: kbc, settings: {players: 3, talk: false}, policies: uniform, seeds: [1]}
"""


class Two(ScriptedPolicy):
    """Names 2 and counts aloud."""

    def decide(self, request):
        slots = request.info["slots"]
        return {"choice": 2, "message": f"round {slots.round} was good, let us go on"}


def round_rows(events):
    rounds = [event for event in events if event["type"] == "round"]
    return [
        {"round": i, "note": "words", "level": sum(event["choices"]), "odd": bool(i % 2), "never": None}
        for i, event in enumerate(rounds)
    ]


def episode_metrics(events):
    return {"rounds": len(round_rows(events)), "odd": True, "seed_twice": 2 * events[0]["seed"], "word": "none"}


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={"rounds": "Rounds that were settled, a count from 0.", "seed_*": "Twice the seed, from 0."},
    ranges={"rounds": COUNT, "seed_twice": FROM_0, "odd": YES_OR_NO, "level": FROM_0},
    headline=("seed_twice", "odd"),
)
SCENARIO = Scenario(
    name="toy",
    title="A toy",
    env=ToyEnv,
    measures=MEASURES,
    scripted={"two": lambda temperature=0.0: Two()},
    opponent="two",
)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


@pytest.fixture
def played(toy, tmp_path):
    run_study(small_study(TOY), tmp_path / "run", workers=1)
    return tmp_path / "run"


def test_the_report_shows_headline_measures_and_definitions(played):
    (toy, kbc), _ = read_run(open_run(played))
    assert [section.scenario.title for section in (toy, kbc)] == ["A toy", "Keynesian beauty contest"]
    (table,) = toy.tables()
    assert table.head == ["", "seed_twice", "odd"]
    assert [row.below for row in table.rows] == ["scripted, n = 3, 1 distinct", "scripted, n = 2, 1 distinct"]
    assert table.rows[0].cells[0].text == "4.0"
    assert mean_interval([2, 4, 6]).low < 0  # but twice a seed cannot be, and its range says so
    interval = mean_interval([2, 4, 6], FROM_0)
    assert interval.low > 0
    assert table.rows[0].cells[0].below == f"{interval.low:.1f} to {interval.high:.1f}"
    assert any(note == "seed_twice: Twice the seed, from 0." for note in table.notes)
    definitions = {row.name: row.below for row in measures_table(toy, []).rows}
    assert definitions["rounds"] == "Rounds that were settled, a count from 0."
    assert "word" not in definitions
    assert [drawing.name for drawing in toy.drawings()] == ["toy_rounds"]
    (excerpt,) = toy.excerpts()
    assert excerpt.title == "they talk, seed 1"
    page = write_report(played).read_text(encoding="utf-8")
    assert "round 1 was good, let us go on" in page
    assert (played / "report" / "toy_rounds.png").is_file()


def test_measures_are_drawn_round_by_round(played):
    (section, _), _ = read_run(open_run(played))
    (drawing,) = section.rounds()
    # Headline columns first; what holds words or nothing is left out.
    labels = [" ".join(axes.get_ylabel().split()) for axes in drawing.figure.axes[:2]]
    assert labels == ["share of episodes with 'odd'", "level"]
    # The mean of each arm comes last; before it, few episodes are drawn one by one.
    lines = drawing.figure.axes[1].lines
    assert len(lines) == 3 + 1 + 2 + 1
    loud, short = lines[3], lines[6]
    assert loud.get_xydata().tolist() == [[i, 6.0] for i in range(4)]
    assert short.get_xydata().tolist() == [[i, 6.0] for i in range(2)]


def test_a_share_that_is_always_1_is_not_drawn_as_if_it_could_be_more(played):
    """The axis went from .945 to 1.055: of a measure that nothing tells from 1 in .05."""
    (section, _), _ = read_run(open_run(played))
    arms = section.conditions
    for rows in (rows for arm in arms for rows in arm.episodes):
        rows[:] = [{**row, "odd": True} for row in rows]
    (drawing,) = section.rounds()
    assert drawing.figure.axes[0].get_ylim() == pytest.approx((-0.05, 1.05))
    panels = [section.episode_panel(arm, number) for arm in arms for number in range(len(arm.seeds))]
    assert all(panel.y_range == (-0.05, 1.05) for panel in [*panels, section.overview_panel(arms, 0.0)])


def test_episodes_stand_on_one_axis(played):
    (section, _), _ = read_run(open_run(played))
    arms = section.conditions
    for number, rows in enumerate(rows for arm in arms for rows in arm.episodes):
        rows[:] = [{"round": row["round"], "level": number} for row in rows]
    panels = [section.episode_panel(arm, number) for arm in arms for number in range(len(arm.seeds))]
    assert all(panel.y_range == pytest.approx((-0.2, 4.2)) for panel in panels)


@pytest.mark.rare
def test_the_grids_hold_it_too(played):
    outcome = draw_figures(played, formats=("png",))
    assert outcome.drawn["toy-rounds"] == ["toy_rounds"]
    assert outcome.drawn["seeds"] == ["seeds_toy"]
    assert outcome.drawn["temperature"] == ["temperature_toy"]
    assert outcome.drawn["conversation"] == ["conversation_toy"]
    assert set(outcome.drawn) | set(outcome.not_drawn) == set(known_figures())
    assert list(outcome.drawn)[:2] == ["toy-rounds", "kbc-variance"]


def test_rounds_without_numbers_have_no_figure(toy, tmp_path, monkeypatch):
    silent = replace(MEASURES, rounds=lambda events: [{"round": 1, "note": "words"}])
    monkeypatch.setattr(registry, "_registered", {"toy": replace(SCENARIO, measures=silent)})
    run_study(small_study(TOY), tmp_path / "run", workers=1)
    outcome = draw_figures(tmp_path / "run", formats=("png",))
    assert "hold no numbers" in outcome.not_drawn["toy-rounds"]
    assert "seeds" in outcome.not_drawn
    assert write_report(tmp_path / "run").is_file()


def test_an_episode_without_a_number_does_not_hide_those_of_the_others(played):
    (section, *_), _ = read_run(open_run(played))
    loud = section.conditions[0]
    for row in loud.episodes[1]:
        row["level"] = None
    for number, row in enumerate(loud.episodes[2]):
        row["level"] = 100.0 + number
    (drawing,) = section.rounds()
    (panel,) = (panel for row in panels_of(drawing.figure) for panel in row if panel.y_label == "level")
    (mean,) = (curve for curve in panel.curves if curve.label == loud.label)
    first = [row["level"] for row in loud.episodes[0]]
    assert list(mean.y) == pytest.approx([(own + 100 + k) / 2 for k, own in enumerate(first)])
    assert "one that never has the number is left out" in drawing.caption


def test_many_conditions_have_several_figures(played):
    (section, *_), _ = read_run(open_run(played))
    section.conditions = [*section.conditions * 6]
    drawings = section.rounds()
    assert [drawing.name for drawing in drawings] == ["toy_rounds", "toy_rounds_2"]
