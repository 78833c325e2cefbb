"""What things say of themselves in a notebook and in a terminal: small, escaped, and never an error."""

import shutil
from dataclasses import replace

import pyarrow.parquet
import pytest

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import Outcome
from llm_coop_envs.studies.study import load_study
from llm_coop_envs.util.showing import MOST_LINES, MOST_ROWS, WIDTH, Summary
from llm_coop_envs.wrappers import NumericView, SingleAgentView, TextView

MARKUP = "<script>alert(1)</script>"


def check_text(thing):
    """Check that a thing's text is small, and return it."""
    text = repr(thing)
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    return text


@pytest.mark.parametrize("scenario", scenarios())
def test_an_environment_says_how_it_was_made_and_where_it_stands(scenario):
    env = find_scenario(scenario).environment(wording="en-a", record=True, changes=[], max_cycles=2)
    assert check_text(env).startswith(f"{env.metadata['name']}(max_cycles=2, record=True, ")
    assert "reset()" in check_text(env)
    assert "reset()" in env._repr_html_()
    env.reset(seed=0)
    assert f"{env.n_players} of {env.n_players} play" in check_text(env)
    for _ in range(2):
        env.step({})
    assert check_text(env).endswith("over")


def test_a_half_made_environment_and_long_settings_are_shown():
    kind = type(find_scenario("bertrand").environment())
    assert "reset()" in check_text(kind.__new__(kind))
    many = find_scenario("bertrand").environment(firms=40, cost=[1 + k / 7 for k in range(40)], quality=[2.0] * 40)
    assert "cost=[" in check_text(many)


def test_views_name_themselves_and_their_environment():
    env = find_scenario("bertrand").environment(rounds=5, talk=False)
    assert check_text(NumericView(env)).startswith("NumericView of bertrand_v0(rounds=5, talk=False)")
    assert check_text(TextView(env)).startswith("TextView of bertrand_v0(")
    seat = SingleAgentView(env, "firm_1", make("bertrand/best_reply"))
    assert check_text(seat).startswith("SingleAgentView, firm_1, of bertrand_v0(")


@pytest.mark.parametrize("name", ["team_up", "klein", "collusion_comparison"])
def test_a_study_of_few_or_many_conditions_is_a_few_lines_and_a_table(name):
    study = load_study(name)
    assert check_text(study).startswith(f"{name}: ")
    conditions = len(study.conditions)
    assert study._repr_html_().count("<tr>") == 1 + min(MOST_ROWS, conditions)
    assert ("more conditions" in study._repr_html_()) == (conditions > MOST_ROWS)


def damage(folder, what):
    if what == "tables":
        (folder / "episodes.parquet").write_text("damaged")
    elif what == "other tables":
        pyarrow.parquet.write_table(pyarrow.table({"seed": [1]}), folder / "episodes.parquet")
    elif what == "events":
        shutil.rmtree(folder / "events")
    elif what == "folder":
        shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["nothing", "tables", "other tables", "events", "folder"])
def test_a_run_shows_itself_whatever_has_become_of_its_folder(everything, tmp_path, what):
    folder = shutil.copytree(everything, tmp_path / "run")
    run = open_run(folder)
    damage(folder, what)
    text, html = check_text(run), run._repr_html_()
    if what == "other tables":
        expected = f"A run that cannot be shown: {folder}: is damaged (KeyError"
        assert "".join(text.split()).startswith(expected.replace(" ", ""))
        assert "llm-coop verify" in html
    else:
        finished = 0 if what in ("events", "folder") else 12
        assert text.startswith(f"everything: {finished} of 12 episodes")
        assert "bertrand-talk" in text
        assert html.count("<tr>") == 7
    assert ("variance_last" in html) == (what in ("nothing", "events"))
    with pytest.raises(AssertionError):
        check_text(run.manifest)  # what a data class would print


def test_an_outcome_adds_what_went_wrong(everything):
    outcome = Outcome(run=open_run(everything), played=0, finished=12, complete=True, seconds=1.0)
    assert "everything: 12 of 12" in check_text(outcome)
    stopped = replace(outcome, why=MARKUP, failed={("kbc-talk", k): f"failed {k}" for k in range(30)})
    assert MARKUP in check_text(stopped)
    assert "&lt;script&gt;" in stopped._repr_html_()
    assert "<script" not in stopped._repr_html_()


def test_what_somebody_else_wrote_only_shows():
    summary = Summary(title="a\x1b[31m", facts=["b\nc", "", MARKUP], head=["d"], rows=[[f"{MARKUP}\x07"]] * 30)
    lines = summary.text().splitlines()
    assert lines[:2] == ["a\\x1b[31m", "b c"]
    assert len(lines) == MOST_LINES
    assert lines[-1] == "  and 22 more rows"
    assert "\x07" not in summary.text()
    assert "<script" not in summary.html()
    assert "and 10 more rows" in summary.html()
