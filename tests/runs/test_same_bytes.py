"""Events and measures do not hang on the version of Python or NumPy."""

import builtins
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from same_bytes import GAMES, play_games

HOME = Path(__file__).parents[2]
SCRIPT = HOME / "tests" / "tools" / "same_bytes.py"
PYTHONS = "LLM_COOP_PYTHONS"
"""Interpreters with the package's dependencies, as in PATH: those of virtual environments are not on it."""


def usable(python):
    """The versions of Python and NumPy of an interpreter that has the package's dependencies; `None` of another."""
    probe = "import gymnasium, jinja2, numpy, pettingzoo, sys, yaml; print(*sys.version_info[:3], numpy.__version__)"
    answer = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    if answer.returncode:
        return None
    *version, numpy_version = answer.stdout.split()
    return tuple(map(int, version)), numpy_version


def other_interpreters():
    """The lowest and the newest usable interpreter whose Python or NumPy is another than this one's."""
    named = [python for python in os.environ.get(PYTHONS, "").split(os.pathsep) if python]
    candidates = [*named, *filter(None, (shutil.which(f"python3.{minor}") for minor in range(10, 20)))]
    versions = {python: usable(python) for python in candidates}
    own = usable(sys.executable)
    others = sorted((found, python) for python, found in versions.items() if found and found != own)
    return dict.fromkeys(python for _, python in (*others[:1], *others[-1:]))


def test_nothing_that_is_played_or_measured_adds_floats_with_sum(monkeypatch):
    exact = builtins.sum

    def strict_sum(terms, /, start=0):
        terms = list(terms)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        floats = caller.startswith("llm_coop_envs") and any(isinstance(term, float) for term in terms)
        assert not floats, f"{caller} adds floats with sum(): {terms[:3]}"
        return exact(terms, start)

    monkeypatch.setattr(builtins, "sum", strict_sum)
    assert len(list(play_games())) == len(GAMES) > 20


@pytest.mark.slow
def test_events_and_measures_are_the_same_on_the_lowest_and_the_newest_python():
    others = other_interpreters()
    if not others:
        pytest.skip(f"there is no other Python with the package's dependencies on PATH or in {PYTHONS}")
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    digests = {}
    for python in (sys.executable, *others):
        played = subprocess.run([python, SCRIPT], capture_output=True, text=True, check=True, env=environment)
        digests[python] = json.loads(played.stdout)
    mine = digests.pop(sys.executable)
    assert len(mine) == len(GAMES)
    assert all(other == mine for other in digests.values())
