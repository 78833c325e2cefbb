"""Reads the games of lechmazur/emergent_collusion: `auction_*.jsonl`, sealed call markets with talk among models.

    llm-coop import emergent_collusion emergent_collusion/logs -o runs/emergent

A game is an episode. Prices were rounded there to whole numbers, at random where the midpoint is between two: what that
moves from one trader to the other is paid besides. Of equal quotes the recorded ones trade first. In which order the
messages of a round were heard is not recorded: they count as said at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_coop_envs.runs.imported import RecordedArm, RecordedEpisode, RecordedStep, Records
from llm_coop_envs.util.foreign import ForeignFolder
from market.env import BUYER, SELLER

BY = "Lech Mazur (github.com/lechmazur/emergent_collusion), who let language models trade and talk"
ARM, VERSION, TRADERS = "sealed", "1.4.0", 6
_NUMBER = (int, float)
_AGENT = {"role": str, "model_name": str, "valuation": (*_NUMBER, type(None)), "cost": (*_NUMBER, type(None))}
_SHAPES: Mapping[str, Any] = {
    "init": {"data": {"num_rounds": int, "agents": {...: _AGENT}}},
    "conversation": {"round": int, "player_id": str, "recipient_id": str, "message": str},
    "bid_ask": {"round": int, "agent_id": str, "price": (*_NUMBER, type(None))},
    "trade": {"round": int, "seller_id": str, "buyer_id": str, "cleared_price": _NUMBER, "midpoint_exact": _NUMBER},
    "payoff_change": {"round": int, "seat_id": str, "delta": _NUMBER},
}
_GROUPS = {"all_sellers": (SELLER,), "all_buyers": (BUYER,), "all_traders": (SELLER, BUYER)}
_LIMITS = {SELLER: "cost", BUYER: "valuation"}
Lines = Mapping[str, Sequence[Mapping[str, Any]]]


def read_records(foreign: ForeignFolder) -> Records:
    """Read all games of a folder.

    Raises:
        RunError: a file is of another form or version.
    """
    games = [(name, _read_lines(foreign, name)) for name in foreign.find("auction_*.jsonl")]
    rounds = games[0][1]["init"][0]["data"]["num_rounds"]
    settings = {
        "rounds": rounds,
        "talkers": "all",
        "talk_mode": "simultaneous",
        "private_messages": 1,
        "message_length": 10_000,
    }
    arm = RecordedArm(name=ARM, title="sealed call market with talk", settings=settings)
    return Records(by=BY, arms=[arm], episodes=_read_games(foreign, games))


def _read_lines(foreign: ForeignFolder, name: str) -> Lines:
    """The lines of a game by type."""
    by_type: dict[str, list[Any]] = defaultdict(list)
    for line in foreign.lines(name, {"type": str, "schema_version": str}):
        if line["schema_version"] != VERSION:
            raise foreign.refuse(name, f"has version {line['schema_version'][:20]!r}, not {VERSION!r}")
        if line["type"] in _SHAPES:
            by_type[line["type"]] += foreign.check(name, [line], [_SHAPES[line["type"]]])
    if len(by_type["init"]) != 1 or not 1 <= by_type["init"][0]["data"]["num_rounds"] <= 100:
        raise foreign.refuse(name, "is no game of up to 100 rounds")
    return by_type


def _read_games(foreign: ForeignFolder, games: Sequence[tuple[str, Lines]]) -> Iterator[RecordedEpisode]:
    for number, (name, lines) in enumerate(games):
        data = lines["init"][0]["data"]
        sides = {
            role: [(who, agent) for who, agent in sorted(data["agents"].items()) if agent["role"] == role]
            for role in (SELLER, BUYER)
        }
        seats = {who: f"{role}_{k}" for role, own in sides.items() for k, (who, _) in enumerate(own)}
        try:
            rounds = [_read_round(lines, number, seats) for number in range(1, data["num_rounds"] + 1)]
            limits = [[float(agent[field]) for _, agent in sides[role]] for role, field in _LIMITS.items()]
        except (KeyError, TypeError) as error:
            raise foreign.refuse(name, f"names somebody who does not trade, or lacks a quote ({error!r})") from error
        if [len(own) for own in limits] != [TRADERS // 2] * 2 or not all(0 <= x <= 100 for own in limits for x in own):
            raise foreign.refuse(name, "has other traders than three on each side, with costs and values from 0 to 100")
        yield RecordedEpisode(
            condition=ARM,
            seed=number,
            players={seat: data["agents"][who]["model_name"] for who, seat in seats.items()},
            steps=[step for steps, _ in rounds for step in steps],
            origin=name,
            options={"costs": limits[0], "values": limits[1], "ties": [first for _, first in rounds]},
        )


def _read_round(lines: Lines, number: int, seats: Mapping[str, str]) -> tuple[list[RecordedStep], list[int]]:
    """The talk and the quotes of a round with what they brought, and the seats in the order in which they trade."""
    now = {kind: [line for line in lines[kind] if line["round"] == number] for kind in _SHAPES if kind != "init"}
    agents = list(seats.values())
    said: dict[str, Any] = {agent: {"message": ""} for agent in agents}
    for line in now["conversation"]:
        roles, speaker = _GROUPS.get(line["recipient_id"]), seats[line["player_id"]]
        meant = [seats[line["recipient_id"]]] if roles is None else [a for a in agents if a.split("_")[0] in roles]
        said[speaker] = {"message": {"text": line["message"], "to": [agent for agent in meant if agent != speaker]}}
    quotes = {seats[line["agent_id"]]: line["price"] for line in now["bid_ask"]}
    paid, moved = dict.fromkeys(agents, 0.0), dict.fromkeys(agents, 0.0)
    for line in now["payoff_change"]:
        paid[seats[line["seat_id"]]] += line["delta"]
    for line in now["trade"]:
        for who, sign in ((line["seller_id"], 1), (line["buyer_id"], -1)):
            moved[seats[who]] += sign * (line["cleared_price"] - line["midpoint_exact"])
    first = [agents.index(seats[line[who]]) for who in ("seller_id", "buyer_id") for line in now["trade"]]
    choices = {agent: {"choice": quotes[agent]} for agent in agents}
    settled = RecordedStep(actions=choices, paid=list(paid.values()), besides=list(moved.values()))
    return [RecordedStep(actions=said), settled], list(dict.fromkeys([*first, *range(len(agents))]))
