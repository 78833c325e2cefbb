"""Measures taken after an episode: the cycle in which play ends, and the responses to forced deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.bertrand.deviation import HORIZON, Floats, Response, summarise
from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.faces.after_forcing import PricePath, check_measurable, deviation_choice, market_of
from llm_coop_envs.bertrand.faces.after_panel import CONTROL_RANGES, CONTROLS, panel
from llm_coop_envs.bertrand.metrics import price_range
from llm_coop_envs.bertrand.paths import EXACT, NO_CYCLE, PathCycle, discounted, path_cycle, same_cycle
from llm_coop_envs.bertrand.price_measures import WINDOW, lasting_from, together
from llm_coop_envs.bertrand.rules import positions, profit_gain
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.scenario import Row, SettingsRange
from llm_coop_envs.core.settings import ScenarioSettings, Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.statistics.intervals import ANYTHING, COUNT, COUNT_FROM_1, FROM_0, SHARE, YES_OR_NO, Range
from llm_coop_envs.util.checks import check_bool, check_int, check_number

LONGEST_CYCLE = 64
"""Deviations start from so many rounds of a cycle at most."""

LAST = 50
"""Rounds at the end that are measured where an episode ends in no cycle."""


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
        "learned_lasting_from": "Period of learning from which strategies change no more, if prices are together in "
        "their limit cycle; missing if they are not, or strategies change to the end.",
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
    ranges: ClassVar[Mapping[str, Range | SettingsRange]] = {
        **dict.fromkeys(("end_place", "end_gain", "deviation_answer"), ANYTHING),
        **dict.fromkeys(("learned_gain", "learned_answer", "learned_regret"), ANYTHING),
        **dict.fromkeys(("end_price", "learned_price"), price_range),
        **dict.fromkeys(("end_index", "deviation_unprofitable", "deviation_paid", "deviation_returned"), SHARE),
        "learned_unprofitable": SHARE,
        **dict.fromkeys(("deviations", "training_seed"), COUNT),
        "deviation_length": FROM_0,
        **dict.fromkeys(("lasting_from", "learned_periods"), COUNT_FROM_1),
        **dict.fromkeys(("learned_lasting_from", "learned_window_round"), COUNT),
        **dict.fromkeys(("learned_equilibrium", "learned_edgeworth"), YES_OR_NO),
        **CONTROL_RANGES,
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
        """The settings with enough rounds to play on: for a branch, and for the cycle along which play continues.

        Raises:
            SettingsError: prices held together would end the episode, there are no rivals, or the tolerance is finer
                than the price grid.
        """
        assert isinstance(settings, BertrandSettings)
        check_measurable(settings)
        if settings.prices == "grid" and EXACT < self.tolerance < settings.grid_step:
            step = f"{settings.grid_step:.4g}"
            reason = f"is less than a step of the price grid ({step}) and changes nothing; leave it out"
            raise SettingsError("tolerance", self.tolerance, reason)
        return {"rounds": settings.rounds + 2 * self.horizon}

    async def measure(self, game: Branching) -> Row:
        """Measure the end of play and the responses to deviations.

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
        played = PricePath.from_events(env.events)
        adds_controls = not game.waits if self.controls is None else self.controls
        controls = await panel(game, min(self.horizon, HORIZON)) if adds_controls else {}
        responses = await deviations(
            game,
            horizon=self.horizon,
            kept=min(self.horizon, HORIZON),
            tolerance=self.tolerance,
            everywhere=self.everywhere,
        )
        lasting = lasting_from(together(played.prices, env.equilibria, env.settings.rivalry_among(env.firms).band))
        if lasting is not None and len(played.prices) - lasting + 1 < WINDOW:
            lasting = None  # too few rounds to count as lasting
        if lasting is not None:
            lasting += played.earlier
        return {"lasting_from": lasting, **_end(env, played, self.tolerance), **_answers(env, responses), **controls}


def _end(env: BertrandEnv, played: PricePath, tolerance: float) -> Row:
    """Price, position and gain of the cycle in which play ends, or of the last rounds if there is none."""
    cycle = path_cycle(played.prices, played.profits, env.equilibria, tolerance=tolerance)
    prices, profits = (
        (played.prices[-LAST:], played.profits[-LAST:]) if cycle is None else (cycle.prices, cycle.profits)
    )
    position = float(positions(prices.mean(axis=0), env.equilibria).mean())
    return {
        "end_price": float(prices.mean()),
        "end_place": position,
        "end_gain": float(profit_gain(profits.mean(axis=0), env.equilibria)),
        "end_index": min(max(position, 0.0), 1.0),
        "end_cycle": NO_CYCLE if cycle is None else cycle.kind,
    }


def _answers(env: BertrandEnv, responses: list[Response]) -> Row:
    """The responses to deviations as columns of a row."""
    total = summarise([responses])
    back = [response for response in responses if response.returned]
    nash, joint = float(np.mean(env.equilibria.nash)), float(np.mean(env.equilibria.joint))

    def mean_positions(path: Floats) -> list[float]:
        return [(price - nash) / (joint - nash) for price in (total.before, *path.tolist())]

    return {
        "deviations": total.responses,
        "deviation_answer": total.change,
        "deviation_unprofitable": total.unprofitable,
        "deviation_paid": total.paid,
        "deviation_returned": total.returned,
        "deviation_length": summarise([back]).length if back else None,
        "deviator_path": mean_positions(total.deviator),
        "rival_path": mean_positions(total.rival),
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
    """Force each firm to another price, and measure the responses.

    Deviations start from every round of the cycle in which play is (the episode is played on through it), or from the
    current round if it is in none.

    Args:
        game: where play stands.
        to: `"best_reply"` (static, to what the rivals are about to ask; Calvano et al. 2020), `"nash"`, `"joint"`,
            `"lowest"`, `"highest"`, or a price, for a cut or a rise; on a grid the nearest point is taken.
        firms: the firms that deviate, one by one, by their index in `env.firms`; `None`: every firm.
        periods: how many rounds the firm is forced.
        horizon: how many rounds of each branch are played; enough for the way back and the cycle twice, or fewer.
        kept: how many rounds of each response are reported.
        delta: discount factor per round.
        tolerance: up to which distance prices count as equal, as a share of the distance from Nash to joint profit.
        everywhere: deviate from every round of the cycle, not only from the current one.

    Returns:
        The responses, firm by firm within each round. Where both branches end in cycles, values are of endless play,
        and `returned` says that the cycles are the same. Otherwise values count the horizon only, and play has
        returned when it stays, to the end, within `tolerance` of what it would have been in the same rounds.

    Raises:
        SettingsError: an impossible number.
        RunError: the episode ended before everything was played.
    """
    if not 1 <= periods < horizon or kept < 2:
        raise SettingsError("periods", periods, f"must be 1 or more, and below the horizon {horizon}, which keeps 2")
    if not 0.0 <= delta < 1.0:
        raise SettingsError("delta", delta, "must be at least 0 and below 1")
    env = market_of(game)
    responses: list[Response] = []
    start, start_count = 0, 1
    while start < start_count:
        usual = PricePath.from_events(await game.branch(horizon, f"usual-{start}"))
        cycle = path_cycle(usual.prices, usual.profits, env.equilibria, tolerance=tolerance)
        if start == 0 and everywhere and cycle is not None:
            start_count = min(cycle.length, LONGEST_CYCLE)
        for firm in range(env.market.firms) if firms is None else firms:
            choice, seat = deviation_choice(env, usual.prices[0], firm, to), env.firms[firm]
            deviated = PricePath.from_events(
                await game.branch(horizon, f"deviation-{start}-{seat}", {seat: choice}, periods)
            )
            responses.append(_response(env, firm, usual, cycle, deviated, periods, kept, delta, tolerance))
        start += 1
        if start < start_count:
            await game.play(1)
    return responses


def _response(
    env: BertrandEnv,
    firm: int,
    usual: PricePath,
    cycle: PathCycle | None,
    deviated: PricePath,
    periods: int,
    reported: int,
    delta: float,
    tolerance: float,
) -> Response:
    """Compare a deviation with play as it would have been.

    Where both paths end in cycles, these are compared; otherwise the paths themselves, round by round.

    Args:
        env: the environment.
        firm: the deviating firm, by its index in `env.firms`.
        usual: the path without the deviation.
        cycle: the cycle in which that path ends, if any.
        deviated: the path with the deviation.
        periods: how many rounds the firm was forced.
        reported: how many rounds of the response are reported.
        delta: discount factor per round.
        tolerance: up to which distance prices count as equal.
    """
    end = path_cycle(deviated.prices, deviated.profits, env.equilibria, tolerance=tolerance)
    length: int | None
    if cycle is not None and end is not None:
        returned = same_cycle(cycle, end, env.equilibria, tolerance)
        length = max(end.begins + 1, periods)
    else:
        cycle = end = None
        usual_positions, positions_after = (positions(path.prices, env.equilibria) for path in (usual, deviated))
        is_away = np.abs(positions_after - usual_positions).max(axis=1) > tolerance
        return_period = int(np.flatnonzero(is_away)[-1]) + 2 if is_away.any() else 1
        returned = return_period <= len(is_away)
        length = max(return_period, periods) if returned else None
    return Response(
        firm=firm,
        before=usual.prices[0],
        prices=deviated.prices[:reported],
        profits=deviated.profits[:reported],
        length=length,
        returned=returned,
        value=float(discounted(deviated.profits, delta, end)[firm]),
        value_before=float(discounted(usual.profits, delta, cycle)[firm]),
    )
