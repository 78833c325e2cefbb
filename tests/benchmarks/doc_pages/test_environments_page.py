"""The documentation's pages on scenarios are what the classes say."""

from dataclasses import fields
from pathlib import Path

import pytest

from llm_coop_envs.benchmarks.doc_pages.environments import pages
from llm_coop_envs.cli.description import describe
from llm_coop_envs.core.registry import find_scenario

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["scenarios.md", "bertrand.md", "evacuation.md", "kbc.md"])
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
        assert (f"| `{setting}` |" in own) + (f"| `{setting}` |" in shared) == 1, setting
