"""What is compiled is compiled anew when something changed that it was made of."""

import importlib.util
import sys

import pytest

from llm_coop_envs.util import compiling

pytest.importorskip("numba")

SHARES = """
from llm_coop_envs.util.compiling import compiled

@compiled
def half_of(number):
    return number / {divisor}
"""
GAME = """
from typing import NamedTuple
from llm_coop_envs.util.compiling import compiled
from llm_coop_envs._shares import half_of

class {name}(NamedTuple):
    first: float
    second: float

@compiled
def settle(prices):
    return half_of(prices.first) + prices.second
"""


def imported(folder, name, source):
    """A module of the package, made anew of a source; what was compiled of it before stays where it was kept."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"llm_coop_envs.{name}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def settled(tmp_path):
    """Make and call a compiled function of a class of that name, and of another module."""

    def settle(name, divisor):
        compiling._hash_of.cache_clear()
        imported(tmp_path, "_shares", SHARES.format(divisor=divisor))
        game = imported(tmp_path, "_game", GAME.format(name=name))
        return game.settle(getattr(game, name)(4.0, 1.0)), sum(game.settle.stats.cache_hits.values())

    yield settle
    for name in ("llm_coop_envs._shares", "llm_coop_envs._game"):
        sys.modules.pop(name, None)
    compiling._hash_of.cache_clear()


def test_what_was_compiled_is_kept(settled):
    assert settled("Prices", 2) == (3.0, 0)
    assert settled("Prices", 2) == (3.0, 1)


def test_a_renamed_class_is_no_error(settled):
    settled("Prices", 2)
    assert settled("Bids", 2) == (3.0, 0)


def test_a_change_of_another_file_is_noticed(settled):
    settled("Prices", 2)
    assert settled("Prices", 4.0) == (2.0, 0)
