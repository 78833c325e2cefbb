"""A run as an oTree experiment's data: one row per participant and round."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.runs.folder import Run

_PARTS = ("participant", "player", "group", "subsession", "session")
_OWN = re.compile(r"(\w+)_(\d+)")


def write_otree(run: Run, folder: Path) -> None:
    """Wide CSV as oTree names its columns: a file per scenario, a row per participant and round.

    What a row of the scenario's rounds says of player i (`price_0`) becomes `player.price` of that player, everything
    else `group.*`. `player.choice` is what counted in an act phase, the last where there are several; of phases of
    another name `player.choice_PHASE`. `subsession.round` is the round as the environment counts.
    """
    rows: dict[str, list[Row]] = {}
    for condition in run.conditions:
        for seed in condition.seeds:
            header, events = run.read_events(condition.name, seed)
            session = {
                "session.code": f"{condition.name}/{seed}",
                "session.config.scenario": condition.scenario,
                "session.config.name": condition.name,
                **{f"session.config.{name}": _cell(value) for name, value in condition.settings.items()},
            }
            rows.setdefault(condition.scenario, []).extend(
                {"participant.code": f"{condition.name}/{seed}/{one['participant.label']}", **one, **session}
                for one in _participants(header["policies"], events, condition.spec.round_rows(events))
            )
    for scenario, found in rows.items():
        columns = list(dict.fromkeys(name for row in found for name in row))
        columns.sort(
            key=lambda name: ("participant", "player", "group", "subsession", "session").index(name.split(".")[0])
        )
        with (folder / f"{scenario}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(found)


def _participants(policies: dict[str, str], events: Sequence[Event], rounds: Sequence[Row]) -> list[Row]:
    rows = []
    for number, settled in enumerate(rounds, 1):
        group = {name: value for name, value in settled.items() if name != "round"}
        own: dict[int, Row] = {}
        for name in list(group):
            found = _OWN.fullmatch(name)
            if found and int(found[2]) < len(policies):
                own.setdefault(int(found[2]), {})[f"player.{found[1]}"] = group.pop(name)
        for index, (agent, policy) in enumerate(policies.items()):
            mine = [one for one in events if one.get("agent") == agent and one["round"] == settled["round"]]
            said = [one["text"] for one in mine if one["type"] == "message"]
            chosen = {
                "player.choice" if one["phase"] == "act" else f"player.choice_{one['phase']}": _cell(one["choice"])
                for one in mine
                if one["type"] == "choice"
            }
            rows.append(
                {
                    "participant.id_in_session": index + 1,
                    "participant.label": agent,
                    "participant._is_bot": int(not policy.startswith("human")),
                    "participant.policy": policy,
                    "player.id_in_group": index + 1,
                    **chosen,
                    **own.get(index, {}),
                    "player.messages": json.dumps(said, ensure_ascii=False),
                    "player.flags": ", ".join(flag for one in mine for flag in one.get("flags", ())),
                    "group.id_in_subsession": 1,
                    **{f"group.{name}": value for name, value in group.items()},
                    "subsession.round_number": number,
                    "subsession.round": settled["round"],
                }
            )
    return rows


def _cell(value: Any) -> Any:
    return value if isinstance(value, str | int | float | type(None)) else json.dumps(value, ensure_ascii=False)
