"""What is measured after an episode: where play has ended, and what follows if a firm is forced to another price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.bertrand.deviation import HORIZON, Floats, Response, summarise
from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.faces.after_forcing import PricePath, check_measurable, deviation_choice, market_of
from llm_coop_envs.bertrand.faces.after_panel import CONTROLS, panel
from llm_coop_envs.bertrand.metrics import WINDOW, lasting_from, together
from llm_coop_envs.bertrand.paths import EXACT, NO_CYCLE, PathCycle, discounted, path_cycle, same_cycle
from llm_coop_envs.bertrand.rules import positions, profit_gain
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings, Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.util.checks import check_bool, check_int, check_number

LONGEST_CYCLE = 64
"""From so many rounds of a cycle deviations start at most."""

LAST = 50
"""Rounds at the end that count for an episode that ends in no cycle."""


@dataclass(frozen=True, kw_only=True)
class Deviations(Settings):
    """Where play has ended, and the answers to every firm's static best reply (`deviations`).

    Attributes:
        horizon: rounds of each branch that follows a deviation.
        tolerance: up to which distance prices count as equal, as a share of the distance from Nash to joint profit.
        everywhere: deviate from every round of the cycle that play ends in, not only from one.
        controls: also tell prices that are held up from those that only look like it (`after_panel`). By default where
            nobody waits for answers: for rules and learners it adds about a tenth of a second to an episode, a model
            is paid for each of its branches.
    """

    about: ClassVar[Mapping[str, str]] = {
        "lasting_from": f"Round from which prices stay together to the end, for {WINDOW} rounds or more, from 1; "
        "missing if they do not.",
        "end_price": f"Mean price over the cycle that play ends in, or the last {LAST} rounds without one.",
        "end_place": "Place of end_price between Nash (0) and joint-profit price (1); below and above possible.",
        "end_gain": "As profit_gain, over the rounds of end_price.",
        "end_index": "As end_place, cut to 0 and 1 (EconEvals, arXiv 2503.18825).",
        "deviations": "Deviations that were forced, a count from 0.",
        "deviation_answer": "The rivals' price change in the round after a deviation, as a share of their price.",
        "deviation_unprofitable": "Share of deviations that earn less than none, discounted, 0 to 1.",
        "deviation_paid": "Share of deviations that earn more than none, discounted, 0 to 1.",
        "deviation_returned": "Share of deviations after which play comes back to what it was, 0 to 1.",
        "deviation_length": "Rounds until play is back, mean over deviations after which it comes back.",
        "training_seed": "Seed of the training whose networks played the episode, from 0.",
        # Of players that learn anew before each episode.
        "learned_periods": "Periods of learning before the episode, the window of convergence included, from 1.",
        "learned_lasting_from": "Period of learning from which strategies change no more; missing if they still do.",
        "learned_window_round": f"Period of learning that completes the first {WINDOW} in a row with prices together.",
        # Of learners of one's own, whose strategies may mix: expectations over the mix.
        "learned_gain": "As end_gain, of the expected profits of what was learned, in the long run.",
        "learned_price": "Expected mean price of what was learned, in the long run.",
        "learned_answer": "As deviation_answer, of expected prices.",
        "learned_unprofitable": "Share of firms whose static best reply is expected to earn less than none, 0 to 1.",
        "learned_regret": "What a best reply to the rivals would earn more, discounted, as a share of what is earned.",
        # Of those that learn in turn (Klein 2021).
        "learned_equilibrium": "Whether both firms' last prices are best replies to the other's learned ones.",
        "learned_edgeworth": "Whether what was learned ends in undercutting, with a rise after every two cuts or more.",
        # Where they are asked for.
        **CONTROLS,
    }

    horizon: int = 4 * HORIZON
    tolerance: float = EXACT
    everywhere: bool = True
    controls: bool | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_int(self, "horizon", 2)
        check_number(self, "tolerance", 0.0)
        check_bool(self, "everywhere")
        if self.controls is not None:
            check_bool(self, "controls")

    def longer(self, settings: ScenarioSettings) -> Mapping[str, Any]:
        """More rounds: for a branch, and for the cycle along which the main line goes on.

        Raises:
            SettingsError: prices held together would end the episode, there are no rivals, or the tolerance is finer
                than the price grid.
        """
        assert isinstance(settings, BertrandSettings)
        check_measurable(settings)
        if settings.prices == "grid" and EXACT < self.tolerance < settings.grid_step:
            why = f"is less than a step of the price grid ({settings.grid_step:.4g}) and changes nothing; leave it out"
            raise SettingsError("tolerance", self.tolerance, why)
        return {"rounds": settings.rounds + 2 * self.horizon}

    async def measure(self, game: Branching) -> Row:
        """Measure the end of play and the answers to deviations.

        Returns:
            - `lasting_from`: the round from which prices stay together to the end, for 200 rounds or more, or `None`.
            - Over the cycle that play ends in, or the last 50 rounds if there is none: `end_price`, `end_place` (of
              the mean price: 0 at Nash, 1 at joint profit), `end_gain` (Delta), `end_index` (the place, cut to 0 and
              1), `end_cycle` (a class of `paths.CYCLE_CLASSES`, or `"none"`).
            - `deviations` (how many), `deviation_answer` (the rivals' price change in the next round, as a share),
              shares `deviation_unprofitable`, `deviation_paid`, `deviation_returned`, and `deviation_length` (mean
              rounds until play is back, of those after which it came back, or `None`).
            - `deviator_path`, `rival_path`: places of the mean prices, from the round before the deviation on.
            - With `controls`, or without anybody who waits, those of `after_panel.CONTROLS`.
        """
        env = market_of(game)
        played = PricePath.of(env.events)
        wanted = not game.waits if self.controls is None else self.controls
        controls = await panel(game, min(self.horizon, HORIZON)) if wanted else {}
        found = await deviations(
            game,
            horizon=self.horizon,
            kept=min(self.horizon, HORIZON),
            tolerance=self.tolerance,
            everywhere=self.everywhere,
        )
        lasting = lasting_from(together(played.prices, env.marks, env.settings.among(env.firms).band))
        if lasting is not None and len(played.prices) - lasting + 1 < WINDOW:
            lasting = None  # too short to say that they stay
        if lasting is not None:
            lasting += played.earlier
        return {"lasting_from": lasting, **_end(env, played, self.tolerance), **_answers(env, found), **controls}


def _end(env: BertrandEnv, played: PricePath, tolerance: float) -> Row:
    """Where play ends: over its cycle, or over the last rounds if there is none."""
    cycle = path_cycle(played.prices, played.profits, env.marks, tolerance=tolerance)
    prices, profits = (
        (played.prices[-LAST:], played.profits[-LAST:]) if cycle is None else (cycle.prices, cycle.profits)
    )
    place = float(positions(prices.mean(axis=0), env.marks).mean())
    return {
        "end_price": float(prices.mean()),
        "end_place": place,
        "end_gain": float(profit_gain(profits.mean(axis=0), env.marks)),
        "end_index": min(max(place, 0.0), 1.0),
        "end_cycle": NO_CYCLE if cycle is None else cycle.kind,
    }


def _answers(env: BertrandEnv, found: list[Response]) -> Row:
    total = summarise([found])
    back = [response for response in found if response.returned]
    nash, joint = float(np.mean(env.marks.nash)), float(np.mean(env.marks.joint))

    def places(path: Floats) -> list[float]:
        return [(price - nash) / (joint - nash) for price in (total.before, *path.tolist())]

    return {
        "deviations": total.responses,
        "deviation_answer": total.change,
        "deviation_unprofitable": total.unprofitable,
        "deviation_paid": total.paid,
        "deviation_returned": total.returned,
        "deviation_length": summarise([back]).length if back else None,
        "deviator_path": places(total.deviator),
        "rival_path": places(total.rival),
    }


async def deviations(
    game: Branching,
    to: str | float = "best_reply",
    *,
    firms: Sequence[int] | None = None,
    periods: int = 1,
    horizon: int = 4 * HORIZON,
    kept: int = HORIZON,
    delta: float = 0.95,
    tolerance: float = EXACT,
    everywhere: bool = True,
) -> list[Response]:
    """Force each firm to another price and watch, from every round of the cycle play is in.

    If play is in no cycle, from this round only. The main line is played on by one round less than the cycle has.

    Args:
        game: where play stands.
        to: `"best_reply"` (static, to what the rivals are about to ask; Calvano et al. 2020), `"nash"`, `"joint"`,
            `"lowest"`, `"highest"`, or a price; on a grid the nearest point is taken. Cuts and rises are both of
            interest (Epivent and Lambin 2024).
        firms: who deviates, one after the other, by the place among the firms in the market; `None`: everyone.
        periods: for how many rounds.
        horizon: how many rounds of each branch are played. It must hold the way back and the cycle twice for
            everything to be known; players that cost money may take less.
        kept: how many of them are kept.
        delta: discount factor per round.
        tolerance: up to which distance prices count as equal, as a share of the distance from Nash to joint profit.
        everywhere: deviate from every round of the cycle, not only from this one.

    Returns:
        The responses, firm by firm within each round. Where both branches end in cycles, values are of endless play,
        and `returned` says that the cycles are the same. Otherwise values count the horizon only, and play has
        returned when it stays, to the end, within `tolerance` of what it would have been in the same rounds.

    Raises:
        SettingsError: an impossible number.
        RunError: the episode ended before everything was played.
    """
    if periods < 1 or not periods < horizon or kept < 2:
        raise SettingsError("periods", periods, f"must be 1 or more, and below the horizon {horizon}, which keeps 2")
    if not 0.0 <= delta < 1.0:
        raise SettingsError("delta", delta, "must be at least 0 and below 1")
    env = market_of(game)
    found: list[Response] = []
    place, places = 0, 1
    while place < places:
        usual = PricePath.of(await game.branch(horizon, f"usual-{place}"))
        cycle = path_cycle(usual.prices, usual.profits, env.marks, tolerance=tolerance)
        if place == 0 and everywhere and cycle is not None:
            places = min(cycle.length, LONGEST_CYCLE)
        for firm in range(env.market.firms) if firms is None else firms:
            choice, seat = deviation_choice(env, usual.prices[0], firm, to), env.firms[firm]
            after = PricePath.of(await game.branch(horizon, f"deviation-{place}-{seat}", {seat: choice}, periods))
            found.append(_response(env, firm, usual, cycle, after, periods, kept, delta, tolerance))
        place += 1
        if place < places:
            await game.play(1)
    return found


def _response(
    env: BertrandEnv,
    firm: int,
    usual: PricePath,
    cycle: PathCycle | None,
    after: PricePath,
    periods: int,
    kept: int,
    delta: float,
    tolerance: float,
) -> Response:
    end = path_cycle(after.prices, after.profits, env.marks, tolerance=tolerance)
    length: int | None
    if cycle is not None and end is not None:
        returned = same_cycle(cycle, end, env.marks, tolerance)
        length = max(end.begins + 1, periods)
    else:
        cycle = end = None
        away = np.abs(positions(after.prices, env.marks) - positions(usual.prices, env.marks)).max(axis=1) > tolerance
        left = int(np.flatnonzero(away)[-1]) + 2 if away.any() else 1
        returned = left <= len(away)
        length = max(left, periods) if returned else None
    return Response(
        firm=firm,
        before=usual.prices[0],
        prices=after.prices[:kept],
        profits=after.profits[:kept],
        length=length,
        returned=returned,
        value=float(discounted(after.profits, delta, end)[firm]),
        value_before=float(discounted(usual.profits, delta, cycle)[firm]),
    )
