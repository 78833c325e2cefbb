"""Runs as a notebook shows them."""

from dataclasses import replace

from small import KBC, small_study

from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.util import showing

MARKUP = "<script>alert(1)</script>"


def test_a_run_shows_itself_small_and_escaped(tmp_path, monkeypatch):
    folder = tmp_path / "<b>"
    study = replace(small_study(KBC), description=MARKUP)
    begun = run_study(study, folder, limit=2)
    assert "2 of 5 episodes" in begun._repr_html_()
    done = run_study(study, folder)
    shown = replace(done, why=MARKUP)._repr_html_()
    assert "<script" not in shown
    assert "<b>" not in shown.partition("</b>")[2]
    assert shown.count("&lt;script&gt;") == 2
    means = [one.metrics["mean_first"] for one in read_episodes(done.run) if one.condition.name == "talking"]
    assert f"mean_first {sum(means) / len(means):.4g}" in shown
    assert "<td>talking</td><td>kbc</td>" in shown
    monkeypatch.setattr(showing, "MOST_ROWS", 1)
    assert "and 1 more conditions" in done._repr_html_()
    (folder / "episodes.parquet").write_text("damaged")
    assert "5 of 5 episodes" in done._repr_html_()
