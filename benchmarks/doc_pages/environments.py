"""The environments' page of the documentation, written from the classes themselves.

    python -m llm_coop_envs.benchmarks.doc_pages.environments > docs/environments.md

A test compares the page with what this prints, so that it cannot fall behind the code.
"""

from __future__ import annotations

import json
from typing import Any

from llm_coop_envs.cli.description import Description, PolicyText, all_scenarios, describe

HEAD = """# The environments

*Written by `python -m llm_coop_envs.benchmarks.doc_pages.environments`; change the docstrings, not this page.*

All three share one contract ([design.md](design.md)): a flat Dict observation (`observation` in numbers, `phase`,
`turn`, `messages` heard, `text` with everything in words), an action with a `choice` and, with talk on, a `message`,
and infos with `action_mask`, `round`, `flags` (what was replaced in the last submission) and `slots` (what the player
may know, as plain values). Every choice, message or missing answer that cannot be used is replaced as described and
flagged, never an exception.

Arguments besides the settings: `preset`, `render_mode` (`"human"`, `"rgb_array"`, `"ansi"`; see
[rendering.md](rendering.md)), `max_cycles` (truncate after exactly that many steps), `record` (keep `events`). Sources
are named where each number stands.
"""


def page() -> str:
    """Return the page as Markdown."""
    return HEAD + "\n" + "\n".join(_section(describe(scenario.name)) for scenario in all_scenarios())


def _section(description: Description) -> str:
    name = description.scenario.name
    lines = [
        f"## `{name}_v0`: {description.scenario.title}",
        "",
        f"    env = llm_coop_envs.{name}_v0.parallel_env()",
        "",
        *(f"{block}\n" for block in description.about),
        f"**Agents:** `{description.agents[0]}` to `{description.agents[1]}` by default. **Phases:** "
        + ", ".join(f"`{phase}`" for phase in description.phases)
        + " (no `talk` with `talk=False`). **Wordings:** "
        + ", ".join(f"`{wording}`" for wording in description.wordings)
        + ", or a folder of your own.",
        "",
        "**Spaces of one agent by default:**",
        "",
        "| part | space |",
        "|---|---|",
        *(f"| `{part}` | `{_cell(space)}` |" for part, space in description.spaces.items()),
        "",
        "**Feature columns:** " + ", ".join(f"`{feature}`" for feature in description.features) + ".",
        "",
        "### Settings",
        "",
        "| setting | default | meaning and source |",
        "|---|---|---|",
        *(f"| `{s.name}` | `{_value(s.default)}` | {_cell(s.about)} |" for s in description.settings),
        "",
        "### Presets",
        "",
        "| preset | changes |",
        "|---|---|",
        *(f"| `{preset}` | {_changes(changes)} |" for preset, changes in description.presets.items()),
        "",
        "### Metrics of an episode",
        "",
        "| measure | meaning |",
        "|---|---|",
        *(f"| `{name}` | {_cell(about)} |" for name, about in description.metrics.items()),
        "",
        "### Scripted policies",
        "",
        *(line for policy in description.policies if policy.name != "llm" for line in _policy(policy)),
        "",
    ]
    return "\n".join(lines)


def _policy(policy: PolicyText) -> list[str]:
    options = (f"  - `{option.name}` ({_value(option.default)}): {option.about}" for option in policy.options)
    return [f"- `{policy.name}`: {policy.about}", *options]


def _value(value: Any) -> str:
    return _cell(json.dumps(value))


def _changes(changes: Any) -> str:
    return ", ".join(f"`{key}={_value(value)}`" for key, value in changes.items()) or "nothing: the defaults"


def _cell(text: str) -> str:
    """Escape text for a table's cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
