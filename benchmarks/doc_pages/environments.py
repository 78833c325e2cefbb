"""The pages of the documentation on scenarios, written from the classes themselves.

    python -m llm_coop_envs.benchmarks.doc_pages.environments docs

writes one page for each scenario, and `scenarios.md` with what all of them share. These pages show the first sentence
on each setting, and the measures that reports put first; `full_texts`, from which the site makes a page of its
reference, has the others, and what players may read. A test compares the pages with what this writes, so that
they cannot fall behind the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.cli.description import Description, PolicyText, Setting, all_scenarios, describe
from llm_coop_envs.interface.slots import Heard, Slots
from llm_coop_envs.util.base_settings import declared
from llm_coop_envs.util.docstrings import attributes, first_sentence

COMMAND = "python -m llm_coop_envs.benchmarks.doc_pages.environments docs"
WRITTEN = f"<!-- Written by `{COMMAND}`; change the docstrings, not this page. -->"
COMMON = Path(__file__).with_name("scenarios.md")
FULL = "The [reference](reference/settings.md) and `llm-coop describe {}` say more, such as exceptions and ranges."
HISTORY = "Version history"
HEADINGS = {
    "Round": "Phases",
    "Phases": "Phases",
    "Choice": "Actions",
    "Reward": "Rewards",
    "End": "Episode end",
    HISTORY: HISTORY,
}
"""Headings of the labelled blocks of a scenario's docstring, in their order on the page."""
RANGE = re.compile(
    r"(?:, in units of price)?(?:,? (?:a count )?from -?\d+(?: up)?(?: to (?:\d+|rounds|the settings' limit))?)?$"
    r"|, -?\d+ to \d+$"
)
"""The range in which a measure lies, as its description ends with."""
LABELLED = re.compile(r"(?:\*\*)?([A-Z][a-z ]+)(?:\.\*\*|\*\*| \(float32.*?\)?:|:)\s+")
ONLY_IN_REFERENCE = ("Features", "State", "Events", "Arguments")


def pages() -> dict[str, str]:
    """Return all pages as Markdown, by file name."""
    descriptions, shared_settings, shared_measures = _described()
    rows = (
        f"| [`{each.scenario.name}_v0`]({each.scenario.name}.md) | {each.scenario.title} "
        f"| `{each.agents[0]}` to `{each.agents[1]}` | {', '.join(f'`{phase}`' for phase in each.phases)} |"
        for each in descriptions
    )
    common = COMMON.read_text(encoding="utf-8").format(
        written=WRITTEN,
        rows="\n".join(rows),
        full=FULL.format("SCENARIO"),
        settings=_short_list(shared_settings.values(), _allowed(descriptions[0])),
        measures=_measures_table(shared_measures),
    )
    own = {f"{each.scenario.name}.md": _page(each, set(shared_settings), set(shared_measures)) for each in descriptions}
    return {"scenarios.md": common, **own}


def full_texts() -> str:
    """Return everything that docstrings say of scenarios, settings, slots, measures and options, as Markdown."""
    descriptions, shared_settings, shared_measures = _described()
    lines = ["# Scenarios in full", "", "What `llm-coop describe SCENARIO` prints, and the slots.", ""]
    lines += ["## Every scenario", "", _settings_table(shared_settings.values()), ""]
    lines += [_plain_table(attributes(Slots), "slot"), "", *_record_lines(Heard), _plain_table(shared_measures), ""]
    for each in descriptions:
        own = [setting for setting in each.settings if setting.name not in shared_settings]
        measures = {key: about for key, about in each.metrics.items() if key not in shared_measures}
        options = {
            f"{policy.name}: {option.name}": f"{option.about.rstrip('.')}. Default: `{_value(option.default)}`."
            for policy in each.policies
            for option in policy.options
        }
        lines += [
            f"## {each.scenario.title}",
            "",
            *(f"{block}\n" for block in each.about),
            _settings_table(own),
            "",
            *_slots_lines(each),
            _plain_table(measures),
            "",
        ]
        lines += [_plain_table(options, "option of a policy"), ""]
    return "\n".join(lines)


def _described() -> tuple[list[Description], dict[str, Any], dict[str, Any]]:
    """Return all scenarios, and the settings and measures that they share."""
    descriptions = [describe(scenario.name) for scenario in all_scenarios()]
    shared_settings = _shared([{setting.name: setting for setting in each.settings} for each in descriptions])
    return descriptions, shared_settings, _shared([each.metrics for each in descriptions])


def _shared(tables: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all tables hold alike."""
    first, *others = tables
    return {name: entry for name, entry in first.items() if all(other.get(name) == entry for other in others)}


def _page(description: Description, shared_settings: set[str], shared_measures: set[str]) -> str:
    name = description.scenario.name
    settings = [setting for setting in description.settings if setting.name not in shared_settings]
    measures = {key: about for key, about in description.metrics.items() if key not in shared_measures}
    sections = _sections(description.about)
    headline = description.scenario.measured.headline
    lines = [
        f"# {description.scenario.title}",
        "",
        WRITTEN,
        "",
        f"![A game of {name}](pictures/{name}.png)",
        "",
        "```python",
        "import llm_coop_envs",
        "",
        f"env = llm_coop_envs.{name}_v0.parallel_env()",
        "observations, infos = env.reset(seed=0)",
        "```",
        "",
        *sections.pop(""),
        *(
            line
            for heading, blocks in sections.items()
            if heading != HISTORY
            for line in (f"## {heading}", "", *blocks)
        ),
        "## Spaces",
        "",
        "| part | space |",
        "|---|---|",
        *(f"| `{part}` | `{_cell(space)}` |" for part, space in description.spaces.items()),
        "",
        "`env.feature_names` names the numbers; the [reference](reference/settings.md) explains them.",
        "",
        f"**Wordings** of the text: {', '.join(f'`{wording}`' for wording in description.wordings)}, or a folder of "
        "your own.",
        "",
        "## Settings",
        "",
        f"Besides [those of every scenario](scenarios.md). {FULL.format(name)}",
        "",
        _short_list(settings, _allowed(description)),
        "",
        "## Presets",
        "",
        *_preset_rows(description.presets),
        "",
        "## Measures",
        "",
        "Besides [those of every scenario](scenarios.md), those that reports put first:",
        "",
        _measures_table({key: about for key, about in measures.items() if key in headline}),
        "",
        f"Others: {', '.join(f'`{key}`' for key in measures if key not in headline)}.",
        "",
        "## Scripted policies",
        "",
        *(_policy(policy) for policy in description.policies if policy.name != "llm"),
        "",
        f"## {HISTORY}",
        "",
        *sections[HISTORY][:-1],
        "",
    ]
    return "\n".join(lines)


def _slots_lines(description: Description) -> Iterable[str]:
    """Yield tables of what one player may know, from the classes of a scenario's own slots."""
    kinds = description.scenario.env_class.slots_type
    shared = attributes(Slots)
    for kind in kinds.values() if isinstance(kinds, Mapping) else [kinds]:
        texts = {name: about for name, about in attributes(kind).items() if name not in shared}
        yield from (_plain_table(texts, "slot"), "")
        for record in _parts_of(kind):
            yield from _record_lines(record)


def _record_lines(record: type) -> Iterable[str]:
    """Yield a table of the fields of a kind of record that slots hold."""
    yield from (f"`{record.__name__}`: {(record.__doc__ or '').splitlines()[0]}", "")
    yield from (_plain_table(attributes(record), "field"), "")


def _parts_of(kind: type[Slots]) -> list[type]:
    """Return the records of a scenario's own that its slots hold."""
    annotations = " ".join(str(annotation) for annotation in kind.__annotations__.values())
    named = vars(sys.modules[kind.__module__]).values()
    return [part for part in named if hasattr(part, "_fields") and re.search(rf"\b{part.__name__}\b", annotations)]


def _allowed(description: Description) -> Mapping[str, Iterable[Any]]:
    """Return the values that settings may have, of those that have a few."""
    kind: Any = description.scenario.settings_type
    return declared(kind, "allowed")


def _short_list(settings: Iterable[Setting], allowed: Mapping[str, Iterable[Any]]) -> str:
    """Return the first sentence on each setting, and the values that it may have besides its default."""
    rows = []
    for setting in settings:
        sentence = _first_statement(setting.about)
        values = [
            value for value in (json.dumps(each) for each in allowed.get(setting.name, ())) if value not in sentence
        ]
        others = [f"`{value}`" for value in values if value != json.dumps(setting.default)]
        or_others = f" (or {', '.join(others)})" if others else ""
        rows.append(f"- `{setting.name}` = `{json.dumps(setting.default)}`{or_others}: {sentence}")
    return "\n".join(rows)


def _plain_table(texts: Mapping[str, str], head: str = "measure") -> str:
    rows = (f"| `{name}` | {_cell(about)} |" for name, about in texts.items())
    return "\n".join([f"| {head} | meaning |", "|---|---|", *rows])


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
            meaning = _brief(measures[name])
        else:
            meaning = f"{_brief(meaning)}; {', '.join(when for _, when in members)}"
        rows.append(f"| {names} | {_cell(meaning)} |")
    return "\n".join(["| measure | meaning |", "|---|---|", *rows])


def _sections(blocks: Iterable[str]) -> dict[str, list[str]]:
    """Return a scenario's docstring by heading; what has no heading of its own comes first, below the empty one."""
    sections: dict[str, list[str]] = {heading: [] for heading in ("", *HEADINGS.values())}
    for block in blocks:
        labelled = LABELLED.match(block)
        heading = HEADINGS.get(labelled[1], "") if labelled else ""
        if heading and labelled:
            text = block[labelled.end() :]
            sections[heading] += [_steps(text[0].upper() + text[1:] if text.split()[0].isalpha() else text), ""]
        elif not (labelled and labelled[1] in ONLY_IN_REFERENCE):
            sections[""] += [block, ""]
    return {heading: section for heading, section in sections.items() if section}


def _steps(text: str) -> str:
    """Return a text with steps such as "(1) ... (2) ..." as a list."""
    opening, *steps = re.split(r"\(\d\) ", text)
    return "\n".join([*filter(None, [opening]), *(f"{number}. {step.strip()}" for number, step in enumerate(steps, 1))])


def _brief(meaning: str) -> str:
    """Return the first statement on a measure, without its range and remarks in parentheses other than sources."""
    statement = re.split(r"; (?![^()]*\))", first_sentence(meaning))[0]
    return RANGE.sub("", re.sub(r" \([^()0-9]*\)", "", statement))


def _first_statement(text: str) -> str:
    """Return a text up to its first full stop, or a semicolon after which neither values nor sources are named."""
    sentence = first_sentence(text)
    statement, *remarks = re.split(r"; (?![^()]*\))", sentence)
    return sentence if re.search(r'"|al\.|\d{4}', " ".join(remarks)) else statement


def _preset_rows(presets: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """Yield a line for each preset; one that extends an earlier preset names it and says what is added."""
    earlier: dict[str, Mapping[str, Any]] = {}
    for name, changes in presets.items():
        bases = [base for base, settings in earlier.items() if settings and settings.items() <= changes.items()]
        base = max(bases, key=lambda candidate: len(earlier[candidate]), default=None)
        added = {key: value for key, value in changes.items() if base is None or key not in earlier[base]}
        cells = [f"as `{base}`"] if base else []
        cells += [f"`{key}={json.dumps(value)}`" for key, value in added.items()]
        yield f"- `{name}`: {', '.join(cells) or 'nothing: the defaults'}"
        earlier[name] = changes


def _policy(policy: PolicyText) -> str:
    options = ", ".join(f"`{option.name}` ({_value(option.default)})" for option in policy.options)
    return f"- `{policy.name}`: {policy.about}" + (f" Options: {options}." if options else "")


def _value(value: Any) -> str:
    return _cell(json.dumps(value))


def _cell(text: str) -> str:
    """Escape text for a table's cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for file_name, text in pages().items():
        (Path(sys.argv[1]) / file_name).write_text(text, encoding="utf-8")
