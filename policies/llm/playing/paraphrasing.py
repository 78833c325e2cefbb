"""The prompt that asks a model to say its own message in other words; see the treatment `paraphrase`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.interface.wording import Templates
from llm_coop_envs.policies.llm.playing.calls import Call, names

PARAPHRASE = Call("paraphrase", "message", names("message"))
# In no pack: it would change the packs' hashes.
_FOLDER = Path(__file__).parents[1] / "packs" / "paraphrase"


def paraphrase_prompt(language: str, facts: Mapping[str, Any]) -> str:
    """Render the prompt in a language, or in English where there is no template in it."""
    template = f"{language}.jinja"
    return _templates().render(template if (_FOLDER / template).is_file() else "en.jinja", PARAPHRASE.values(facts))


@functools.cache
def _templates() -> Templates:
    return Templates(_FOLDER, {path.name: PARAPHRASE.names for path in _FOLDER.glob("*.jinja")})
