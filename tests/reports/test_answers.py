"""What the page says of models' answers and of the sessions that asked for them."""

import json
import shutil

import pytest
from model_studies import TINY, answering, play
from small import write_manifest

from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A run with a server whose every answer ends at its token limit."""
    folder = tmp_path_factory.mktemp("cut") / "run"
    with answering(faults=Faults(shares={"truncated": 1.0})) as server:
        play(server, folder, text=TINY)
    return folder


def test_answers_that_were_cut_off_are_told_at_the_top_and_counted(cut, tmp_path):
    sections, answers = read_run(open_run(cut))
    assert set(answers.cut_off) == {"kbc", "bertrand"}
    talk = next(row for row in answers.rows["kbc"] if row["call"] == "talk")
    assert talk["truncated"] == talk["requests"] > 0
    assert f"{talk['truncated']} of {talk['requests']} answers to 'talk'" in answers.cut_off["kbc"]
    page = write_report(cut, tmp_path).read_text(encoding="utf-8")
    assert page.index("Cut off.") < page.index("<h2>What was played")
    assert "answers cut off</span>" in page
    table = answers.tables()[0]
    for row, condition in zip(table.rows, ("kbc", "bertrand"), strict=False):
        cell = dict(zip(table.head[1:], row.cells, strict=True))["cut off"]
        assert cell.text == str(sum(one["truncated"] for one in answers.rows[condition]))
        assert cell.below == "100 %"
    assert len(sections) == 2


def test_whole_answers_are_not_called_cut_off(tmp_path):
    with answering() as server:
        play(server, tmp_path / "run", text=TINY)
    _, answers = read_run(open_run(tmp_path / "run"))
    assert answers.cut_off == {}
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "Cut off." not in page
    assert "was killed" not in page


def with_sessions(folder, second=None, **changes):
    """Put a session without numbers before the one that there is."""
    (told,) = json.loads((folder / "run.json").read_text())["sessions"]
    first = {name: value for name, value in told.items() if name != "asked"}
    write_manifest(folder, sessions=[{**first, **changes}, {**told, **(second or {})}])


def test_sessions_without_numbers(cut, tmp_path):
    """One that found nothing to ask ended as it should; one without an end that another followed was killed."""
    for ended, told, killed in (("2026-01-01T00:00:00+00:00", "asked nothing", False), (None, "was killed", True)):
        folder = tmp_path / told.replace(" ", "-")
        shutil.copytree(cut, folder)
        with_sessions(folder, ended=ended)
        sessions = read_run(open_run(folder))[1].tables()[-1]
        assert sessions.title == "Sessions"
        assert [row.cells[0].text == told for row in sessions.rows] == [True, False]
        assert any("was killed" in note for note in sessions.notes) == killed


def test_make_it_again_is_what_was_typed(cut, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(cut, folder)
    typed = "llm-coop run tiny.yaml --policy llm --model scripted --seat firm_0=uniform -o elsewhere"
    with_sessions(folder, second={"command": "llm-coop run tiny.yaml"}, command=typed)
    page = write_report(folder, tmp_path / "out", invalid_above=0.5).read_text(encoding="utf-8")
    assert f"<code>{typed}</code>" in page
    # Folders were not recorded once.
    assert f"<code>llm-coop run tiny.yaml -o {folder}</code>" in page
    assert f"<code>llm-coop report {folder} -o {tmp_path / 'out'} --invalid-above 0.5</code>" in page
