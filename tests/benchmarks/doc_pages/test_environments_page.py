"""The documentation's pages on scenarios are what the classes say."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from llm_coop_envs.benchmarks.doc_pages.environments import full_texts, pages
from llm_coop_envs.cli.description import describe
from llm_coop_envs.core.registry import find_scenario

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ["scenarios.md", "bertrand.md", "evacuation.md", "kbc.md"]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], (
        "write them anew: python -m llm_coop_envs.benchmarks.doc_pages.environments docs"
    )


@pytest.mark.parametrize("name", ["bertrand", "evacuation", "kbc"])
def test_every_setting_and_measure_is_on_one_of_two_pages(name):
    own, shared = pages()[f"{name}.md"], pages()["scenarios.md"]
    taken = {setting.name for setting in describe(name).settings}  # some are refused where a game has no use for them
    assert taken <= {field.name for field in fields(find_scenario(name).env_class.settings_type)}
    for setting in taken:
        assert (f"\n- `{setting}` = `" in own) + (f"\n- `{setting}` = `" in shared) == 1, setting


@pytest.mark.parametrize("name", ["bertrand", "evacuation", "kbc"])
def test_every_measure_is_named_and_the_first_ones_are_explained(name):
    own, shared = pages()[f"{name}.md"], pages()["scenarios.md"]
    for measure in describe(name).metrics:
        assert f"`{measure}`" in own + shared, measure
    for measure in find_scenario(name).measured.headline:
        assert re.search(rf"^\|[^|]*`{measure}`[^|]*\|[^|]+\|$", own, re.MULTILINE), measure


@pytest.mark.parametrize("name", ["bertrand", "evacuation", "kbc"])
def test_the_reference_explains_every_slot(name):
    kind = find_scenario(name).env_class.slots_type
    explained = set(re.findall(r"^\| `(\w+)` \| \S", full_texts(), re.MULTILINE))
    assert {field.name for field in fields(kind)} <= explained
