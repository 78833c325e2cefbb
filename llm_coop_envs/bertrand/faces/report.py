"""The report's section on Bertrand competition, and its figures.

Published values are those of `published.json`: reference prices, the definition of collusion, and price paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.faces.comparison_report import PlayerComparison
from llm_coop_envs.bertrand.metrics import price_range
from llm_coop_envs.bertrand.settings import IN_TURN
from llm_coop_envs.render.charts.curves import Curve, Level, Panel, Shade, draw_panels
from llm_coop_envs.render.charts.style import GREEN, PALETTE, PUBLISHED
from llm_coop_envs.reports.citation import WU_2024
from llm_coop_envs.reports.means import mean_curve, mean_curves
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.played import Floats, PlayedCondition
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    NotDrawn,
    ScenarioSection,
    comparable,
    marked,
    marks_text,
    with_unflagged,
)
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import FEW, Range, mean_interval

#: Rounds over which the table averages.
AVERAGED = 20
#: Prices that were close for fewer rounds in a row are not shaded: firms that take turns meet by chance.
STRETCH = 20
#: Episodes of a condition that are drawn one by one: more cannot be told apart.
MOST_THIN = 100
#: The longest title of a figure of one condition, in characters.
LONGEST = 50
_MARKS = (20, 100, 200, 300, 400, 600, 1200)


@dataclass(frozen=True, kw_only=True, eq=False)
class PriceHistory:
    """An episode of price competition.

    Attributes:
        prices: (rounds, firms); NaN in rounds that are left out, such as those whose prices were laid down, and of
            firms that have left.
        together: (rounds,) whether prices were close to each other between Nash and cartel price.
        nash: the Nash price, mean of the firms.
        joint: the cartel price, mean of the firms.
        later: after each departure, how many firms were left, and these two prices of theirs.
        truncated: whether the last round ended it, and not prices held together.
    """

    prices: Floats
    together: NDArray[np.bool_]
    nash: float
    joint: float
    later: tuple[tuple[int, float, float], ...]
    truncated: bool

    @property
    def means(self) -> Floats:
        """(rounds,) the mean price of the firms."""
        priced_firms = (~np.isnan(self.prices)).sum(axis=1)
        means: Floats = np.full(len(priced_firms), np.nan)
        np.divide(np.nansum(self.prices, axis=1), priced_firms, out=means, where=priced_firms > 0)
        return means

    @property
    def levels(self) -> list[Level]:
        """The reference prices as lines."""
        levels = [Level(value=self.nash, label="Nash"), Level(value=self.joint, label="cartel")]
        for firm_count, nash, joint in self.later:
            names = (f"Nash, {firm_count} left", f"cartel, {firm_count} left") if firm_count > 1 else ("monopoly",)
            levels += [Level(value=value, label=name) for name, value in zip(names, (nash, joint), strict=False)]
        return levels


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
        together = np.zeros(last, dtype=np.bool_)
        for event in rounds:
            if not event["forced"]:
                prices[event["round"] - 1] = event["prices"]
                together[event["round"] - 1] = event["together"]
        return PriceHistory(
            prices=prices,
            together=together,
            nash=float(np.mean(start["nash"])),
            joint=float(np.mean(start["joint"])),
            later=tuple(_after_departure(event) for event in episode.by_type.get("left", ())),
            truncated=bool(end["truncated"]),
        )

    def intro(self) -> list[str]:
        """How the game is played, and what was not tested."""
        rounds = self.scenario.published["collusion"]["rounds"]
        compared = self._compared()
        return [
            *(() if compared is None else compared.intro()),
            f"{self._clock()} The Nash price is what self-interest gives "
            f"in a single round, the cartel price what would be best for all firms together. {WU_2024.short} speak of "
            f"collusion when prices stay close to each other between the two for {rounds} rounds.",
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
        longest = max(_longest(played.episodes) for played in conditions)
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
                f"Here: mean over the firms and the {AVERAGED} rounds up to the one named, then over the episodes that "
                "came so far ('k of n' if not all did), with 95 % interval; a dash where none did. Rounds whose prices "
                "were laid down are left out. 'The "
                "last' is each episode's own last round.",
                *(published if paths else ()),
                *self.flag_notes(),
            ],
        )

    def prices(self) -> list[Drawing]:
        """Prices over rounds with the Nash and cartel price, one figure for each condition."""
        if not self._settled_conditions():
            raise NotDrawn("an episode of every condition of price competition ended before a round was settled")
        return [self._prices(played, first=not index) for index, played in enumerate(self._settled_conditions())]

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
        curves = [curve for played in settled for curve in mean_curves(*_mean_path(played, played.label))]
        levels = conditions[0].episodes[0].levels
        return Panel(title="", x_label="round", y_label="price", curves=curves, levels=levels)

    def _compared(self) -> PlayerComparison | None:
        """The comparison of players; `None` unless the study has deviations after episodes."""
        conditions = [played for played in self.conditions if played.condition.after is not None]
        return PlayerComparison(self.scenario, conditions) if conditions else None

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
        return [path for path in published["trajectories"] if comparable(played.condition, published["prices"], path)]

    def _prices(self, played: PlayedCondition[PriceHistory], *, first: bool) -> Drawing:
        """The figure of one condition; the caption of the first explains all of them."""
        start = played.episodes[0]
        curves = [
            Curve(label="", x=range(1, len(e.prices) + 1), y=e.means.tolist(), color=played.color, thin=True)
            for e in played.episodes[:MOST_THIN]
        ]
        ended = [e for e in played.episodes[:MOST_THIN] if not e.truncated]
        curves += [
            Curve(label="", x=[len(e.prices)], y=[float(e.means[-1])], color=played.color, marked=True) for e in ended
        ]
        firms, n = played.condition.settings["firms"], len(played.episodes)
        has_leavers = any(episode.later for episode in played.episodes)
        whose = f"mean of {firms} firms, later of those left" if has_leavers else f"mean of {firms} firms"
        label = f"here, {played.who}: {whose if firms > 1 else 'one firm'} (n = {n})"
        curves.append(mean_curve(*_mean_path(played, label)))
        paths = self._published_for(played)
        for path in paths:
            series_kind = "each firm" if len(path["prices"]) > 1 else "mean"
            label = f"published: GPT-4, {path['title']}, one run, {series_kind}"
            curves += [
                Curve(label="" if i else label, x=path["rounds"], y=series, color=PUBLISHED, published=True)
                for i, series in enumerate(path["prices"])
            ]
        panel = Panel(
            title=played.cut_title(LONGEST),
            x_label="round",
            y_label="price",
            curves=curves,
            levels=start.levels,
            shades=collusion(played.episodes),
            y_range=self._span(played),
        )
        end = " A dot marks where an episode ended because prices had been held together." if ended else ""
        source = "".join(f" Dashed: {path['source']}." for path in paths)
        title = played.condition.title
        thin = f"the first {MOST_THIN} episodes" if n > MOST_THIN else "episodes"
        how = (
            f". Thin lines are {thin} (mean of the firms), the thick line their mean, as far as all were played"
            f"{', its band the 95 % interval' if n >= FEW else ''}. Dotted: Nash and cartel price. Shaded: prices "
            f"close to each other between the two for {STRETCH} rounds or more in a row; the darker, the more episodes."
        )
        same = f", drawn as in the first figure of prices{f' ({thin})' if n > MOST_THIN else ''}."
        return Drawing(
            name=f"bertrand_prices_{played.condition.name}",
            caption=f"Prices in the condition '{title}'{how if first else same}{end}{marks_text([played])}{source}",
            alt=f"Line chart: price by round in the condition '{title}', with the Nash price "
            f"{fixed(start.nash, 2)} and the cartel price {fixed(start.joint, 2)} as dotted lines"
            f"{' and published prices dashed' if paths else ''}. Prices at chosen rounds are in the table below.",
            figure=draw_panels([[marked(panel, [played])]], size=(5.2, 3.6), legend_rows=2),
            published=bool(paths),
        )


def _after_departure(event: Mapping[str, Any]) -> tuple[int, float, float]:
    """How many firms were left, and their mean Nash and cartel price."""
    nash, joint = ([price for price in event[name] if price is not None] for name in ("nash", "joint"))
    return len(nash), float(np.mean(nash)), float(np.mean(joint))


def collusion(episodes: Sequence[PriceHistory]) -> list[Shade]:
    """Shade the collusion band in each round by the share of episodes whose prices are lastingly together there.

    Only stretches of at least `STRETCH` rounds count, and only rounds that were played.
    """
    is_collusive = np.zeros((len(episodes), _longest(episodes)))
    for row, episode in zip(is_collusive, episodes, strict=True):
        row[: len(episode.together)] = lasting(episode.together)
    edges = sorted((episodes[0].nash, episodes[0].joint))
    shades, at = [], 0
    for value, stretch in groupby(is_collusive.mean(axis=0).tolist()):
        length = len(list(stretch))
        if value > 0:
            shades.append(Shade(x=(at + 0.5, at + length + 0.5), y=(edges[0], edges[1]), share=value, color=GREEN))
        at += length
    return shades


def lasting(together: NDArray[np.bool_]) -> Floats:
    """(rounds,) 1 in stretches of at least `STRETCH` rounds with prices together, else 0."""
    is_lasting: list[float] = []
    for value, stretch in groupby(together.tolist()):
        length = len(list(stretch))
        is_lasting += [float(value and length >= STRETCH)] * length
    return np.array(is_lasting)


def _mean_path(played: PlayedCondition[PriceHistory], label: str) -> tuple[str, Sequence[float], Floats, str, Range]:
    """What `mean_curve` draws of the mean price by round, up to the end of the shortest episode."""
    rounds = min(len(episode.prices) for episode in played.episodes)
    table = played.per_unit_rows(np.stack([episode.means[:rounds] for episode in played.episodes]))
    # Rounds whose prices were laid down come first, and are not drawn: they would stretch the axis.
    begin = int((~np.isnan(table).all(axis=0)).argmax())
    within = price_range(played.condition.settings)
    return label, range(begin + 1, rounds + 1), table[:, begin:], played.color, within


def _longest(episodes: Sequence[PriceHistory]) -> int:
    return max(len(episode.prices) for episode in episodes)


def _mean_up_to(episode: PriceHistory, mark: int) -> float | None:
    """The mean price of the `AVERAGED` rounds up to a round; `None` if they were not played or are left out."""
    window = episode.prices[max(0, mark - AVERAGED) : mark]
    prices = window[~np.isnan(window)]
    return float(prices.mean()) if 0 < mark <= len(episode.prices) and len(prices) else None


def _published_cell(path: Mapping[str, Any], mark: int) -> Cell:
    if mark not in path["rounds"]:
        return NOTHING
    at = path["rounds"].index(mark)
    return Cell(text=fixed(float(np.mean([series[at] for series in path["prices"]])), 2))
