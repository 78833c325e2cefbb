"""A run as an oTree experiment's data: one row per participant and round."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.util.quoting import table_cell

_PARTS = ("participant", "player", "group", "subsession", "session")
# A column of one player, such as "price_0": its name and the player's number.
_OWN = re.compile(r"(\w+)_(\d+)")


def write_otree(run: Run, folder: Path) -> None:
    """Wide CSV as oTree names its columns: a file per scenario, a row per participant and round.

    A column of the scenario's rounds that belongs to player i (`price_0`) becomes `player.price` of that player; every
    other column becomes `group.*`. `player.choice` is the choice that counted in the act phase, the last one if there
    are several; choices in other phases are `player.choice_PHASE`. `subsession.round` is the environment's own number.
    """
    rows: dict[str, list[Row]] = {}
    finished = run.finished()
    for condition, seed in run.episodes:
        if (condition.name, seed) not in finished:
            continue
        header, events = run.read_events(condition.name, seed)
        session = {
            "session.code": f"{condition.name}/{seed}",
            "session.config.scenario": condition.scenario,
            "session.config.name": condition.name,
            **{f"session.config.{name}": _cell(value) for name, value in condition.settings.items()},
        }
        rows.setdefault(condition.scenario, []).extend(
            {
                "participant.code": f"{condition.name}/{seed}/{participant['participant.label']}",
                **participant,
                **session,
            }
            for participant in _participants(
                header["policies"], events, condition.spec.round_rows(events), header.get("returns", {})
            )
        )
    for scenario, scenario_rows in rows.items():
        columns = list(dict.fromkeys(name for row in scenario_rows for name in row))
        columns.sort(key=lambda name: _PARTS.index(name.split(".")[0]))
        with (folder / f"{scenario}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows({name: table_cell(value) for name, value in row.items()} for row in scenario_rows)


def _participants(
    policies: dict[str, str], events: Sequence[Event], rounds: Sequence[Row], returns: Mapping[str, float]
) -> list[Row]:
    """One row per round and player of an episode."""
    rows = []
    for number, settled in enumerate(rounds, 1):
        group = {name: value for name, value in settled.items() if name != "round"}
        own_values: dict[int, Row] = {}
        for name in list(group):
            match = _OWN.fullmatch(name)
            if match and int(match[2]) < len(policies):
                own_values.setdefault(int(match[2]), {})[f"player.{match[1]}"] = group.pop(name)
        for index, (agent, policy) in enumerate(policies.items()):
            own_events = [
                event for event in events if event.get("agent") == agent and event["round"] == settled["round"]
            ]
            texts = [event["text"] for event in own_events if event["type"] == "message"]
            chosen = {
                "player.choice" if event["phase"] == "act" else f"player.choice_{event['phase']}": _cell(
                    event["choice"]
                )
                for event in own_events
                if event["type"] == "choice"
            }
            rows.append(
                {
                    "participant.id_in_session": index + 1,
                    "participant.label": agent,
                    "participant._is_bot": int(not policy.startswith("human")),
                    "participant.policy": policy,
                    **({"participant.payoff": returns[agent]} if agent in returns else {}),
                    "player.id_in_group": index + 1,
                    **chosen,
                    **own_values.get(index, {}),
                    "player.messages": json.dumps(texts, ensure_ascii=False),
                    "player.flags": ", ".join(flag for event in own_events for flag in event.get("flags", ())),
                    "group.id_in_subsession": 1,
                    **{f"group.{name}": value for name, value in group.items()},
                    "subsession.round_number": number,
                    "subsession.round": settled["round"],
                }
            )
    return rows


def _cell(value: Any) -> Any:
    return value if isinstance(value, str | int | float | type(None)) else json.dumps(value, ensure_ascii=False)
