"""Who may import whom, lazily or not: layers, no circles, scenarios as plug-ins that nobody names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from llm_coop_envs.core.registry import shipped_names

ROOT = Path(__file__).parents[1]
PACKAGE = "llm_coop_envs"
TOPS = ("policies", "baselines", "render", "benchmarks")
SCENARIOS = shipped_names()

#: Lower first. A room imports from its own layer and from lower ones.
LAYERS = {
    "errors": 0,
    "core": 1,
    "storage": 1,
    "registration": 2,
    "wrappers": 2,
    "policies": 3,
    "render": 4,
    "baselines": 4,
    "benchmarks": 5,
}
#: What in a scenario's room is part of its environment, and so knows nothing above the core.
FACES = ("scripted", "workflow", "scene", "drawing", "report", "learning", "comparison", "after", "planted", "bench")
#: Rooms that study one scenario by nature, or show and measure the shipped ones by name.
ABOUT_A_SCENARIO = {
    "baselines.q_learning": "bertrand",
    "benchmarks.pages.q_learning": "bertrand",
}
SHIPPED_BY_NAME = ("benchmarks.speed", "benchmarks.pages.readme_pictures")


@cache
def modules():
    """Every module of the package by its dotted name below it."""
    found = {}
    for top in (PACKAGE, *TOPS):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT / PACKAGE if top == PACKAGE else ROOT).with_suffix("").parts
            if top == PACKAGE and parts[0] in TOPS:
                continue
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def for_types_only(tree):
    """The nodes below `if TYPE_CHECKING`."""
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for one in node.body
        for inner in ast.walk(one)
    }


@cache
def imports(name):
    """The modules of the package that a module imports, in functions too; not those for types alone."""
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    typing_only = for_types_only(tree)
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    below = {one.removeprefix(f"{PACKAGE}.") for one in found if one.startswith(f"{PACKAGE}.")}
    return {one if one in modules() else one.rpartition(".")[0] for one in below} - {name}


def room(name):
    return name.partition(".")[0]


def is_scenario(name):
    return room(name).removesuffix("_v0") in SCENARIOS


def is_face(name):
    return ".faces" in name or name.rpartition(".")[2].startswith(FACES)


def about(name):
    """The scenario that a module is about: its room's, by its file's name, or as stated."""
    if is_scenario(name):
        return room(name).removesuffix("_v0")
    named = next((s for s in SCENARIOS if name.rpartition(".")[2].startswith(s)), None)
    return named or next((s for prefix, s in ABOUT_A_SCENARIO.items() if name.startswith(prefix)), None)


def test_rooms_import_downwards():
    wrong = []
    for name in modules():
        if not name or is_scenario(name):
            continue
        for other in imports(name):
            if other and not is_scenario(other) and LAYERS[room(other)] > LAYERS[room(name)]:
                wrong.append(f"{name} -> {other}")
    assert not wrong


def test_scenarios_are_imported_by_nobody_who_is_not_about_them():
    wrong = [
        f"{name} -> {other}"
        for name in modules()
        for other in imports(name)
        if name and is_scenario(other) and about(name) != about(other) and not name.startswith(SHIPPED_BY_NAME)
    ]
    assert not wrong


def test_environments_know_nothing_above_the_core():
    wrong = [
        f"{name} -> {other}"
        for name in modules()
        if is_scenario(name) and not is_face(name)
        for other in imports(name)
        if (not is_scenario(other) and room(other) not in ("core", "errors")) or (is_scenario(other) and is_face(other))
    ]
    assert not wrong


def circles():
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index, low, on_path, path, found = {}, {}, set(), [], []

    def visit(name):
        index[name] = low[name] = len(index)
        path.append(name)
        on_path.add(name)
        for other in imports(name) & modules().keys():
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in on_path:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = []
            while not group or group[-1] != name:
                group.append(path.pop())
                on_path.discard(group[-1])
            if len(group) > 1:
                found.append(sorted(group))

    for name in modules():
        if name not in index:
            visit(name)
    return found


def test_there_are_no_circles():
    assert not circles()


def test_no_table_outside_names_a_scenario():
    named = re.compile(rf"[\"']({'|'.join(SCENARIOS)})(_v0)?[\"']")
    wrong = []
    for name, path in modules().items():
        if not name or about(name) or name.startswith(SHIPPED_BY_NAME):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {
            id(n.body[0].value)
            for n in ast.walk(tree)
            if isinstance(getattr(n, "body", None), list) and n.body and isinstance(n.body[0], ast.Expr)
        }
        wrong += [
            f"{name}, line {node.lineno}: {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and named.fullmatch(repr(node.value))
        ]
    assert not wrong


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_descriptor_imports_nothing_but_the_core(scenario):
    assert {room(other) for other in imports(f"{scenario}.scenario")} <= {"core"}


def test_public_class_names_occur_once():
    where = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(name)
    assert {name: found for name, found in where.items() if len(found) > 1} == {}
