"""Sessions that recorded no end: what is known of them, in the report and on the page."""

import json
import os
import shutil
from datetime import datetime, timezone

import pytest
from model_studies import TINY, answering, play
from small import small_study, write_manifest

from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.reports.run_sections import read_run as read_sections
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.session_ends import KILLED, PLAYING, UNKNOWN, find_unended


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sessions") / "asked"
    with answering() as server:
        play(server, folder, TINY)
    return folder


def without_end(source, folder, followed):
    """A copy whose first session recorded no end; perhaps another one followed it."""
    shutil.copytree(source, folder)
    (session,) = json.loads((folder / "run.json").read_text())["sessions"]
    killed = {**{name: value for name, value in session.items() if name != "asked"}, "ended": None}
    later = {**session, "started": "2999-01-01T00:00:00+00:00", "ended": "2999-01-01T00:00:01+00:00"}
    write_manifest(folder, sessions=[killed, later] if followed else [killed], status="interrupted")
    return open_run(folder)


def test_a_session_that_was_followed_was_killed_and_its_journal_says_when_it_was_last_seen(asked, tmp_path):
    run = without_end(asked, tmp_path / "run", followed=True)
    for path in run.folder.rglob("*"):
        os.utime(path, (0, 0))  # times of files are not those of records
    (unended,) = find_unended(run).values()
    assert unended.how == KILLED
    (report,) = read_run(run.folder)
    assert unended.seen == datetime.fromtimestamp(int(report.times[-1]), timezone.utc).isoformat()
    began = datetime.fromisoformat(run.manifest["sessions"][0]["started"])
    assert 0 <= (datetime.fromisoformat(unended.seen) - began).total_seconds() < 600
    (row, _) = read_sections(run)[1].tables()[-1].rows
    assert (row.cells[0].text, row.cells[0].below) == (KILLED, f"last seen {unended.seen}")


def test_the_last_session_may_play_elsewhere_unless_this_machine_knows_better(asked, tmp_path):
    run = without_end(asked, tmp_path / "run", followed=False)
    assert [one.how for one in find_unended(run).values()] == [UNKNOWN]
    assert [one.how for one in find_unended(run, {}).values()] == [KILLED]
    assert [one.how for one in find_unended(run, {"main": {}}).values()] == [PLAYING]
    (session,) = KnownRuns(tmp_path).detail("run")["sessions"]
    assert session["ended"] is None
    assert session["unended"]["how"] == KILLED
    assert session["unended"]["seen"]
    pointer = {"host": "another-machine", "pid": 1, "name": "0" * 16}
    (run.folder / ".control-main.json").write_text(json.dumps(pointer))
    assert [one.how for one in find_unended(run, {}).values()] == [UNKNOWN]


def test_without_a_model_episodes_say_when_it_was_last_seen(tmp_path):
    run_study(small_study(), tmp_path / "played", limit=2)
    run = without_end(tmp_path / "played", tmp_path / "run", followed=False)
    (unended,) = find_unended(run, {}).values()
    newest = max(path.stat().st_mtime for path in (run.folder / "events").rglob("*.gz"))
    assert unended.seen == datetime.fromtimestamp(int(newest), timezone.utc).isoformat()
    assert find_unended(open_run(tmp_path / "played"), {}) == {}
