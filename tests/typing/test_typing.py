"""Settings are typed: checkers refuse a misprint and accept every legal form; `help` shows them all."""

import importlib
import inspect
import json
import pickle
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import typed_settings

from llm_coop_envs.core.makers import OPTIONS, WIDTH
from llm_coop_envs.core.registry import find_scenario, shipped_names
from llm_coop_envs.core.settings import plain
from llm_coop_envs.studies.study import load_study, shipped_studies

SNIPPET = Path(__file__).with_name("snippet.py")
ROOT = Path(__file__).parents[2]


def checked(*command):
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, encoding="utf-8", cwd=ROOT, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def refused_by_mypy(path):
    pytest.importorskip("mypy")
    text = checked("mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(path))
    return {int(line): error for line, error in re.findall(rf"{path.name}:(\d+): error: (.*)", text)}


def refused_by_pyright(path):
    pytest.importorskip("pyright")
    text = checked("pyright", "--pythonpath", sys.executable, "--outputjson", str(path))
    found = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in found if one["severity"] == "error"}


CHECKERS = pytest.mark.parametrize("refused", [refused_by_mypy, refused_by_pyright], ids=["mypy", "pyright"])


@pytest.mark.slow
@pytest.mark.rare
@CHECKERS
def test_checkers_refuse_misprints_and_nothing_else(refused):
    lines = SNIPPET.read_text(encoding="utf-8").splitlines()
    assert refused(SNIPPET).keys() == {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}


@pytest.mark.slow
@pytest.mark.rare
@CHECKERS
def test_checkers_accept_the_settings_of_all_presets_and_studies(refused, tmp_path):
    calls = [
        (name, {**fields}) for name in shipped_names() for fields in find_scenario(name).settings_type.presets.values()
    ]
    for study in map(load_study, shipped_studies()):
        calls += [(condition.scenario, condition.settings) for condition in study.conditions]
    lines = {
        f"{scenario}_v0.parallel_env({', '.join(f'{name}={plain(value)!r}' for name, value in settings.items())})"
        for scenario, settings in calls
    }
    modules = ", ".join(f"{name}_v0" for name in shipped_names())
    path = tmp_path / "settings_of_studies.py"
    path.write_text("\n".join([f"from llm_coop_envs import {modules}", *sorted(lines), ""]))
    assert len(lines) > 50
    assert refused(path) == {}


def test_the_files_of_typed_settings_are_current():
    pytest.importorskip("ruff")
    for path, text in typed_settings.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make types`"


@pytest.mark.parametrize("maker", ["parallel_env", "env", "raw_env"])
@pytest.mark.parametrize("scenario", shipped_names())
def test_help_shows_every_setting_in_a_line_with_its_default(scenario, maker):
    make = getattr(importlib.import_module(f"llm_coop_envs.{scenario}_v0"), maker)
    settings = find_scenario(scenario).settings_type
    lines = inspect.getdoc(make).splitlines()
    for field in fields(settings):
        (line,) = [line for line in lines if line.startswith(f"{field.name}=")]
        assert re.search(r": \w.{4}|: \W?\w", line)
    assert max(map(len, lines)) <= WIDTH
    longest = max(len(group.splitlines()) for group in "\n".join(lines).split("\n\n"))
    assert longest < 24  # less than a screen
    names = [field.name for field in fields(settings)]
    assert list(inspect.signature(make).parameters) == [*OPTIONS, *names]
    assert inspect.signature(make).parameters["rounds"].default == settings().rounds
    assert pickle.loads(pickle.dumps(make)) is make


def test_sections_begin_with_fields():
    for scenario in shipped_names():
        settings = find_scenario(scenario).settings_type
        names = {field.name for field in fields(settings)}
        assert settings.sections.keys() <= names
        assert settings.forms.keys() <= names
