"""Responses to a forced deviation, measured alike for learners, scripted rules and models.

`faces/after.py` forces deviations on any policies, by playing an episode on from one point more than once;
`baselines/q_learning/analyse/responses.py` computes them from Q tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HORIZON = 25
"""Periods of a response that are reported (the authors' code of Calvano et al. 2020 prints 25)."""

TIE = 1e-12
"""Two values this close, as a share of the larger, differ by rounding alone and count as equal."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Response:
    """One deviation and the periods that follow it.

    Attributes:
        firm: the deviating firm.
        before: (firms,) the prices that would have been asked without the deviation.
        prices: (horizon, firms) prices asked; row 0 is the period of the deviation.
        profits: (horizon, firms).
        length: periods until play is back, the deviation included (`ShockLength` of the code of Calvano et al. 2020).
            If it ends in another cycle: periods until that one is entered. `None` if neither was seen.
        returned: whether play returns to the cycle or path that the deviation left.
        value: the deviator's discounted profits.
        value_before: its discounted profits without the deviation.
    """

    firm: int
    before: Floats
    prices: Floats
    profits: Floats
    length: int | None
    returned: bool
    value: float
    value_before: float

    @property
    def paid(self) -> bool:
        """Whether the deviation was worth more than not deviating."""
        return self.value - self.value_before > TIE * abs(self.value_before)

    @property
    def unprofitable(self) -> bool:
        """Whether the deviation was worth less; one to the price that is asked anyway is neither."""
        return self.value_before - self.value > TIE * abs(self.value_before)

    @property
    def rival_change(self) -> Floats:
        """Each rival's price change from the deviation's period to the next, as a share of the former."""
        rivals = np.arange(len(self.before)) != self.firm
        return np.asarray((self.prices[1, rivals] - self.prices[0, rivals]) / self.prices[0, rivals])


@dataclass(frozen=True, eq=False, kw_only=True)
class ResponseSummary:
    """The deviations of many sessions, averaged as Calvano et al. 2020 average them.

    Attributes:
        before: mean price before the deviation (cycle states and firms first, then sessions).
        deviator: (horizon,) the deviator's mean price; row 0 is the period of the deviation.
        rival: (horizon,) its rivals' mean price.
        change: mean change of a rival's price in answer, as a share (their IR). Here and below every deviation counts
            the same, whatever its session.
        unprofitable: share of deviations that were worth less than not deviating (their IC).
        paid: share that were worth more.
        length: mean length of the answer (their punishment length), of those that were seen to end; NaN if none was.
        returned: share after which play returned.
        responses: how many deviations.
        sessions: how many sessions.
    """

    before: float
    deviator: Floats
    rival: Floats
    change: float
    unprofitable: float
    paid: float
    length: float
    returned: float
    responses: int
    sessions: int


def summarise(sessions: Iterable[Sequence[Response]]) -> ResponseSummary:
    """Average the deviations of many sessions.

    Args:
        sessions: each session's responses, all of one horizon.

    Raises:
        ValueError: there are no responses.
    """
    every = [list(responses) for responses in sessions]
    flat = [response for responses in every for response in responses]
    if not flat:
        raise ValueError("there are no responses to sum up")

    def rivals(response: Response) -> list[int]:
        return [j for j in range(len(response.before)) if j != response.firm]

    def path(response: Response, of_rivals: bool) -> Floats:
        prices = response.prices
        return prices[:, rivals(response)].mean(axis=1) if of_rivals else prices[:, response.firm]

    lengths = [float(r.length) for r in flat if r.length is not None]
    return ResponseSummary(
        before=float(np.mean([np.mean([r.before.mean() for r in responses]) for responses in every])),
        deviator=np.mean([np.mean([path(r, False) for r in responses], axis=0) for responses in every], axis=0),
        rival=np.mean([np.mean([path(r, True) for r in responses], axis=0) for responses in every], axis=0),
        change=float(np.mean(np.concatenate([r.rival_change for r in flat]))),
        unprofitable=float(np.mean([r.unprofitable for r in flat])),
        paid=float(np.mean([r.paid for r in flat])),
        length=float(np.mean(lengths)) if lengths else float("nan"),
        returned=float(np.mean([r.returned for r in flat])),
        responses=len(flat),
        sessions=len(every),
    )
