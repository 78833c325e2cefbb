"""The page of public names is true, and whoever is shown how to use the package is shown public names only."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llm_coop_envs.errors import MissingExtra

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`llm_coop_envs.*?) \| (.*) \|$", re.MULTILINE)
NEEDS = {"llm_coop_envs.baselines.deep.train": "torch", "llm_coop_envs.render.screen": "pygame"}


def listed():
    """Module to public names; `None` for all that a module exports."""
    found = {}
    for modules, names in ROW.findall(PAGE):
        places = re.findall(r"`([\w.]+)`", modules)
        parts = names.split(";") if ";" in names else [names] * len(places)
        for place, part in zip(places, parts, strict=True):
            words = re.findall(r"`(\w+)`", part)
            found[place] = None if "all" in part or "every" in part or "the class" in part else words
    return found


@pytest.mark.parametrize("module", listed())
def test_what_the_page_lists_is_there(module):
    for prefix, library in NEEDS.items():
        if module.startswith(prefix):
            pytest.importorskip(library)
    found = importlib.import_module(module)
    names = listed()[module]
    for name in getattr(found, "__all__", ()) if names is None else names:
        assert hasattr(found, name) or importlib.import_module(f"{module}.{name}")


def imported(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("llm_coop_envs"):
            for alias in node.names:
                yield node.module, alias.name


def shown():
    """Every import in the examples and in the Python blocks of README and docs."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield from ((path.name, *one) for one in imported(path.read_text(encoding="utf-8")))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            try:
                yield from ((path.name, *one) for one in imported(block))
            except SyntaxError:
                continue  # a piece of a class: it imports nothing


def test_examples_and_pages_use_public_names_only():
    known = listed()
    wrong = [
        one
        for one in shown()
        if f"{one[1]}.{one[2]}" not in known and (one[1] not in known or (known[one[1]] or [one[2]]).count(one[2]) == 0)
    ]
    assert not wrong


def callables():
    """Every public function, class and method."""
    for module, names in listed().items():
        try:
            found = importlib.import_module(module)
        except MissingExtra:
            continue
        for name in getattr(found, "__all__", ()) if names is None else names:
            value = getattr(found, name, None)
            if not callable(value) or (dataclasses.is_dataclass(value) and name == "PartReport"):  # never made by users
                continue
            yield name, value
            if inspect.isclass(value):
                yield from (
                    (f"{name}.{key}", member)
                    for key, member in vars(value).items()
                    if callable(member) and not key.startswith("_")
                )


def test_no_public_signature_asks_for_a_path_object():
    asking = []
    for name, value in callables():
        try:
            parameters = inspect.signature(value).parameters.values()
        except (TypeError, ValueError):
            continue
        for parameter in parameters:
            kind = str(parameter.annotation)
            if "Path" in kind and "StrPath" not in kind:
                asking.append((name, str(parameter)))
    assert not asking


def test_importing_the_package_imports_no_game():
    """It takes little longer than importing pettingzoo; environments are made by name all the same."""
    code = (
        "import llm_coop_envs, sys\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('llm_coop_envs.')}\n"
        "print(sorted(rooms), 'llm_coop_envs.core.scenario' in sys.modules)\n"
        "import pettingzoo\n"
        "print(len(pettingzoo.make('parallel', 'llm_coop/kbc-v0').possible_agents))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == [
        "['core', 'errors', 'registration', 'renamed_modules', 'util', 'version'] False",
        "24",
    ]
