"""Sums of floats are `math.fsum`: from Python 3.12 on `sum` rounds otherwise than before."""

import ast
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
ROOMS = ("llm_coop_envs", "policies", "baselines", "render", "benchmarks", "examples")

WHOLE_NUMBERS: dict[str, tuple[str, ...]] = {}
"""Sums of whole numbers whose terms do not show it, by file."""


def is_whole(term: ast.expr) -> bool:
    """Whether an expression is a whole number for sure: a truth value, a length, a whole constant, or made of these."""
    if isinstance(term, ast.Compare):
        return True
    if isinstance(term, ast.UnaryOp):
        return isinstance(term.op, ast.Not) or is_whole(term.operand)
    if isinstance(term, ast.BoolOp):
        return all(map(is_whole, term.values))
    if isinstance(term, ast.BinOp):
        return not isinstance(term.op, ast.Div) and is_whole(term.left) and is_whole(term.right)
    if isinstance(term, ast.IfExp):
        return is_whole(term.body) and is_whole(term.orelse)
    if isinstance(term, ast.Call) and isinstance(term.func, ast.Name):
        return term.func.id in ("len", "bool", "int", "isinstance", "any", "all")
    if isinstance(term, ast.Constant):
        return isinstance(term.value, int)
    return isinstance(term, ast.Attribute) and term.attr in ("size", "st_size")


def terms_are_whole(call: ast.Call) -> bool:
    """Whether the terms of a sum are whole numbers for sure."""
    terms = call.args[0]
    if isinstance(terms, ast.GeneratorExp | ast.ListComp):
        return is_whole(terms.elt)
    if isinstance(terms, ast.Call) and isinstance(terms.func, ast.Name) and terms.func.id == "map":
        return isinstance(terms.args[0], ast.Name) and terms.args[0].id in ("len", "bool", "int")
    return False


def doubtful_sums(text: str) -> list[str]:
    """The sums of a module whose terms may be floats, and `sum` where it is handed on, as source text."""
    tree = ast.parse(text)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum"
    ]
    called = {id(call.func) for call in calls}
    handed_on = [
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "sum" and id(node) not in called
    ]
    return [ast.unparse(call) for call in calls if not terms_are_whole(call)] + [node.id for node in handed_on]


def modules() -> list[str]:
    """Every module of the package and of the examples, once."""
    found = {path.resolve() for room in ROOMS for path in (HOME / room).rglob("*.py")}
    return sorted(path.relative_to(HOME).as_posix() for path in found)


def test_no_module_adds_floats_with_sum():
    doubtful = {name: doubtful_sums((HOME / name).read_text(encoding="utf-8")) for name in modules()}
    found = {name: tuple(sums) for name, sums in doubtful.items() if sums}
    new = [f"{name}: {one}" for name, sums in found.items() for one in sums if one not in WHOLE_NUMBERS.get(name, ())]
    assert not new, "math.fsum for floats; sums of whole numbers belong into WHOLE_NUMBERS:\n" + "\n".join(new)
    gone = [(name, one) for name, sums in WHOLE_NUMBERS.items() for one in sums if one not in found.get(name, ())]
    assert not gone, "no longer there"


@pytest.mark.parametrize(
    ("source", "doubtful"),
    [
        ("sum(prices)", 1),
        ("sum(price * 2 for price in prices)", 1),
        ("sum(made / fewest for made, fewest in walks)", 1),
        ("sum(1 / 3 if x else 1 for x in prices)", 1),
        ("total = max if wide else sum", 1),
        ("sum(len(one) for one in lists)", 0),
        ("sum(x > 3 for x in prices)", 0),
        ("math.fsum(prices) + array.sum()", 0),
    ],
)
def test_the_search_finds_sums_of_floats(source, doubtful):
    assert len(doubtful_sums(source)) == doubtful
