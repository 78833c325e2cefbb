"""A run that version 0.1.0 played is still read: rules and a scripted server, in the folder `kept_run`."""

import json
import shutil
from pathlib import Path

import pytest

from llm_coop_envs.export.export import export_run
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.storage.folder import CHECK, digest_of
from llm_coop_envs.version import __version__

KEPT = Path(__file__).parent / "kept_run"


@pytest.fixture
def kept(tmp_path):
    return Path(shutil.copytree(KEPT, tmp_path / "run"))


def test_rules_play_its_episodes_again_to_the_same_events(kept):
    verification = verify_run(kept, again=True)
    assert verification.faults == []
    assert (verification.episodes, verification.replayed, verification.tables) == (6, 5, 6)
    assert f"The run was played with llm-coop-envs 0.1.0, and is checked with {__version__}" in verification.versions
    assert any("episodes.parquet" in note and "another version" in note for note in verification.notes)


def test_report_and_export_read_it(kept):
    page = write_report(kept).read_text(encoding="utf-8")
    assert "prices-talk-true" in page
    assert (export_run(kept, "parquet") / "episodes.parquet").is_file()
    assert len(open_run(kept).finished()) == 6


def test_this_version_has_no_such_excuse(kept):
    """The same table under this version's name is a fault."""
    path = kept / "run.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for session in manifest["sessions"]:
        session["versions"]["llm-coop-envs"] = __version__
    manifest[CHECK] = digest_of({name: value for name, value in manifest.items() if name != CHECK})
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert any("episodes.parquet" in fault for fault in verify_run(kept).faults)
