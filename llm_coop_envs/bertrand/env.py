"""Price competition as a PettingZoo environment."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.bertrand.history import History, others
from llm_coop_envs.bertrand.rivalries import AnyRow, movers, of_those, plain, rivalries, spread, value_ranges
from llm_coop_envs.bertrand.rules import Band, Rivalry, RoundOutcome, nearest, outcome, places
from llm_coop_envs.bertrand.settings import IN_TURN, BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots, Bin
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import everyone
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import OWN
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.hooks import Event, Over, Stage
from llm_coop_envs.interface.question import Number

ACT = "act"
ROUND_LIMIT = "round limit reached"
HELD_TOGETHER = "prices held together"
MARKS = ("nash", "joint", "nash_profit", "joint_profit")
BY_FIRM = ("prices", "demand", "profits", "places", "gains")

# Settled grid rounds are kept, because a grid's few price combinations come back all the time; this bounds the memory.
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class _Settled:
    """One combination of prices, settled: what it brought, and the arrays that follow from it."""

    outcome: RoundOutcome
    rewards: NDArray[np.float64]
    features: NDArray[np.float32]


class BertrandEnv(ScenarioEnv):
    """Firms that sell similar goods name their prices at the same time, round after round.

    **Round.** With talk, `exchanges` exchanges in which every firm speaks once, heard by all (the opener is drawn anew
    each round, or fixed); what was said is forgotten when the next round opens. Then all firms choose a price in one
    step (with `moves="alternating"` one firm does, and all others' prices stand), demand and profits follow, and the
    next round opens.

    **Choice.** `Discrete(grid_points)`: the index of a price on the firm's own grid; or a `Box` of shape (1,), float64:
    the price. A choice that cannot be used is replaced and flagged `illegal_choice` (`missing_action` if nothing was
    given): no number, or one that is not finite, by the firm's own cost, moved into the range (as in the authors' code
    of Wu et al. 2024, which falls back to the cost); a price below the lowest by the lowest; one above the highest by
    the highest. On a grid, anything but an index is replaced by the index of the price nearest to the cost.

    **Reward.** After each choice step the round's profit (or normalised profit); 0 in talk steps.

    **Features** (float32), on scales where 0 is the Nash and 1 the joint-profit value: `prices_known` (1; 0 if the
    firm is told its own alone; -1 if it knows of none), `own_price`, one `rival_price_k` per rival in index order, as
    the firm sees it but no further off than prices can be, and `own_profit`, all of the last settled round; before the
    first round those of the initial prices, if there are any. What is not known is 0. The round number is left out, as
    it is in the texts: firms do not know when play ends. Where firms may leave (`present` in `changes`),
    `rival_present_k` (1 or 0) follows for each rival; of who has left the price is 0.

    **State.** Share of rounds played, share of the collusion window filled, whether prices are known, then every firm's
    last price and profit on the same scales.

    **End.** After `rounds` rounds (truncation), or when all prices have been close to each other above Nash, up to
    the joint-profit price, for `collusion_window` rounds in a row (termination).

    Arguments: those of `core.env.ScenarioEnv`, with the fields and presets of `BertrandSettings`.

    Attributes:
        firms: those in the market, by index.
        market: their market, its values in their order.
        marks: its benchmarks, likewise.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "bertrand_v0"}
    settings_type = BertrandSettings
    slots_type = BertrandSlots
    role = "firm"
    home = Path(__file__).parent
    kept = ("_streak", "_pricing", "_prior", "_forced")
    settings: BertrandSettings

    def _setup(self) -> None:
        settings = self.settings
        self._in_turn = settings.moves == IN_TURN
        self.n_players = settings.firms
        self._rivalries = rivalries(settings, self._without, self._player_names)
        self._full = self._rivalries[tuple(range(settings.firms))]
        self._costs = self._full.market.cost
        self._open_market(self._full)
        if self.marks.losers:
            firm = self.marks.losers[0]
            warnings.warn(
                f"firm_{firm} earns {self.marks.joint_profit[firm]:.4g} at the joint-profit prices and "
                f"{self.marks.nash_profit[firm]:.4g} at the Nash prices: it loses by what is best for all firms "
                "together, and a positive profit gain need not be one for each of them; bring costs and qualities "
                "closer if that is not wanted",
                stacklevel=2,
            )
        self._grids = settings.grids if settings.prices == "grid" else ()
        self._floors, self._caps = settings.floors, (settings.cap,) * settings.firms
        if self._grids:
            self._floors = tuple(grid[0] for grid in self._grids)
            self._caps = tuple(grid[-1] for grid in self._grids)
        self._prices_asked = settings.asked
        self._offers = tuple(one.listed for one in self._prices_asked)
        self._ordered("")
        self._known: dict[tuple[int, ...], _Settled] = {}
        rivals = tuple(f"rival_price_{k}" for k in range(1, settings.firms))
        self.feature_names = ("prices_known", "own_price", *rivals, "own_profit")
        if self._without is not None:
            self.feature_names += tuple(f"rival_present_{k}" for k in range(1, settings.firms))
            self._movers = movers(self._without, settings.rounds if self._in_turn else 0)
        self._set_bounds()

    def _open_market(self, rivalry: Rivalry) -> None:
        """Let these firms sell from now on."""
        self.firms, self._band = rivalry.firms, rivalry.band
        self.market, self.marks = rivalry.market, rivalry.marks

    def _set_bounds(self) -> None:
        """Price and profit scales at the extreme prices."""
        n = self.n_players
        low, high, gain = value_ranges(self._rivalries, self._floors, self._caps)
        ones, there = np.ones(1), np.ones(len(self.feature_names) - n - 2)
        self._feature_bounds = (
            np.concatenate([-ones, np.full(n, low.min()), -gain.max(keepdims=True), 0 * there]),
            np.concatenate([ones, np.full(n, high.max()), gain.max(keepdims=True), there]),
        )
        self._state_bounds = (
            np.concatenate([np.zeros(2), -ones, low, -gain]),
            np.concatenate([np.ones(3), high, gain]),
        )

    def _ordered(self, order: str) -> None:
        """A price cap, or none: firms are asked for prices up to it; of a grid without any, the lowest is left."""
        highest = self.settings.price_ordered(order)
        self._capped = highest is not None
        self._caps_now, self._offers_now, self._asked_now = self._caps, self._offers, self._prices_asked
        if highest is None:
            return
        self._caps_now = tuple(max(min(cap, highest), low) for cap, low in zip(self._caps, self._floors, strict=True))
        self._offers_now = tuple(
            tuple(offer for offer in offers if offer[1] <= cap)
            for offers, cap in zip(self._offers, self._caps_now, strict=True)
        )
        self._asked_now = tuple(
            replace(asked, high=cap, listed=offers)
            for asked, cap, offers in zip(self._prices_asked, self._caps_now, self._offers_now, strict=True)
        )

    def _instead(self, index: int, choice: Any) -> Any:
        """In place of a price that was stopped the firm asks its Nash price, or the cap if that is lower."""
        nash = self.marks.nash[self.firms.index(index)]
        price = max(min(nash, self._caps_now[index]), self._floors[index])
        return nearest([offer for _, offer in self._offers_now[index]], price) if self._grids else price

    def _welfare(self) -> float:
        """The customers' surplus of the round just settled."""
        assert self._latest is not None, "a round has been settled"
        result = self._latest.outcome
        sold = [[values[i] for i in self.firms] for values in (result.prices, result.demand)]
        return self.market.consumer_surplus(*sold)

    def _legal(self) -> NDArray[np.int8] | None:
        if not self._capped or not self._grids:
            return None
        legal = np.zeros((self.n_players, self.settings.grid_points), dtype=np.int8)
        for i, offers in enumerate(self._offers_now):
            legal[i, : len(offers)] = 1
        return legal

    def _choice_space(self) -> spaces.Discrete | spaces.Box:
        if self._grids:
            return spaces.Discrete(self.settings.grid_points)
        return spaces.Box(min(self._floors), self._caps[0], (1,), np.float64)

    def _longest_text(self) -> tuple[int, int]:
        settings = self.settings
        rows = max(settings.reach("history_window")) + max(settings.reach("bins"))
        return max(settings.reach("exchanges")) * settings.firms, rows * (5 + settings.firms)

    # One episode.

    @property
    def _act_stage(self) -> Stage:
        """The choice of prices: by all, or in turn."""
        if self._in_turn:
            at = self.round - 1
            return Stage(ACT, [[at % self.n_players if self._without is None else self._movers[at]]])
        return Stage(ACT, [self._everyone if self._complete else np.array(self.firms, dtype=np.intp)])

    @property
    def _complete(self) -> bool:
        return len(self.firms) == self.n_players

    def _begin(self, options: Mapping[str, Any]) -> None:
        settings = self.settings
        self._open_market(self._full)
        self._history = self._no_history()
        self._streak = 0
        self._pricing = False
        start = self._starting_prices()
        self._forced = start if settings.force_first_price else None
        self._prior = None if settings.force_first_price else start
        self._latest = None if self._prior is None else self._settle(self._prior)

    def _no_history(self) -> History:
        """An empty history that holds as much as is ever shown."""
        settings = self.settings
        return History(max(settings.reach("history_window")), settings.bin_size, max(settings.reach("bins")))

    def _starting_prices(self) -> tuple[float, ...] | None:
        if self.settings.initial_prices != "random":
            return self.settings.start
        if self._grids:
            drawn = self.np_random.integers(self.settings.grid_points, size=self.n_players).tolist()
            return tuple(grid[k] for grid, k in zip(self._grids, drawn, strict=True))
        return tuple(self.np_random.uniform(self._floors, self._caps).tolist())

    def _next_stage(self) -> Stage | Over:
        settings = self.settings
        if self._pricing:
            return self._act_stage
        if settings.collusion_window and self._streak >= settings.collusion_window:
            return Over(HELD_TOGETHER)
        if self.round >= settings.rounds:
            return Over(ROUND_LIMIT, truncated=True)
        self.round += 1
        self._pricing = True
        self.conversation.forget()
        self._let_go()
        if not self._talks:
            return self._act_stage
        order: Sequence[int] = range(self.n_players)
        if settings.opener == "shuffled":
            order = self.np_random.permutation(self.n_players).tolist()
        if not self._complete:
            order = [i for i in order if self._alive[i]]
        return self._talk_stage([order] * self.settings_of().exchanges, everyone())

    @property
    def _talks(self) -> bool:
        """Whether there is talk in this round; a last firm has nobody to talk to."""
        return self.settings.talks_in(self.round) and (self._complete or len(self.firms) > 1)

    def _let_go(self) -> None:
        """Close the market to firms that are no longer present."""
        gone = self.depart()
        if len(gone):
            self._open_market(self._rivalries[tuple(self.present_in(self.round).tolist())])
            if self.record:
                self.emit("left", **self._departure(gone.tolist()))

    def _departure(self, gone: Sequence[int]) -> Event:
        """Who has left, and what holds for the others."""
        values = {name: spread(getattr(self.marks, name), self.firms, self.n_players) for name in MARKS}
        told = {name: plain(numbers) for name, numbers in values.items()}
        return {"agents": [self.possible_agents[i] for i in gone], **told, "band": _band_told(self._band)}

    def _apply(self, phase: str, who: Indices, choices: NDArray[Any]) -> None:
        key, forced = tuple(choices.tolist()), self._forced is not None
        if self._forced is not None:
            settled = self._settle(self._forced)
            self._forced = None
        elif self._in_turn:
            assert self._latest is not None, "prices stand from the beginning"
            prices = list(self._latest.outcome.prices)
            for i, choice in zip(who.tolist(), key, strict=True):
                prices[i] = self._grids[i][choice] if self._grids else choice
            settled = self._settle(tuple(prices) if self._complete else tuple(prices[i] for i in self.firms))
        else:
            settled = self._settle_grid(key) if self._grids else self._settle(key)
        result = settled.outcome
        self._latest = settled
        self._history.add(result)
        self._streak = self._streak + 1 if result.together else 0
        self._pricing = False
        self._rewards += settled.rewards
        if self.record:
            self.emit("round", **_round_data(result), forced=forced)

    def _settle_grid(self, key: tuple[int, ...]) -> _Settled:
        """Settle a round of grid indices, from memory if this combination was played before.

        Firms leave in one order only: as many indices are always those of the same firms.
        """
        settled = self._known.get(key)
        if settled is None:
            settled = self._settle(tuple(self._grids[i][k] for i, k in zip(self.firms, key, strict=True)))
            if len(self._known) < _REMEMBERED:
                self._known[key] = settled
        return settled

    def _settle(self, prices: tuple[float, ...]) -> _Settled:
        """Settle a round in which the firms in the market ask these prices."""
        result = outcome(self.market, self.marks, self._band, prices)
        if not self._complete:
            numbers = {name: spread(getattr(result, name), self.firms, self.n_players) for name in BY_FIRM}
            result = RoundOutcome(**numbers, together=result.together)
        places, gains = result.places, result.gains
        rows = [(1.0, places[i], *others(places, i), gains[i]) for i in range(self.n_players)]
        rewards = np.array(gains if self.settings.reward == "normalised" else result.profits)
        features = np.array(rows, dtype=np.float32)
        if not self._complete:
            rewards, features = np.nan_to_num(rewards), np.nan_to_num(features)
        return _Settled(result, rewards, features)

    def _settle_again(self, prices: Sequence[float | None]) -> _Settled:
        """Settle a remembered round anew, in the market of the firms that asked a price in it."""
        now = self._rivalries[self.firms]
        self._open_market(self._rivalries[tuple(i for i, price in enumerate(prices) if price is not None)])
        settled = self._settle(tuple(price for price in prices if price is not None))
        self._open_market(now)
        return settled

    # Choices.

    def _fallback(self, who: Indices) -> NDArray[Any]:
        offered = [[price for _, price in self._offers_now[i]] for i in who.tolist()]
        costs = [self._costs[i] for i in who.tolist()]
        return np.array([nearest(prices, cost) for prices, cost in zip(offered, costs, strict=True)], dtype=np.int64)

    def _clean(self, who: Indices, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        usable, replaced = values.tolist(), [False] * len(who)
        for k, i in enumerate(who.tolist()):
            value, floor, cap = usable[k], self._floors[i], self._caps_now[i]
            if not floor <= value <= cap:
                wanted = value if abs(value) < np.inf else self._costs[i]
                usable[k], replaced[k] = min(max(wanted, floor), cap), True
        return np.array(usable), np.array(replaced)

    # Views.

    def _question(self, index: int) -> Number:
        return self._asked_now[index]

    def _features(self) -> NDArray[np.float32]:
        n = self.n_players
        if self._latest is None:
            rows = np.zeros((n, n + 2), dtype=np.float32)
            rows[:, 0] = -1.0
            return rows if self._without is None else self._with_presence(rows)
        rows, rivals = np.array(self._latest.features), slice(2, n + 1)
        if self._noisy and self._history.played:
            rows[:, rivals] = self._places_seen(self._latest.outcome)
            rows[:, rivals] = np.clip(rows[:, rivals], *(bound[rivals] for bound in self._feature_bounds))
        if self._hides:
            rows[self.blind, 0] = rows[self.blind, rivals] = 0.0
        if self._forgets:
            rows[self.forgetful] = [-1.0, *[0.0] * (n + 1)]
        return rows if self._without is None else self._with_presence(rows)

    def _places_seen(self, last: RoundOutcome) -> NDArray[np.float64]:
        """The rivals' last prices as each firm sees them, on the scale of features; (firms, rivals)."""
        firms = [i for i, price in enumerate(last.prices) if not math.isnan(price)]
        marks = self._rivalries[tuple(firms)].marks
        found = np.zeros((self.n_players, self.n_players - 1))
        for i in firms:
            seen = self._seen(i, others(last.prices, i), self._history.played)
            asked, where = [*seen[:i], last.prices[i], *seen[i:]], np.zeros(self.n_players)
            where[firms] = places([asked[k] for k in firms], marks)
            found[i] = np.delete(where, i)
        return found

    def _with_presence(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The features with who is in the market, and without the prices of who has left it."""
        here = self._alive.astype(np.float32)
        there = np.array([np.delete(here, i) for i in range(self.n_players)])
        rows[:, 2:-1] *= there
        rows[~self._alive] = [-1.0, *[0.0] * (self.n_players + 1)]
        return np.hstack([rows, there])

    def _state_vector(self) -> NDArray[np.float64]:
        settings, latest = self.settings, self._latest
        window = settings.collusion_window
        filled = self._streak / window if window else 0.0
        head = [self._history.played / settings.rounds, filled]
        if latest is None:
            return np.array([*head, -1.0] + [0.0] * (2 * self.n_players))
        return np.nan_to_num([*head, 1.0, *latest.outcome.places, *latest.outcome.gains])

    def _slots(self, index: int, common: dict[str, Any]) -> BertrandSlots:
        settings, number = self.settings_of(index), self.round
        period = settings.planning_period
        planning = number > period and (number - 1) % period == 0
        binned = planning or settings.statistics == "every_round"
        prior = self._prior if self._history.played == 0 and settings.memory != 0 else None
        talking = self.phase == TALK and not self.over
        names = self.possible_agents
        rivals = tuple(names[:index] + names[index + 1 : self.n_players])
        if not self._complete:
            rivals = tuple(names[i] for i in self.firms if i != index)
            common = {**common, "may_talk": common["may_talk"] and len(self.firms) > 1}
        told = settings.information != OWN
        return BertrandSlots(
            round=number,
            rivals=rivals,
            seen=rivals if told else (),
            cost=self._costs[index],
            whole_profits=settings.truncate_profit,
            floor=self._floors[index],
            cap=self._caps_now[index],
            choices=self._offers_now[index],
            prior=() if prior is None else (prior[index], *(others(prior, index) if told else ())),
            fixed_price=None if self._forced is None else self._forced[index],
            history=self._as_seen(index, self._history.rows(index, settings.history_window), settings),
            bins=self._as_seen(index, self._history.blocks(index, settings.bins), settings) if binned else (),
            bin_size=settings.bin_size,
            said=self._heard(index, own=True),
            exchange=settings.exchanges - len(self._orders) if talking else 0,
            exchanges=settings.exchanges if self._talks else 0,
            may_replan=planning,
            in_turn=self._in_turn,
            **common,
        )

    def _as_seen(self, index: int, rows: tuple[AnyRow, ...], now: BertrandSettings) -> tuple[AnyRow, ...]:
        """Past rounds or blocks of them as a firm knows them: the remembered ones, with what it is told."""
        if now.memory is not None:
            first = self._history.played - now.memory + 1
            rows = tuple(row for row in rows if (row.first if isinstance(row, Bin) else row.round) >= first)
        if now.information == OWN:
            return tuple(row._replace(rival_prices=()) for row in rows)
        there = None if self._complete else np.delete(self._alive, index).tolist()
        if self._noisy:
            rows = tuple(
                row._replace(
                    rival_prices=self._seen(index, row.rival_prices, row.last, block=True)
                    if isinstance(row, Bin)
                    else self._seen(index, row.rival_prices, row.round)
                )
                for row in rows
            )
        return rows if there is None else tuple(of_those(row, there) for row in rows)

    def _seen(self, index: int, prices: tuple[float, ...], last: int, *, block: bool = False) -> tuple[float, ...]:
        """The rivals' prices of a round, or their means over a block that ends with it, as a firm sees them."""
        error = self.error(index, last, 2 * last + block, len(prices))
        if error is None:
            return prices
        # The mean over a block is off by as much as that of independent errors.
        off = error / np.sqrt(self.settings.bin_size if block else 1)
        return tuple(np.maximum(0.0, np.array(prices) * (1.0 + off)).tolist())

    def _picture(self) -> str:
        if self._latest is None:
            return "no prices yet"
        result = self._latest.outcome
        if self._history.played == 0:
            known = zip(self.possible_agents, result.prices, strict=False)
            return "prices before round 1: " + ", ".join(f"{name} {price:.4g}" for name, price in known)
        rows = [f"{'':8}{'price':>10}{'sold':>10}{'profit':>12}"]
        for name, *values in zip(self.possible_agents, result.prices, result.demand, result.profits, strict=False):
            missing = math.isnan(values[0])
            rows.append(f"{name:8}{'gone':>10}" if missing else "{:8}{:10.4g}{:10.4g}{:12.6g}".format(name, *values))
        return "\n".join(rows)

    # Records and snapshots.

    def _start_event(self) -> Event:
        return {
            **{name: list(getattr(self._full.marks, name)) for name in MARKS},
            "cost": list(self._costs),
            "band": _band_told(self._full.band),
            "initial_prices": None if self._prior is None else list(self._prior),
        }

    def recap(self) -> list[Event]:
        """The rounds that the history remembers."""
        kept = self._history.outcomes
        first = self._history.played - len(kept) + 1
        told: list[Event] = [
            {"type": "round", "step": self.cycles, "round": number, **_round_data(result)}
            for number, result in enumerate(kept, first)
        ]
        if not self._complete:
            gone = self._departure(np.flatnonzero(~self._alive).tolist())
            told.append({"type": "left", "step": self.cycles, "round": self.round, **gone})
        return told

    def _snapshot(self) -> dict[str, Any]:
        prices = [plain(row) for row in self._history.prices()]
        return {**super()._snapshot(), "played": self._history.played, "prices": prices}

    def _restore(self, data: Mapping[str, Any]) -> None:
        super()._restore(data)
        prices = [tuple(p) for p in data["prices"]]
        self._open_market(self._rivalries[tuple(self.present_in(self.round).tolist())])
        self._history = self._no_history()
        self._history.restore(data["played"], prices, lambda p: self._settle_again(p).outcome)
        last = prices[-1] if prices else self._prior
        self._latest = None if last is None else self._settle_again(last)


def _round_data(result: RoundOutcome) -> dict[str, Any]:
    numbers = {name: plain(getattr(result, name)) for name in ("prices", "demand", "profits")}
    return {**numbers, "together": result.together}


def _band_told(band: Band) -> list[float]:
    return [band.low, band.high, band.tolerance]
