"""What the manifest of a study's run holds, besides what every manifest does."""

from __future__ import annotations

from types import NoneType
from typing import Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.studies.players import describe_model
from llm_coop_envs.studies.study import Study

PLAYER = {"policy": str, "options": dict, "share": (int, float), "cell?": {...: int}}
_CONDITION = {
    **dict.fromkeys(("name", "title", "scenario"), str),
    **dict.fromkeys(("variant?", "pair?", "family?"), str),
    "preset": (str, NoneType),
    "changed": dict,
    "settings": dict,
    "seats": [[(str, list)]],
    "seeds": [int],
    "after?": (dict, NoneType),
    "changes?": [{"policy": str, "options": dict, "for_models?": bool}],
    "branch?": {"condition": str, "at": int, "streams": str},
    "population?": dict,
    "tournament?": dict,
    "writer?": PLAYER,
}
#: What the manifest of a study's run holds.
SHAPE = {
    **dict.fromkeys(("study", "description"), str),
    **dict.fromkeys(("seed", "finished"), int),
    "source?": str,
    "imported?": {"format": str, "by": str, "of": str, "commit": str, "files": {...: str}, "plays": {...: [int]}},
    "measures": [str],
    "settles?": [str],
    "given?": [str],
    "primary?": {"measures": [str], "conditions": [str], "why": str},
    "policies?": {...: str},
    "program": {...: [str]},
    "models": [
        {
            "policy": str,
            "options": dict,
            "pack": {"name": str, "version": int, "digest": str},
            "token_counter": str,
        }
    ],
    "conditions": [_CONDITION],
}


def describe_models(study: Study) -> list[dict[str, Any]]:
    """The records of the language models in a study's seats: settings, prompt pack with its hash, token counter."""
    descriptions: list[dict[str, Any]] = []
    played = {condition.scenario for condition in study.conditions}
    for player in study.models:
        description = {"policy": player.policy, "options": plain(player.options)}
        description.update(describe_model(player.policy, player.options, played))
        if description not in descriptions:
            descriptions.append(description)
    return descriptions
