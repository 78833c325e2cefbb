"""Names say what they hold: hardly any variable is called `found`, hardly any function `of`."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("llm_coop_envs", "policies", "baselines", "render", "benchmarks")
#: Words that say nothing of the field. httpx, Starlette, Mesa and PettingZoo use them for 0 to 0.2 % of their names.
FILLER = re.compile(
    r"found|told|one|given|there|made|shown|kept|known|rest|more|least|most|places?|held|who|whose|here|what|before|after|"
    r"why|said|asked|taken|meant|wanted|left|marks|words"
)
#: A function that is only a preposition or a participle does not say what it does.
LOOSE = re.compile(
    r"of|at|by|in|on|to|as|for|from|with|within|about|after|before|above|below|beside|between|among|still|again|most|"
    r"least|asked|told|shown|heard|kept|given|taken|made|said|meant|left|held|known|named|found|wanted|played|answered|"
    r"counted|judged|opened|sent|put|drawn|seen|read_in|written|chosen|moved|gone|come|cut|done|timed|mixed|reduced|"
    r"packed|unpacked|listed"
)
MOST_FILLER, MOST_LOOSE = 0.01, 40


@functools.cache
def nodes():
    """Path and node of all the code; read once."""
    return [*_read_nodes()]


def _read_nodes():
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            inside = path.relative_to(ROOT).parts
            if "node_modules" in inside or (inside[0] == "llm_coop_envs" and inside[1] in ROOMS):
                continue  # the links to the other rooms
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path.relative_to(ROOT), node


def test_few_names_are_filler():
    names = Counter(node.id for _, node in nodes() if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    filler = {name: count for name, count in names.most_common() if FILLER.fullmatch(name)}
    assert sum(filler.values()) <= MOST_FILLER * sum(names.values()), filler


def test_few_functions_are_prepositions_or_participles():
    loose = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and LOOSE.fullmatch(node.name.strip("_"))
    ]
    assert len(loose) <= MOST_LOOSE, loose
