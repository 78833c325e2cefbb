"""What a folder of somebody else could slip into processes that are started there."""

import pytest

from llm_coop_envs.util.children import list_shadowing


@pytest.mark.parametrize("name", ["random.py", "json/__init__.py", "signal.pyc", "multiprocessing/__init__.py"])
def test_modules_in_place_of_pythons_own_are_found(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert list_shadowing(tmp_path) == [name.partition("/")[0]]


def test_what_python_would_not_import_in_their_place_is_none(tmp_path):
    for name in ("test.yaml", "types.md", "statistics.json", "mine.py", "code.py.txt", "notes"):
        (tmp_path / name).touch()
    for name in ("code", "test"):  # without __init__, modules further down the path win
        (tmp_path / name / "inner").mkdir(parents=True)
    assert list_shadowing(tmp_path) == []
