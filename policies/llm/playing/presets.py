"""The papers' model parameters as presets of `LLMSettings`.

The models themselves (gpt-4-0314, gpt-3.5-turbo-0613, claude-3-sonnet-20240229) are mostly retired: a preset sets
everything but the model. What a paper says of one scenario stands, with its source, in that scenario's workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from llm_coop_envs.policies.llm.playing.calls import workflow_classes

#: Fields that hold in all scenarios, by preset.
PAPERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Authors' code of Wu et al. 2024 ("Shall We Team Up", arXiv version 3).
        "team_up": {},
        # The text of the same paper.
        "team_up_text": {},
        # The same with Claude 3 Sonnet.
        "team_up_claude": {},
        # "Shall We Talk" (arXiv version 1).
        "shall_we_talk": {},
        # Fish, Gonczarowski and Shorrer 2024: malformed answers are asked for again up to 10 times.
        # Their question stands in a pack of its own.
        "fish": {"tries": 10, "pack": "fish"},
        # Pan et al. 2024 ("Very Large-Scale Multi-Agent Simulation in AgentScope"): a thought and then a number. Their
        # second call that extracts the number is our repair question.
        "large_scale": {"answers": "reason"},
    }
)


def presets() -> dict[str, dict[str, Any]]:
    """The fields that each preset sets: those that hold everywhere, and those of the scenarios' workflows."""
    fields_by_preset = {name: {**fields, "parameters": {}, "options": {}} for name, fields in PAPERS.items()}
    for scenario, workflow in workflow_classes().items():
        for name, own in workflow.presets.items():
            preset = fields_by_preset.setdefault(name, {"parameters": {}, "options": {}})
            if "parameters" in own:
                preset["parameters"][scenario] = own["parameters"]
            preset["options"].update({key: value for key, value in own.items() if key != "parameters"})
    return fields_by_preset
