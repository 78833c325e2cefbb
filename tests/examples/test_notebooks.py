"""The notebooks run from top to bottom in an empty folder; cells tagged `needs-MODULE` do where it is installed."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from warm_command import warm_folder

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NEEDS = "needs-"


def read(path):
    return nbformat.read(path, as_version=4)


def can_run(cell):
    return all(find_spec(tag.removeprefix(NEEDS)) for tag in cell.metadata.get("tags", ()) if tag.startswith(NEEDS))


def shown(cell):
    """The kinds of what a cell showed."""
    return {kind for output in cell.outputs for kind in (output.get("data") or {output.output_type: 0})}


def test_there_are_four():
    assert [path.stem for path in NOTEBOOKS] == ["analyse_a_run", "branch_and_compare", "first_market", "your_agent"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_stored_as_they_were_written(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert len(notebook.cells) <= 20
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None
        for link in cell.source.split("](")[1:] if cell.cell_type == "markdown" else ():
            assert (path.parent / link.partition(")")[0]).is_file()


# The long ones are run by `.ci/run` and `make test-all`.
RARE = {"analyse_a_run", "branch_and_compare", "first_market"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.rare] * (path.stem in RARE)) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_they_run(path, tmp_path, monkeypatch):
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", os.pathsep.join([warm_folder(), str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = read(path)
    notebook.cells = [cell for cell in notebook.cells if can_run(cell)]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    kinds = set().union(*map(shown, cells))
    assert {"text/plain", "image/png"} <= kinds or path.stem == "your_agent"
    assert shown(cells[-1])  # the last cell has something to show
