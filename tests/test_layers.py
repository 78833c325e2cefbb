"""Who may import whom, lazily, by string or for types alone: rooms in one order, no circles, scenarios as plug-ins."""

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
RULES, FACES = "<scenario>", "<scenario>/faces"

#: The rooms, lower first (docs/design.md draws them). A module imports from its own room and from lower ones.
ROOMS = (
    *(
        "errors",
        "version",
        "util",
        "storage",
        "statistics",
        "interface",
        "treatments",
        "mechanisms",
        "core",
        "wrappers",
    ),
    *("registration", "renamed_modules", "policies", RULES, "render", "baselines", "measures", "studies", "runs"),
    *("export", "reports", "benchmarks", "page", FACES, "cli", "__main__"),
)
#: What refers upwards all the same, always by a string that is imported when it is first used. docs/design.md says why.
UPWARDS = {
    ("core.rendering", "render.live"),
    ("policies.kinds", "baselines.deep.player"),
    ("policies.kinds", "baselines.q_learning.player"),
    ("policies.kinds", "baselines.tabular.player"),
    ("runs.folder", "reports.run_tables"),
}
#: The default that is named as a scenario names its own workflow: a string inside one room.
DEFAULTS = {("policies.llm.playing.calls", "policies.llm.playing.workflow")}
#: The developers' own tools start whatever they time or describe. They are not in the wheel.
DEVELOPERS = ("benchmarks.speed", "benchmarks.doc_pages")
#: Rooms that study one scenario by nature, or show and measure the shipped ones by name.
ABOUT_A_SCENARIO = {
    "baselines.q_learning": "bertrand",
    "benchmarks.doc_pages.q_learning": "bertrand",
}
SHIPPED_BY_NAME = ("benchmarks.speed", "benchmarks.doc_pages.readme_pictures", "renamed_modules")
DOTTED = re.compile(rf"{PACKAGE}((?:\.\w+)+)(?::\w+)?")


@cache
def modules():
    """Every module of the package by its dotted name below it."""
    paths = {}
    for top in (PACKAGE, *TOPS):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT / PACKAGE if top == PACKAGE else ROOT).with_suffix("").parts
            if (top == PACKAGE and parts[0] in TOPS) or "node_modules" in parts:
                continue
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def module_of(dotted):
    """The module that a dotted name below the package lies in; empty for the package itself."""
    while dotted and dotted not in modules():
        dotted = dotted.rpartition(".")[0]
    return dotted


@cache
def imports(name):
    """The modules of the package that a module names: in imports anywhere, for types too, and in strings."""
    dotted = set()
    for node in ast.walk(ast.parse(modules()[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith(f"{PACKAGE}.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == PACKAGE:
            base = node.module.partition(".")[2]
            dotted |= {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            dotted.add(DOTTED.fullmatch(node.value)[1][1:])
    return {module_of(path) for path in dotted} - {name, ""}


def scenario_of(name):
    """The shipped scenario in whose room a module is, if any."""
    top = name.partition(".")[0].removesuffix("_v0")
    return top if top in SCENARIOS else None


def room(name):
    if scenario_of(name):
        return FACES if f"{name}.".startswith(f"{scenario_of(name)}.faces.") else RULES
    return name.partition(".")[0]


def folder(name):
    return name if modules()[name].name == "__init__.py" else name.rpartition(".")[0] or name


def about(name):
    """The scenario that a module is about: its room's, by its file's name, or as stated."""
    named = next((s for s in SCENARIOS if name.rpartition(".")[2].startswith(s)), None)
    stated = next((s for prefix, s in ABOUT_A_SCENARIO.items() if name.startswith(prefix)), None)
    return scenario_of(name) or named or stated


def arrows():
    return [(name, other) for name in modules() for other in imports(name) if name and name != "renamed_modules"]


def test_every_room_has_its_place():
    assert {room(name) for name in modules() if name} == set(ROOMS)


def test_rooms_import_downwards():
    upwards = {
        (name, other)
        for name, other in arrows()
        if ROOMS.index(room(other)) > ROOMS.index(room(name)) and not name.startswith(DEVELOPERS)
    }
    assert upwards == UPWARDS


def test_scenarios_are_imported_by_nobody_who_is_not_about_them():
    wrong = [
        f"{name} -> {other}"
        for name, other in arrows()
        if scenario_of(other) and about(name) != scenario_of(other) and not name.startswith(SHIPPED_BY_NAME)
    ]
    assert not wrong


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_descriptor_imports_nothing_but_the_core(scenario):
    assert {room(other) for other in imports(f"{scenario}.scenario")} <= {"core"}


def components(graph):
    """Groups of nodes that reach each other, by Tarjan's algorithm; single nodes left out."""
    index, low, on_path, path, groups = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        path.append(node)
        on_path.add(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_path:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(path.pop())
                on_path.discard(group[-1])
            if len(group) > 1:
                groups.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return groups


def test_there_are_no_circles_of_modules():
    graph = {name: set() for name in modules()}
    for name, other in arrows():
        if (name, other) not in UPWARDS | DEFAULTS:
            graph[name].add(other)
    assert components(graph) == []


def test_there_are_no_circles_of_folders():
    graph = {folder(name): set() for name in modules()}
    for name, other in arrows():
        if (name, other) not in UPWARDS and folder(name) != folder(other):
            graph[folder(name)].add(folder(other))
    assert components(graph) == []


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


def test_public_class_names_occur_once():
    where = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(name)
    assert {name: found for name, found in where.items() if len(found) > 1} == {}
