"""What the manifest of a study's run holds, besides what every manifest does."""

from __future__ import annotations

from types import NoneType

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
    "writer?": PLAYER,
}
#: What the manifest of a study's run holds.
SHAPE = {
    **dict.fromkeys(("study", "description"), str),
    **dict.fromkeys(("seed", "finished"), int),
    "source?": str,
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
