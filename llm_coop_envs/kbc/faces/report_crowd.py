"""Large contests in reports: numbers and winners by kind of player, beside published values.

The tables follow Pan et al. 2024 ("Very Large-Scale Multi-Agent Simulation in AgentScope", arXiv 2407.17789): mean,
smallest, largest, standard deviation, median and most frequent number of each kind of player in each round, the
winners, and the share of players who named less than the last winning number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.kbc.metrics import choice_range, modal, target_range
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Panel
from llm_coop_envs.render.charts.style import PALETTE
from llm_coop_envs.reports.page_parts import Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.played import PlayedCondition, unit_of
from llm_coop_envs.reports.section import (
    Drawing,
    NotDrawn,
    is_shown_beside,
)
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import COUNT, FROM_0, SHARE, Range, mean_interval

_MOST_ROUNDS = 12
_BINS = 50
#: Numbers are compared with the announced target, which has two decimals.
_DIGITS = 2
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeContest:
    """An episode with many players.

    Attributes:
        rounds: the decisions' numbers.
        choices: (players,) numbers at each decision, NaN for players who have left.
        targets: the target at each.
        winners: (players,) whether each won, at each.
        groups: the groups' numbers at each; empty without groups.
        kinds: (players,) whether each has a value, by column and value; the column `""` holds the policies of a mix.
    """

    rounds: tuple[int, ...]
    choices: tuple[NDArray[np.float64], ...]
    targets: tuple[float, ...]
    winners: tuple[Flags, ...]
    groups: tuple[tuple[float, ...], ...]
    kinds: Mapping[str, Mapping[str, Flags]]

    def kinds_of(self, value: str) -> Flags:
        """(players,) whether each is of a kind, in the first column (policy, model, mix) that distinguishes players."""
        return next(self.kinds[name][value] for name in ("policy", "model", "") if name in self.kinds)

    def numbers_of(self, k: int, members: Flags) -> NDArray[np.float64]:
        """The numbers of some players at a decision, without those who had left."""
        numbers = self.choices[k][members]
        return numbers[~np.isnan(numbers)]

    @property
    def everybody(self) -> Flags:
        """(players,) true for all players."""
        return np.ones(len(self.choices[0]), dtype=np.bool_)


def read_crowd(episode: EpisodeTables) -> LargeContest | None:
    """Read a contest of the large study's kind, or among people of a population; `None` for other contests."""
    rounds = episode.by_type["round"]
    large = episode.condition.settings["winner_rule"] == "tolerance" or episode.people
    if not rounds or not large or any(len(event["choices"]) != len(episode.policies) for event in rounds):
        return None
    kinds = {
        name: {_label(value): np.asarray(column["codes"]) == code for code, value in enumerate(column["values"])}
        for name, column in episode.people.items()
    }
    if "policy" not in kinds:
        seated = np.array(list(episode.policies.values()))
        kinds[""] = {name: seated == name for name in dict.fromkeys(episode.policies.values())}
    players = np.arange(len(episode.policies))
    return LargeContest(
        rounds=tuple(event["round"] for event in rounds),
        choices=tuple(np.array(event["choices"], dtype=np.float64) for event in rounds),
        targets=tuple(float(event["target"]) for event in rounds),
        winners=tuple(np.isin(players, event["winners"]) for event in rounds),
        groups=tuple(tuple(event["group_numbers"] or ()) for event in rounds),
        kinds={name: values for name, values in kinds.items() if len(values) > 1},
    )


MemberSelector: TypeAlias = Callable[[LargeContest], Flags]


def _of_kind(column: str, value: str, crowd: LargeContest) -> Flags:
    return crowd.kinds[column][value]


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeCondition:
    """A condition with its crowds."""

    played: PlayedCondition[Any]
    crowds: Sequence[LargeContest]

    @property
    def parts(self) -> Iterator[tuple[str, str, MemberSelector]]:
        """Everybody, then each kind of player: the column, the kind, and a function that selects its members."""
        yield "", "everybody", lambda crowd: crowd.everybody
        for column, values in self.crowds[0].kinds.items():
            for value in values:
                yield column, value, partial(_of_kind, column, value)

    def row(self, column: str, value: str, cells: Sequence[Cell], below: str = "") -> TableRow:
        """A table row about one kind of player."""
        name = f"{column}: {value}" if column else value
        return self.played.row(cells, name=f"{self.played.condition.title}, {name}", below=below or self.played.below)

    def mean(self, values: Sequence[float | None], within: Range, digits: int | None = None) -> Cell:
        """The mean over the condition's units with its interval."""
        return interval_cell(mean_interval(self.played.per_unit(values), within), digits, of=self.played.units)

    @property
    def numbers(self) -> Range:
        """What players can name."""
        return choice_range(self.played.condition.settings)


def crowd_tables(
    crowds_by_condition: Sequence[tuple[PlayedCondition[Any], Sequence[LargeContest]]],
    published: Mapping[str, Any],
    source: str,
) -> list[ReportTable]:
    """The tables on large contests; none without such contests.

    Args:
        crowds_by_condition: the conditions with their large contests.
        published: the published values of the large study.
        source: the paper that the study plays again, in the study's words.
    """
    conditions = [LargeCondition(played=played, crowds=crowds) for played, crowds in crowds_by_condition]
    if not conditions:
        return []
    tables = [
        _numbers(conditions),
        _winners(conditions),
        _below_target_table(conditions),
        _published(conditions, published, source),
    ]
    return [table for table in tables if table.rows]


def _numbers(conditions: Sequence[LargeCondition]) -> ReportTable:
    rows = []
    for condition in conditions:
        for column, value, select in condition.parts:
            for k, number in list(enumerate(condition.crowds[0].rounds))[:_MOST_ROUNDS]:
                numbers_by_crowd = [
                    crowd.numbers_of(k, select(crowd)) if k < len(crowd.choices) else np.zeros(0)
                    for crowd in condition.crowds
                ]
                pooled = np.concatenate(numbers_by_crowd)
                if not len(pooled):
                    continue
                statistics = (
                    pooled.min(),
                    pooled.max(),
                    pooled.std(),
                    np.median(pooled),
                    modal(np.round(pooled, _DIGITS))[0],
                )
                means = [float(numbers.mean()) if len(numbers) else None for numbers in numbers_by_crowd]
                mean = condition.mean(means, condition.numbers, _DIGITS)
                cells = [Cell(text=str(number)), mean, *(Cell(text=fixed(float(x), _DIGITS)) for x in statistics)]
                rows.append(condition.row(column, value, cells, f"{len(pooled):,} numbers"))
    return ReportTable(
        title="Numbers by who named them",
        head=["", "decision", "mean", "smallest", "largest", "SD", "median", "mode"],
        rows=rows,
        notes=[
            f"Mean: over {unit_of(condition.played for condition in conditions)}, with 95 % interval; the others are "
            "of all numbers of all episodes. Mode: the most frequent number, rounded to two decimals, the smallest of "
            "several."
        ],
    )


def _by_round(
    conditions: Sequence[LargeCondition], cell: Callable[[LargeCondition, int, MemberSelector], Cell]
) -> list[TableRow]:
    last = max(len(condition.crowds[0].rounds) for condition in conditions)
    return [
        condition.row(column, value, [cell(condition, k, select) for k in range(min(last, _MOST_ROUNDS))])
        for condition in conditions
        for column, value, select in condition.parts
    ]


def _head(conditions: Sequence[LargeCondition]) -> list[str]:
    last = max(len(condition.crowds[0].rounds) for condition in conditions)
    return ["", *(f"decision {k + 1}" for k in range(min(last, _MOST_ROUNDS)))]


def _winners(conditions: Sequence[LargeCondition]) -> ReportTable:
    """The winners by kind; only for conditions with several kinds of players."""
    several = [condition for condition in conditions if condition.crowds[0].kinds]

    def cell(condition: LargeCondition, k: int, select: MemberSelector) -> Cell:
        won = [
            float(crowd.winners[k][select(crowd)].sum()) if k < len(crowd.rounds) else None
            for crowd in condition.crowds
        ]
        return condition.mean(won, COUNT)

    return ReportTable(
        title="Winners by who they are",
        head=_head(several) if several else [],
        rows=_by_round(several, cell) if several else [],
        notes=[f"How many players won: mean over {unit_of(one.played for one in conditions)} with 95 % interval."],
    )


def below_last(crowd: LargeContest, k: int, members: Flags) -> float | None:
    """The share of some players who named less than the last announced number; `None` without one."""
    if not 0 < k < len(crowd.rounds) or not members.any():
        return None
    numbers = crowd.numbers_of(k, members)
    return float(np.mean(numbers < round(crowd.targets[k - 1], _DIGITS))) if len(numbers) else None


def _below_target_table(conditions: Sequence[LargeCondition]) -> ReportTable:
    repeated = [condition for condition in conditions if condition.played.condition.settings["session"] == "repeated"]

    def cell(condition: LargeCondition, k: int, select: MemberSelector) -> Cell:
        shares = [below_last(crowd, k, select(crowd)) for crowd in condition.crowds]
        return condition.mean([None if x is None else 100 * x for x in shares], SHARE.scale(100), 1)

    return ReportTable(
        title="Below the last winning number",
        head=_head(repeated) if repeated else [],
        rows=_by_round(repeated, cell) if repeated else [],
        notes=["Players who named less than the winning number that was announced before, per cent."],
    )


def _published(conditions: Sequence[LargeCondition], published: Mapping[str, Any], source: str) -> ReportTable:
    rows, notes = [], []
    for entry in published["values"]:
        comparable = {**published["comparable"], "settings": entry.get("settings", {})}
        like = {**entry, "comparable": comparable, "study": published["study"]}
        for condition in conditions:
            definition = condition.played.condition
            if not is_shown_beside(definition, like, source):
                continue
            if "words" in entry:
                notes.append(f"{entry['title']}: {entry['words']}")
                continue
            statistics = [_statistic(crowd, entry) for crowd in condition.crowds]
            cells = [
                condition.mean(statistics, _statistic_range(condition, entry["statistic"]), _DIGITS),
                Cell(text=f"{entry['value']:g}", below=entry["title"]),
            ]
            rows.append(condition.played.row(cells, name=f"{definition.title}: {entry['what']}"))
    about = [f"Published: {published['source']}", *dict.fromkeys(notes)]
    return ReportTable(
        title="The large-scale study", head=["", "here", "published"], rows=rows, notes=about if rows else []
    )


def _statistic_range(condition: LargeCondition, statistic: str) -> Range:
    """What a published statistic can be."""
    ranges = {
        "mean": condition.numbers,
        "group": condition.numbers,
        "target": target_range(condition.played.condition.settings),
        "below_later": SHARE.scale(100),
    }
    return ranges.get(statistic, FROM_0)


def _statistic(crowd: LargeContest, entry: Mapping[str, Any]) -> float | None:
    """One published statistic in an episode; `None` if it has no such round, group or attribute."""
    kind, k = entry["statistic"], entry.get("round", 1) - 1
    if k >= len(crowd.rounds):
        return None
    numbers = crowd.numbers_of(k, crowd.everybody)
    if kind == "range":
        values = crowd.kinds.get(entry["by"], {})
        means = [float(some.mean()) for is_of_kind in values.values() if len(some := crowd.numbers_of(k, is_of_kind))]
        return max(means) - min(means) if means else None
    if kind == "group":
        return crowd.groups[k][entry["group"] - 1] if crowd.groups[k] else None
    if kind == "below_later":
        later = [below_last(crowd, j, crowd.everybody) for j in range(1, len(crowd.rounds))]
        return 100 * float(np.mean([x for x in later if x is not None])) if later else None
    measures: dict[str, Callable[[], Any]] = {
        "mean": numbers.mean,
        "sd": numbers.std,
        "target": lambda: crowd.targets[k],
    }
    if kind == "mean" and crowd.groups[k]:
        return float(np.mean(crowd.groups[k]))
    return float(measures[kind]())


def kinds_figure(crowds_by_condition: Sequence[tuple[PlayedCondition[Any], Sequence[LargeContest]]]) -> list[Drawing]:
    """The distribution of the first decision's numbers by kind of player, one panel per condition.

    Raises:
        NotDrawn: no condition has players of different kinds.
    """
    panels = []
    for played, crowds in crowds_by_condition:
        kinds = next((crowds[0].kinds[name] for name in ("policy", "model", "") if name in crowds[0].kinds), {})
        low, high = played.condition.settings["low"], played.condition.settings["high"]
        edges = np.linspace(low, high, _BINS + 1)
        curves = []
        for value, color in zip(kinds, cycle(PALETTE)):
            numbers = np.concatenate([crowd.choices[0][crowd.kinds_of(value)] for crowd in crowds])
            shares = 100 * np.histogram(numbers, edges)[0] / max(1, len(numbers))
            label = f"{value} ({played.who}, {len(numbers):,} numbers)"
            curves.append(Curve(label=label, x=((edges[1:] + edges[:-1]) / 2).tolist(), y=shares.tolist(), color=color))
        if curves:
            panels.append(
                Panel(
                    title=played.cut_title(36),
                    x_label="number",
                    y_label="share of these players, %",
                    curves=curves,
                    x_range=(low, high),
                    y_range=(0, None),
                )
            )
    if not panels:
        raise NotDrawn("the run holds no large contest whose players differ in who plays them")
    return [
        Drawing(
            name="kbc_kinds",
            caption=f"Numbers of the first decision, all episodes, by who plays, in {_BINS} equal parts of the range.",
            alt="Line charts: how often numbers were named in the first decision, one curve for each kind of player. "
            "Their statistics are in the table 'Numbers by who named them'.",
            figure=draw_panels([panels[i : i + 2] for i in range(0, len(panels), 2)], size=(5.6, 3.4)),
        )
    ]


def _label(value: Any) -> str:
    """A value of a column in words: a policy with its options as `name (option = value)`."""
    if isinstance(value, Mapping) and "name" in value:
        options = ", ".join(f"{key} = {json.dumps(option)}" for key, option in (value.get("options") or {}).items())
        return f"{value['name']} ({options})" if options else str(value["name"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
