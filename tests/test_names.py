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
def read_names():
    """How often each name is given to a variable, and the functions whose names say little; the code is read once."""
    names, loose = Counter(), []
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            inside = path.relative_to(ROOT).parts
            if "node_modules" in inside or (inside[0] == "llm_coop_envs" and inside[1] in ROOMS):
                continue  # the links to the other rooms
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names[node.id] += 1
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and LOOSE.fullmatch(node.name.strip("_")):
                    loose.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    return names, loose


def test_few_names_are_filler():
    names, _ = read_names()
    filler = {name: count for name, count in names.most_common() if FILLER.fullmatch(name)}
    assert sum(filler.values()) <= MOST_FILLER * sum(names.values()), filler


def test_few_functions_are_prepositions_or_participles():
    _, loose = read_names()
    assert len(loose) <= MOST_LOOSE, loose
