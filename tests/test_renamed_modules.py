"""Former names of public modules still work, with a warning, and give the very same modules."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from llm_coop_envs.renamed_modules import RENAMED

PUBLIC = (Path(__file__).parents[1] / "docs" / "public.md").read_text(encoding="utf-8")


PACKAGES = {name for name in RENAMED if any(other.startswith(f"{name}.") for other in RENAMED)}


@pytest.mark.parametrize("former", sorted(set(RENAMED) - PACKAGES))
def test_a_former_name_gives_the_module_of_today_and_warns(former):
    names = [former.rsplit(".", depth)[0] for depth in range(3)]
    kept = {name: sys.modules.pop(name) for name in names if name in RENAMED and name in sys.modules}
    try:
        with pytest.warns(FutureWarning, match=rf"{re.escape(former)} is now {re.escape(RENAMED[former])};"):
            module = importlib.import_module(former)
    finally:
        sys.modules.update(kept)
    assert module is importlib.import_module(RENAMED[former])
    assert module.__name__ == module.__spec__.name == RENAMED[former]


def test_no_present_module_is_hidden_by_a_former_name():
    assert not set(RENAMED) & set(RENAMED.values())
    assert not [former for former in RENAMED if f"`{former}`" in PUBLIC]
