"""Write the settings of all scenarios as typed keywords: `python tests/tools/typed_settings.py`, or `make types`."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from llm_coop_envs.core.registry import find_scenario, shipped_names
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.util.base_settings import declared

HOME = Path(__file__).parents[2] / "llm_coop_envs"
SHARED = {"render_mode": 'Literal["human", "rgb_array", "ansi"] | None', "max_cycles": "int | None", "record": "bool"}
TITLE = """\
\"\"\"{title}, as keywords for type checkers and editors.

Written by `make types` from `{settings}`.
\"\"\"

from __future__ import annotations

"""
PLACES = {
    "Sequence": "collections.abc",
    "Mapping": "collections.abc",
    "Fraction": "fractions",
    "Any": "typing",
    "Literal": "typing",
    "TypedDict": "typing",
    "ScenarioFields": "llm_coop_envs.core.fields",
    "Change": "llm_coop_envs.treatments.changes",
    "Listener": "llm_coop_envs.treatments.listeners",
    "MechanismSettings": "llm_coop_envs.mechanisms.settings",
    "RegulatorSettings": "llm_coop_envs.treatments.powers",
    "StrPath": "llm_coop_envs.util.paths",
}


def files():
    """The content of every file, by its path."""
    own = {f.name for f in fields(ScenarioSettings)}
    shared = {**SHARED, **typed(ScenarioSettings, own)}
    written = {
        HOME / "core" / "fields.py": _file(
            "Settings of every scenario", ScenarioSettings, "ScenarioFields", "TypedDict", shared
        )
    }
    for name in shipped_names():
        settings = find_scenario(name).settings_type
        presets = f"Literal[{', '.join(map(_quoted, settings.presets))}] | None"
        own_fields = {"preset": presets, **typed(settings, {f.name for f in fields(settings)} - own)}
        typed_name = settings.__name__.replace("Settings", "Fields")
        title = f"Settings of `{name}`"
        written[HOME / name / "fields.py"] = _file(title, settings, typed_name, "ScenarioFields", own_fields)
    return {path: formatted(text) for path, text in written.items()}


def typed(settings, names):
    """How each of these fields may be given, by its name."""
    allowed, forms = declared(settings, "allowed"), declared(settings, "forms")
    return {
        f.name: forms.get(f.name)
        or (f"Literal[{', '.join(map(_quoted, allowed[f.name]))}]" if f.name in allowed else _form(f.type))
        for f in fields(settings)
        if f.name in names and f.init
    }


def _form(kind):
    """A field's type, wider where a user may write it otherwise: lists for tuples, mappings for settings."""
    kind = re.sub(r"tuple\[(\w+), [^\]]*\]", r"Sequence[\1]", kind)
    kind = re.sub(r"\b(Change|Listener|RegulatorSettings)\b", r"\1 | Mapping[str, Any]", kind)
    return re.sub(r"\bFraction\b", "Fraction | str | float | Sequence[int]", kind)


def _quoted(text):
    return f'"{text}"'


def _file(title, settings, name, base, types):
    lines = [f"class {name}({base}, total=False):", f'    """{title}; see `{settings.__name__}`."""', ""]
    body = "\n".join([*lines, *(f"    {field}: {kind}" for field, kind in types.items())])
    words = set(re.findall(r"\w+", body.replace(lines[0], base))) & PLACES.keys()
    imports = "\n".join(f"from {PLACES[word]} import {word}" for word in sorted(words))
    return f"{TITLE.format(title=title, settings=settings.__name__)}{imports}\n\n\n{body}\n"


def formatted(text):
    """As `ruff format` and `ruff check --fix` leave it."""
    ruff = [sys.executable, "-m", "ruff"]
    for call in (["check", "--fix", "-q", "--select", "I", "-"], ["format", "-q", "-"]):
        text = subprocess.run(
            [*ruff, *call], input=text, capture_output=True, encoding="utf-8", check=True, cwd=HOME
        ).stdout
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
