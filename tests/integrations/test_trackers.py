"""The trackers of `docs/doors.md`, as they stand there, with the real libraries and without a network."""

import json
import re
import struct
import time
from pathlib import Path

import pytest

from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.tables import headline_measures

PAGE = Path(__file__).parents[2] / "docs" / "doors.md"
pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours to mend


def run_block(library):
    """Run the page's block that imports a library."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if f"import {library}" in block]
    exec(compile(code, f"{PAGE.name}: {library}", "exec"), {"__name__": "__main__"})


def expected(folder):
    run = open_run(folder)
    measured = {key: headline_measures(run, *key) for key in run.finished()}
    assert len(measured) == 4
    assert all(measured.values())
    return measured


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_mlflow_has_every_headline_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    run_block("mlflow")
    client = mlflow.MlflowClient()
    (logged,) = client.search_runs(["0"])
    assert logged.info.status == "FINISHED"
    assert logged.data.params["study"] == "team_up"
    for (condition, seed), measures in expected("runs/tracked").items():
        for name, value in measures.items():
            history = client.get_metric_history(logged.info.run_id, f"{condition}/{name}")
            assert value in [point.value for point in history if point.step == seed]


def read_history(path):
    """The rows that W&B has written for its server: a LevelDB log of protocol buffers behind seven bytes."""
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    content, place, parts = path.read_bytes(), 7, []
    while place + 7 <= len(content):
        left = 32_768 - place % 32_768
        if left < 7:  # no header fits into the rest of the block
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts.append(content[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = messages.Record.FromString(b"".join(parts))
            parts = []
            if record.WhichOneof("record_type") == "history":
                yield {
                    item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
                }


def test_wandb_has_every_headline_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    pytest.importorskip("wandb")
    run_block("wandb")
    (stored,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    until = time.monotonic() + 30
    while len(rows := list(read_history(stored))) < 4 and time.monotonic() < until:
        time.sleep(0.1)  # its own process writes the file
    logged = [{name: value for name, value in row.items() if name[0] != "_"} for row in rows]
    measured = expected("runs/tracked-too")
    named = [
        {"seed": seed, **{f"{condition}/{name}": value for name, value in measures.items()}}
        for (condition, seed), measures in measured.items()
    ]
    assert sorted(logged, key=sorted) == sorted(named, key=sorted)
