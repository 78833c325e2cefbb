"""The pages of the documentation on scenarios, written from the classes themselves.

    python -m llm_coop_envs.benchmarks.doc_pages.environments docs

writes one page for each scenario, and `scenarios.md` with what all of them share. A test compares the pages with what
this writes, so that they cannot fall behind the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.cli.description import Description, PolicyText, Setting, all_scenarios, describe

COMMAND = "python -m llm_coop_envs.benchmarks.doc_pages.environments docs"
WRITTEN = f"*Written by `{COMMAND}`; change the docstrings, not this page.*"
COMMON = Path(__file__).with_name("scenarios.md")


def pages() -> dict[str, str]:
    """Return all pages as Markdown, by file name."""
    descriptions = [describe(scenario.name) for scenario in all_scenarios()]
    shared_settings = _shared([{setting.name: setting for setting in each.settings} for each in descriptions])
    shared_measures = _shared([each.metrics for each in descriptions])
    rows = (
        f"| [`{each.scenario.name}_v0`]({each.scenario.name}.md) | {each.scenario.title} "
        f"| `{each.agents[0]}` to `{each.agents[1]}` | {', '.join(f'`{phase}`' for phase in each.phases)} |"
        for each in descriptions
    )
    common = COMMON.read_text(encoding="utf-8").format(
        written=WRITTEN,
        rows="\n".join(rows),
        settings=_settings_table(shared_settings.values()),
        measures=_measures_table(shared_measures),
    )
    own = {f"{each.scenario.name}.md": _page(each, set(shared_settings), set(shared_measures)) for each in descriptions}
    return {"scenarios.md": common, **own}


def _shared(tables: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all tables hold alike."""
    first, *others = tables
    return {name: entry for name, entry in first.items() if all(other.get(name) == entry for other in others)}


def _page(description: Description, shared_settings: set[str], shared_measures: set[str]) -> str:
    name = description.scenario.name
    settings = [setting for setting in description.settings if setting.name not in shared_settings]
    measures = {key: about for key, about in description.metrics.items() if key not in shared_measures}
    lines = [
        f"# {description.scenario.title}",
        "",
        WRITTEN,
        "",
        f"![A game of {name}](pictures/{name}.png)",
        "",
        f"    env = llm_coop_envs.{name}_v0.parallel_env()",
        "",
        *(f"{block}\n" for block in description.about),
        f"**Wordings.** {', '.join(f'`{wording}`' for wording in description.wordings)}, or a folder of your own.",
        "",
        "## Spaces",
        "",
        "Of one agent, by default:",
        "",
        "| part | space |",
        "|---|---|",
        *(f"| `{part}` | `{_cell(space)}` |" for part, space in description.spaces.items()),
        "",
        f"The numbers of `observation.observation`: {', '.join(f'`{feature}`' for feature in description.features)}.",
        "",
        "## Settings",
        "",
        "Besides [those of every scenario](scenarios.md):",
        "",
        _settings_table(settings),
        "",
        "## Presets",
        "",
        "| preset | changes |",
        "|---|---|",
        *_preset_rows(description.presets),
        "",
        "## Measures",
        "",
        "Besides [those of every scenario](scenarios.md):",
        "",
        _measures_table(measures),
        "",
        "## Scripted policies",
        "",
        *(line for policy in description.policies if policy.name != "llm" for line in _policy(policy)),
        "",
    ]
    return "\n".join(lines)


def _settings_table(settings: Iterable[Setting]) -> str:
    rows = (f"| `{setting.name}` | `{_value(setting.default)}` | {_cell(setting.about)} |" for setting in settings)
    return "\n".join(["| setting | default | meaning and source |", "|---|---|---|", *rows])


def _measures_table(measures: Mapping[str, str]) -> str:
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, about in measures.items():
        meaning, separator, when = about.rstrip(".").rpartition("; ")
        groups.setdefault(meaning if separator else about, []).append((name, when))
    rows = []
    for meaning, members in groups.items():
        names = ", ".join(f"`{name}`" for name, _ in members)
        if len(members) == 1:
            ((name, _),) = members
            meaning = measures[name]
        else:
            meaning = f"{meaning}; {', '.join(when for _, when in members)}."
        rows.append(f"| {names} | {_cell(meaning)} |")
    return "\n".join(["| measure | meaning |", "|---|---|", *rows])


def _preset_rows(presets: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """Yield a row for each preset; one that extends an earlier preset names it and says what is added."""
    earlier: dict[str, Mapping[str, Any]] = {}
    for name, changes in presets.items():
        bases = [base for base, settings in earlier.items() if settings and settings.items() <= changes.items()]
        base = max(bases, key=lambda candidate: len(earlier[candidate]), default=None)
        added = {key: value for key, value in changes.items() if base is None or key not in earlier[base]}
        words = [f"as `{base}`"] if base else []
        words += [f"`{key}={_value(value)}`" for key, value in added.items()]
        yield f"| `{name}` | {', '.join(words) or 'nothing: the defaults'} |"
        earlier[name] = changes


def _policy(policy: PolicyText) -> list[str]:
    options = (f"  - `{option.name}` ({_value(option.default)}): {option.about}" for option in policy.options)
    return [f"- `{policy.name}`: {policy.about}", *options]


def _value(value: Any) -> str:
    return _cell(json.dumps(value))


def _cell(text: str) -> str:
    """Escape text for a table's cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for file_name, text in pages().items():
        (Path(sys.argv[1]) / file_name).write_text(text, encoding="utf-8")
