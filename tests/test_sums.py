"""Sums of floats are `math.fsum`: from Python 3.12 on `sum` rounds otherwise than before."""

import ast
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
PACKAGE = ("bertrand", "core", "evacuation", "interface", "kbc", "measures", "reports", "runs", "statistics")
ROOMS = (
    *(f"llm_coop_envs/{room}" for room in (*PACKAGE, "studies", "treatments", "util", "wrappers")),
    *("baselines", "benchmarks/scorecard", "examples", "policies/population"),
)
"""What plays, measures, compares and reports."""

WHOLE_NUMBERS: dict[str, tuple[str, ...]] = {
    "llm_coop_envs/runs/unread.py": (
        "sum((counts[name] for counts in calls.values()))",
        "sum((total.ended for total in totals))",
        "sum((total.repaired + total.retried for total in totals))",
        "sum((total.fallbacks for total in totals))",
        "sum((getattr(total, name) for total in totals))",
    ),
    "baselines/deep/network.py": ("sum((name.startswith('w') for name in arrays))",),
    "baselines/q_learning/analyse/entry_measures.py": ("sum((row['converged'] for row in rows))",),
    "baselines/q_learning/learn/initial.py": (
        "sum((game.action(joint) * game.actions ** k for k in range(game.memory)))",
    ),
    "baselines/q_learning/pricing_learner.py": (
        "sum((price * weight for price, weight in zip(prices, weights, strict=True)))",
    ),
    "baselines/q_learning/reproduce/recorded.py": ("sum((cell.agrees for cell in compared))",),
    "baselines/q_learning/reproduce/report.py": ("sum((comparison.agrees for comparison in comparisons))",),
    "benchmarks/scorecard/quiz/metrics.py": ("sum((row['correct'] for row in rows))",),
    "llm_coop_envs/evacuation/faces/synthetic_worlds.py": (
        "sum((mentions_exit(self._word(slots, k), message.text) for message in slots.heard))",
    ),
    "llm_coop_envs/evacuation/metrics.py": (
        "sum((row['stationary'] for row in rows))",
        "sum((row['moved'] for row in rows))",
        "sum((row[key] for row in rows))",
        "sum((row['messages'] for row in rows))",
        "sum((row['overtaken'] for row in rows))",
        "sum(out)",
        "sum(departures)",
        "sum",
    ),
    "llm_coop_envs/evacuation/scripted.py": (
        "sum((mentions_exit(exit_.name, message.text) for message in slots.heard))",
        "sum((read_report(exit_.name, m.text) for m in slots.heard))",
    ),
    "llm_coop_envs/kbc/env.py": ("sum(map(settings.turns_before, range(settings.decisions)))",),
    "llm_coop_envs/kbc/settings.py": ("sum(sizes)",),
    "llm_coop_envs/reports/answers.py": ("sum(self._models.values(), Counter())",),
    "examples/commons/env.py": ("sum(wanted)", "sum(got)"),
    "examples/commons/metrics.py": ("sum((row['taken'] for row in rows))", "sum(taken)"),
    "examples/commons/rules.py": ("sum(wanted)", "sum(wanted)"),
    "examples/dilemma/coopeval.py": ("sum((digit * base ** place for place, digit in enumerate(reversed(digits))))",),
    "examples/market/metrics.py": (
        "sum((asks.total() for asks in counts))",
        "sum((n for asks in counts for n in asks.values() if n > 1))",
    ),
    "llm_coop_envs/core/array_env.py": ("sum(self._seats().values())",),
    "llm_coop_envs/runs/verify.py": (
        "sum((records[0].get('recorded', {}).get('differ', 0) for _, _, records in own))",
    ),
    "examples/auction/metrics.py": ("sum((row['sold'] for row in rows))",),
    "llm_coop_envs/interface/move_spaces.py": ("sum((flat_width(part) for part in question.parts))",),
    "llm_coop_envs/interface/moves.py": ("sum((len(part.name) + 4 + longest_line(part) for part in question.parts))",),
    "llm_coop_envs/reports/headline.py": ("sum(sizes)",),
    "llm_coop_envs/reports/paper_tables.py": ("sum(widths)",),
    "llm_coop_envs/reports/run_tables.py": ("sum(players)", "sum(arm.lengths)"),
    "llm_coop_envs/util/invalid.py": ("sum((counts[name] for counts in calls.values()))",),
    "llm_coop_envs/studies/dealing.py": ("sum((k * people.in_cell(player.cell) for k, player in enumerate(players)))",),
    "llm_coop_envs/reports/methods.py": (
        "sum((row[name] for row in arm.metrics))",
        "sum((arm.choices for arm in arms))",
        "sum((arm.flagged for arm in arms))",
        "sum((counts[k] for counts in plays))",
    ),
    "llm_coop_envs/runs/claims.py": ("sum((one is not None and one.lives for one in holders))",),
    "llm_coop_envs/runs/cost.py": ("sum((row.episodes for row in rows))", "sum((row.played for row in rows))"),
    "llm_coop_envs/runs/remaining.py": ("sum(self._left)",),
    "llm_coop_envs/runs/side_by_side.py": ("sum((getattr(counters, name) for counters in counts))",),
    "llm_coop_envs/studies/conditions.py": (
        "sum((k * people.in_cell(player.cell) for k, player in enumerate(players)))",
    ),
    "llm_coop_envs/util/shares.py": ("sum(counts)",),
    "policies/population/columns.py": ("sum(self.counts)",),
}
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
    return isinstance(term, ast.Attribute) and term.attr in ("size", "st_size", "file_size")


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
    """Every module of these rooms."""
    found = {path.resolve() for room in ROOMS for path in (HOME / room).rglob("*.py")}
    return sorted(path.relative_to(HOME).as_posix() for path in found)


def test_no_module_adds_floats_with_sum():
    doubtful = {name: doubtful_sums((HOME / name).read_text(encoding="utf-8")) for name in modules()}
    found = {name: tuple(sums) for name, sums in doubtful.items() if sums}
    new = [f"{name}: {one}" for name, sums in found.items() for one in sums if one not in WHOLE_NUMBERS.get(name, ())]
    assert not new, "math.fsum for floats; sums of whole numbers belong into WHOLE_NUMBERS:\n" + "\n".join(new)


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
