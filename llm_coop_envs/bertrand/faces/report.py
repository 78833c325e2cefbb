"""The report's section on Bertrand competition, and its figures.

Published values are those of `published.json`: reference prices, the definition of collusion, and price paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.bertrand.faces.comparison_report import PlayerComparison
from llm_coop_envs.bertrand.faces.report_prices import (
    MOST_OVERLAID,
    STRETCH,
    PriceHistory,
    collusion,
    count_rounds,
    draw_prices,
    mean_path,
)
from llm_coop_envs.bertrand.metrics import forced_rounds, price_range
from llm_coop_envs.bertrand.settings import IN_TURN
from llm_coop_envs.render.charts.panels import Curve, Panel
from llm_coop_envs.render.charts.style import PALETTE
from llm_coop_envs.reports.means import mean_curves
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.played import PlayedCondition, unit_of
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    NotDrawn,
    ScenarioSection,
    comparable,
    concerns,
    is_shown_beside,
    with_unflagged,
)
from llm_coop_envs.runs.citation import WU_2024
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import mean_interval

#: Rounds over which the table averages.
AVERAGED = 20
_MARKS = (20, 100, 200, 300, 400, 600, 1200)


class BertrandSection(ScenarioSection[PriceHistory]):
    """Price paths with the Nash and cartel price, beside the published ones."""

    papers = (WU_2024,)
    episode_caption = (
        f"Prices of each firm; dotted: Nash and cartel price; shaded: held together for {STRETCH} rounds or more."
    )
    overview_caption = "Mean price by round"

    def read(self, episode: EpisodeTables) -> PriceHistory:
        """Read the prices and the equilibria of one episode."""
        start, end = episode.events[0], episode.events[-1]
        rounds = episode.by_type["round"]
        last = rounds[-1]["round"] if rounds else 0
        prices = np.full((last, len(start["nash"])), np.nan)
        chosen, together = np.zeros((2, last), dtype=np.bool_)
        forced = forced_rounds(episode.events)
        for event in rounds:
            place = event["round"] - 1
            if not event["forced"]:
                prices[place] = event["prices"]
            chosen[place] = event["round"] not in forced
            together[place] = chosen[place] and event["together"]
        return PriceHistory(
            prices=prices,
            chosen=chosen,
            together=together,
            nash=float(np.mean(start["nash"])),
            joint=float(np.mean(start["joint"])),
            later=tuple(_after_departure(event) for event in episode.by_type.get("left", ())),
            truncated=bool(end["truncated"]),
        )

    def intro(self) -> list[str]:
        """How the game is played, and what was not tested."""
        defined = self.scenario.published["collusion"]
        rounds = defined["rounds"]
        compared = self._compared()
        return [
            *(() if compared is None else compared.intro()),
            f"{self._clock()} The Nash price is what self-interest gives "
            "in a single round, the cartel price what would be best for all firms together."
            + (
                f" {WU_2024.short} speak of collusion when prices stay close to each other between the two for "
                f"{rounds} rounds."
                if concerns(defined, self.source)
                else ""
            ),
            *self._untested(),
        ]

    def _clock(self) -> str:
        """Whether firms name their prices at the same time or in turn."""
        in_turn = [
            f"'{played.title}'" for played in self.conditions if played.condition.settings.get("moves") == IN_TURN
        ]
        at_once = "Firms name their prices at the same time, round after round"
        turn_sentence = "one firm a round names its price, in turn, and the others' prices stand."
        if not in_turn:
            return f"{at_once}."
        return (
            turn_sentence.capitalize()
            if len(in_turn) == len(self.conditions)
            else f"{at_once}; in {', '.join(in_turn)} {turn_sentence}"
        )

    def _untested(self) -> list[str]:
        """The conditions that were not tested for spurious collusion."""
        without = [played.condition.title for played in self.conditions if "panel_level" not in played.metrics[0]]
        if not without:
            return []
        which = "These conditions were" if len(without) == len(self.conditions) else f"{', '.join(without)}:"
        return [
            f"{which} not tested for spurious collusion (high prices that nobody holds up: how a cut and a rise are "
            "answered, and what best replies would earn); add 'after: {controls: true}' to the study."
        ]

    def figures(self) -> list[FigureKind]:
        """The figures of this section."""
        about = "prices over rounds with Nash and cartel price, collusion shaded"
        compared = self._compared()
        return [
            *(() if compared is None else compared.figures()),
            FigureKind(name="bertrand-prices", about=about, draw=self.prices),
        ]

    def tables(self) -> list[ReportTable]:
        """Mean prices at some rounds: markets as published beside the published values, then other markets."""
        compared = self._compared()
        groups: dict[bool, list[PlayedCondition[PriceHistory]]] = {}
        for played in self._settled_conditions():
            groups.setdefault(bool(self._published_for(played)), []).append(played)
        tables = [
            self._table(conditions, ", other markets" if len(groups) > 1 and not alike else "")
            for alike, conditions in groups.items()
        ]
        return [*(() if compared is None else compared.tables()), *tables]

    def _table(self, conditions: Sequence[PlayedCondition[PriceHistory]], ending: str) -> ReportTable:
        """The mean prices of some conditions, and the published paths that are comparable."""
        paths = [
            path
            for path in self.scenario.published["trajectories"]
            if any(path in self._published_for(c) for c in conditions)
        ]
        longest = max(count_rounds(played.episodes) for played in conditions)
        rounds = [mark for mark in _MARKS if mark <= longest or any(mark in path["rounds"] for path in paths)]
        rows = []
        for played in with_unflagged(conditions):
            within = price_range(played.condition.settings)
            means = [[_mean_up_to(episode, mark) for episode in played.episodes] for mark in rounds]
            means.append([_mean_up_to(episode, len(episode.prices)) for episode in played.episodes])
            cells = [
                interval_cell(mean_interval(played.per_unit(values), within), 2, of=played.units) for values in means
            ]
            rows.append(played.row(cells))
        for path in paths:
            cells = [*(_published_cell(path, mark) for mark in rounds), NOTHING]
            name = f"GPT-4, {path['title']}"
            rows.append(TableRow(name=name, below="published, one run", cells=cells, published=True))
        marked = self.scenario.published["prices"]
        published = [
            "Published: the price at that round, mean of the firms. "
            + " ".join(f"{path['source']}." for path in paths),
            f"Published Nash and cartel price: {marked['nash']:g} and {marked['cartel']:g} ({marked['source']}).",
        ]
        return ReportTable(
            title=f"Mean price in the {AVERAGED} rounds up to a round{ending}",
            head=["", *(f"round {mark}" for mark in rounds), "the last"],
            rows=rows,
            notes=[
                f"Here: mean over the firms and the {AVERAGED} rounds up to the one named, or all if there were fewer, "
                f"then over the {unit_of(conditions)} that came so far ('k of n' if not all did), with 95 % interval; "
                "a dash where none did. Rounds whose prices were laid down are left out. 'The last' is each episode's "
                "own last round.",
                *(published if paths else ()),
                *self.flag_notes(),
            ],
        )

    def prices(self) -> list[Drawing]:
        """Prices over rounds with the Nash and cartel price, conditions of the same market in one figure."""
        if not self._settled_conditions():
            raise NotDrawn("an episode of every condition of price competition ended before a round was settled")
        # Published paths stand in no panel with conditions that they cannot be compared with.
        markets: dict[tuple[float, float, bool], list[PlayedCondition[PriceHistory]]] = {}
        for played in self._settled_conditions():
            start, has_published = played.episodes[0], bool(self._published_for(played))
            markets.setdefault((start.nash, start.joint, has_published), []).append(played)
        groups = [
            arms[at : at + MOST_OVERLAID] for arms in markets.values() for at in range(0, len(arms), MOST_OVERLAID)
        ]
        return [
            draw_prices(group, self._published_for, self._span(group[0]), first=not index)
            for index, group in enumerate(groups)
        ]

    def episode_panel(self, played: PlayedCondition[PriceHistory], number: int) -> Panel:
        """Each firm's prices in one episode."""
        episode = played.episodes[number]
        rounds, firms = episode.prices.shape
        return Panel(
            title="",
            x_label="round",
            y_label="price",
            curves=[
                Curve(
                    label=f"firm_{i} (here, {played.who})",
                    x=range(1, rounds + 1),
                    y=episode.prices[:, i].tolist(),
                    color=PALETTE[i % len(PALETTE)],
                    thin=firms > 3,
                )
                for i in range(firms)
            ],
            levels=episode.levels,
            shades=collusion([episode]),
            y_range=self._span(played),
        )

    def overview_panel(self, conditions: Sequence[PlayedCondition[PriceHistory]], temperature: float) -> Panel:
        """The mean prices of some conditions."""
        settled = [played for played in conditions if played in self._settled_conditions()]
        curves = [curve for played in settled for curve in mean_curves(*mean_path(played, played.label), played.unit)]
        levels = conditions[0].episodes[0].levels
        return Panel(title="", x_label="round", y_label="price", curves=curves, levels=levels)

    def _compared(self) -> PlayerComparison | None:
        """The comparison of players; `None` unless the study has deviations after episodes."""
        conditions = [played for played in self.conditions if played.condition.after is not None]
        return PlayerComparison(self.scenario, conditions, self.source) if conditions else None

    def _settled_conditions(self) -> list[PlayedCondition[PriceHistory]]:
        """The conditions whose episodes all have a settled round."""
        return [played for played in self.conditions if all(len(episode.prices) for episode in played.episodes)]

    def _span(self, like: PlayedCondition[PriceHistory]) -> tuple[float, float]:
        """The ends of the price axis, the same for all conditions with this market, so that figures can be compared."""
        prices: list[float] = []
        market = like.episodes[0].nash, like.episodes[0].joint
        for played in self.conditions:
            if (played.episodes[0].nash, played.episodes[0].joint) != market:
                continue
            for episode in played.episodes:
                prices += [level.value for level in episode.levels]
                episode_prices = episode.prices[~np.isnan(episode.prices)]
                prices += [episode_prices.min(), episode_prices.max()] if len(episode_prices) else []
            prices += [price for path in self._published_for(played) for series in path["prices"] for price in series]
        low, high = float(min(prices)), float(max(prices))
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin

    def _published_for(self, played: PlayedCondition[PriceHistory]) -> list[Mapping[str, Any]]:
        """The published price paths that are comparable with a condition."""
        published = self.scenario.published
        if not is_shown_beside(played.condition, published["prices"], self.source):
            return []
        return [path for path in published["trajectories"] if comparable(played.condition, path)]


def _after_departure(event: Mapping[str, Any]) -> tuple[int, float, float]:
    """How many firms were left, and their mean Nash and cartel price."""
    nash, joint = ([price for price in event[name] if price is not None] for name in ("nash", "joint"))
    return len(nash), float(np.mean(nash)), float(np.mean(joint))


def _mean_up_to(episode: PriceHistory, mark: int) -> float | None:
    """The mean price of the `AVERAGED` rounds up to a round; `None` if they were not played or are left out."""
    rounds = slice(max(0, mark - AVERAGED), mark)
    window = episode.prices[rounds][episode.chosen[rounds]]
    prices = window[~np.isnan(window)]
    return float(prices.mean()) if 0 < mark <= len(episode.prices) and len(prices) else None


def _published_cell(path: Mapping[str, Any], mark: int) -> Cell:
    if mark not in path["rounds"]:
        return NOTHING
    at = path["rounds"].index(mark)
    return Cell(text=fixed(float(np.mean([series[at] for series in path["prices"]])), 2))
