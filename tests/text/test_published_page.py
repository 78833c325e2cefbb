"""The page on papers and programs names settings that exist, and every setting that owes itself to a difference."""

import re
from dataclasses import fields
from pathlib import Path

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.policies.llm.playing.calls import workflow_class
from llm_coop_envs.policies.llm.playing.presets import PAPERS
from llm_coop_envs.policies.llm.playing.settings import LLMSettings

PAGE = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")
*_PARTS, PLANS = re.split(r"^## .*\n", PAGE, flags=re.MULTILINE)[1:]
PARTS = dict(zip(("bertrand", "kbc", "evacuation"), _PARTS, strict=True))


def names(kind):
    return {one.name for one in fields(kind)}


def test_every_setting_named_is_one():
    for scenario, part in PARTS.items():
        found = find_scenario(scenario)
        settings, workflow = found.env_class.settings_type, workflow_class(found)
        known = names(settings) | set(settings.presets) | {"en-b", "explicit_cooperation"} | set(PAPERS)
        players = names(LLMSettings) | names(workflow.settings_type)
        for name, mark in re.findall(r"`(\w[\w-]*)`(\*?)", part):
            assert name in (players if mark else known), (scenario, name)


def test_every_row_names_a_setting_and_every_part_what_is_none():
    for part in PARTS.values():
        rows = [row for row in part.split("\n") if row.startswith("| ")][1:]
        assert len(rows) > 9
        assert all("`" in row.split("|")[4] for row in rows)
        assert "\nNot a setting: " in part


def test_the_models_mistakes_and_readings_are_all_on_the_page():
    for scenario, part in PARTS.items():
        workflow = workflow_class(find_scenario(scenario))
        # How much is remembered and whether a question is asked at all is no difference between paper and program.
        for name in names(workflow.settings_type) - {"plan_memory", "own_reasons", "panic", "evaluate"}:
            assert f"`{name}`*" in part + PLANS
