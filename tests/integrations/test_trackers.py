"""The trackers of `docs/doors.md`, as they stand there, with the real libraries and without a network."""

import re
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


def test_wandb_has_every_headline_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb = pytest.importorskip("wandb")
    logged = []
    monkeypatch.setattr(wandb, "log", lambda row: (logged.append(row), wandb.run.log(row)))
    run_block("wandb")
    measured = expected("runs/tracked-too")
    assert {row["seed"] for row in logged} == {seed for _, seed in measured}
    for row in logged:
        rows = [
            {f"{condition}/{name}": value for name, value in measures.items()}
            for (condition, seed), measures in measured.items()
            if seed == row["seed"]
        ]
        assert {name: value for name, value in row.items() if name != "seed"} in rows
    (stored,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    assert stored.stat().st_size > 0
