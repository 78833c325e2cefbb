"""Scripted policies for price competition.

All of them work with any number of firms, with continuous prices and with grids, with and without talk; only
`PriceMatching` speaks. Policies that "know the market" read demand and costs from the episode's settings, which the
environment tells no player. All of them know past rounds only as far as these are shown: with `history_window=0` they
act as in the first round.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.rules import Rivalry, nearest
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.base_policy import Policy, SlotsPolicy
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.wording import six_digits
from llm_coop_envs.policies.scripted.stage_games import GAME_POLICIES
from llm_coop_envs.util.checks import check_bool

# A price in a message: "1.85" or "2"; of "2." at the end of a sentence the 2.
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def last_prices(slots: BertrandSlots) -> tuple[float, tuple[float, ...]] | None:
    """A firm's own last price and its rivals', or `None` if there are none yet."""
    if slots.history:
        return slots.history[-1].price, slots.history[-1].rival_prices
    if slots.prior:
        return slots.prior[0], slots.prior[1:]
    return None


def choice_for(slots: BertrandSlots, price: float) -> int | float:
    """The legal choice that is closest to a price; of two equally close ones the lower (1.5 from 1 and 2: 1)."""
    if slots.choices:
        return min(slots.choices, key=lambda choice: (abs(choice[1] - price), choice[0]))[0]
    return min(max(price, slots.floor), slots.cap)


class PricingPolicy(SlotsPolicy):
    """A firm that sets a price, and is silent in talk unless a subclass speaks."""

    plays = "bertrand"
    settings_type = BertrandSettings
    settings: BertrandSettings
    watches: ClassVar[bool] = True  # whether it needs the rivals' past prices
    spread: float = 0.0
    """By how much a step may fall short at most, as a share of it; nothing is drawn at 0."""

    def begin(self, episode: Episode) -> None:
        """Start an episode with the market of its settings.

        Raises:
            SettingsError: the policy needs the rivals' prices, and the settings hide them.
        """
        super().begin(episode)
        self._shortfalls: dict[str, tuple[int, float]] = {}
        self._sellers = episode.agents
        if self.watches and "own" in self.settings.reach("information"):
            raise SettingsError("information", "own", f"{type(self).__name__} plays by the others' prices; tell them")
        self._know(self.settings.rivalry_among(range(self.settings.firms)))

    def _know(self, rivalry: Rivalry) -> None:
        """Play from now on in the market of these firms."""
        self.market, self.equilibria = rivalry.market, rivalry.equilibria

    def choose(self, slots: BertrandSlots) -> float:
        """The legal choice that is closest to the policy's price."""
        return choice_for(slots, self.price(slots))

    @abstractmethod
    def price(self, slots: BertrandSlots) -> float:
        """The price that the policy would ask."""

    def shortfall(self, slots: BertrandSlots) -> float:
        """By how much the firm's step of this round falls short, as a share of it: drawn once, from 0 to `spread`."""
        if not self.spread:
            return 0.0
        drawn_in, share = self._shortfalls.get(slots.me, (0, 0.0))
        if drawn_in != slots.round:
            share = self.spread * float(self.episode.rng.random())
            self._shortfalls[slots.me] = slots.round, share
        return share

    def firm(self, slots: BertrandSlots) -> int:
        """The index of the firm in `market` and `equilibria`, which hold the firms still present.

        If firms 0 and 2 are left, firm 2 has index 1.
        """
        if len(slots.rivals) + 1 != len(self._sellers):
            names = self.episode.agents
            firms = [i for i, name in enumerate(names) if name == slots.me or name in slots.rivals]
            self._sellers = tuple(names[i] for i in firms)
            self._know(self.settings.rivalry_among(firms))
        return self._sellers.index(slots.me)


class BestReply(PricingPolicy):
    """Myopic best reply: the price that would have earned most against the rivals' last prices; knows the market.

    Before any prices are known it replies to rivals that price at cost. On a grid the best grid price is taken.
    """

    def price(self, slots: BertrandSlots) -> float:
        """The best reply to the last prices."""
        me = self.firm(slots)
        last = last_prices(slots)
        prices = list(self.market.cost)
        if last is not None:
            others = iter(last[1])
            prices = [self.market.cost[me] if i == me else next(others) for i in range(self.market.firms)]
        if not slots.choices:
            return best_reply(self.market, me, prices)

        def profit(price: float) -> float:
            return self.market.profits([price if i == me else p for i, p in enumerate(prices)])[me]

        return max((price for _, price in slots.choices), key=profit)


class WinContinueLoseReverse(PricingPolicy):
    """Win-continue, lose-reverse: move the price on if the profit did not fall, else turn round; knows nothing.

    (The rule of Huck, Normann and Oechssler 2004, there for quantities.) The first price and direction are drawn.

    Args:
        step: size of a move as a share of the price range; on a grid one index is the least.
        spread: by how much each move falls short, drawn from 0 to this share of it.
    """

    watches = False

    def __init__(self, step: float = 0.01, spread: float = 0.0) -> None:
        self.step, self.spread = _check_step(step), _check_spread(spread)

    def begin(self, episode: Episode) -> None:
        """Forget the last episode."""
        super().begin(episode)
        self._direction: dict[str, int] = {}
        self._profit: dict[str, float] = {}

    def price(self, slots: BertrandSlots) -> float:
        """The last price, moved one step."""
        low, high = slots.floor, slots.cap
        step = (high - low) * self.step
        if slots.choices:
            low, high = slots.choices[0][1], slots.choices[-1][1]
            step = max((high - low) * self.step, (high - low) / (len(slots.choices) - 1))
        rng = self.episode.rng
        if slots.me not in self._direction:
            self._direction[slots.me] = 1 if rng.random() < 0.5 else -1
        last = last_prices(slots)
        if last is None:
            return float(rng.uniform(low, high))
        if slots.history:
            profit = slots.history[-1].profit
            if profit < self._profit.get(slots.me, profit):
                self._direction[slots.me] *= -1
            self._profit[slots.me] = profit
        next_price = last[0] + self._direction[slots.me] * step * (1.0 - self.shortfall(slots))
        # At an end of the range it turns round. Half a step of leeway: grid prices are sums with rounding, so that a
        # step up to 1.8 may come to 1.8000000001.
        if not low - step / 2 <= next_price <= high + step / 2:
            self._direction[slots.me] *= -1
        return min(max(next_price, low), high)


class TitForTat(PricingPolicy):
    """Tit-for-tat: start at the joint-profit price, then ask the lowest price a rival asked last; knows the market."""

    def price(self, slots: BertrandSlots) -> float:
        """The lowest rival's last price."""
        if not slots.history or not slots.rivals:
            return self.equilibria.joint[self.firm(slots)]
        return min(slots.history[-1].rival_prices)


class GrimTrigger(PricingPolicy):
    """Grim trigger: the joint-profit price until a rival goes below its own, then Nash for good; knows the market.

    Rounds whose prices were laid down in advance provoke nobody.

    Args:
        tolerance: how far below its joint-profit price (on a grid, the price nearest to it) a rival may go, as a share
            of the distance to Nash.
    """

    def __init__(self, tolerance: float = 0.05) -> None:
        if not tolerance >= 0.0:
            raise SettingsError("tolerance", tolerance, "must be 0 or more")
        self.tolerance = tolerance

    def begin(self, episode: Episode) -> None:
        """Forget the last episode."""
        super().begin(episode)
        self._angry: set[str] = set()
        self._excused: set[int] = set()

    def _know(self, rivalry: Rivalry) -> None:
        super()._know(rivalry)
        grids, of_grid = self.settings.grids, self.settings.prices == "grid"
        self._lowest_tolerated = [
            (grids[i][nearest(grids[i], joint)] if of_grid else joint) - self.tolerance * (joint - nash)
            for i, nash, joint in zip(rivalry.firms, self.equilibria.nash, self.equilibria.joint, strict=True)
        ]

    def price(self, slots: BertrandSlots) -> float:
        """Joint-profit or Nash price."""
        me = self.firm(slots)
        if slots.fixed_price is not None:
            self._excused.add(slots.round)
        if slots.history and slots.history[-1].round not in self._excused:
            rivals = [i for i in range(self.market.firms) if i != me]
            for i, price in zip(rivals, slots.history[-1].rival_prices, strict=True):
                if price < self._lowest_tolerated[i]:
                    self._angry.add(slots.me)
        return (self.equilibria.nash if slots.me in self._angry else self.equilibria.joint)[me]


class PriceMatching(PricingPolicy):
    """Price-matching that talks: proposes a step up, goes along with the lowest proposal; knows the market.

    It proposes, in plain English, the lowest price of the last round plus one step, but never more than its
    joint-profit price. Then it asks the lowest price that anybody has proposed in the round. Without talk it asks the
    lowest price of the last round, or what the policy `alone` asks. A proposal is the last number in a message that is
    a legal price: "Not 1.2, let us ask 1.5." proposes 1.5.

    Args:
        step: how much higher than the last round it proposes, as a share of the distance from Nash to joint-profit
            price.
        alone: another of these policies, whose price it asks where nobody may talk.
        spread: how far each of its own proposals lies below that, drawn from 0 to this share of the step; the steps of
            `alone` fall short alike. Without it all episodes may be copies of one.
    """

    def __init__(self, step: float = 0.1, alone: str | None = None, spread: float = 0.0) -> None:
        self.step, self.spread = _check_step(step), _check_spread(spread)
        if alone is not None and alone not in POLICIES:
            raise SettingsError("alone", alone, f"must be one of {', '.join(POLICIES)}")
        self._alone = None if alone is None else POLICIES[alone]()
        if self._alone is not None:
            self._alone.spread = self.spread

    def begin(self, episode: Episode) -> None:
        """Forget the last episode."""
        super().begin(episode)
        if self._alone is not None:
            self._alone.begin(episode)

    def say(self, slots: BertrandSlots) -> str:
        """A proposal, or assent to a lower one."""
        own, lowest = self._own_proposal(slots), self._lowest_proposal(slots)
        if lowest is None or lowest >= own:
            return f"I suggest that we all ask {six_digits(own)} this round. I will do so."
        return f"Agreed, I will ask {six_digits(lowest)} this round."

    def price(self, slots: BertrandSlots) -> float:
        """The lowest price proposed, its own proposal included."""
        if self._alone is not None and not slots.may_talk:
            return self._alone.price(slots)
        own, lowest = self._own_proposal(slots), self._lowest_proposal(slots)
        return own if lowest is None else min(own, lowest)

    def _own_proposal(self, slots: BertrandSlots) -> float:
        """The firm's own proposal."""
        me = self.firm(slots)
        nash, joint = self.equilibria.nash[me], self.equilibria.joint[me]
        last = last_prices(slots)
        if last is None:
            return joint
        lowest = min((last[0], *last[1]))
        if not slots.may_talk:
            return min(joint, lowest)
        rise = self._rise(slots, joint - nash)
        return min(joint, lowest + rise) - self.shortfall(slots) * rise

    def _rise(self, slots: BertrandSlots, gap: float) -> float:
        """One step up; on a grid at least to the next price."""
        if not slots.choices:
            return self.step * gap
        return max(self.step * gap, slots.choices[1][1] - slots.choices[0][1])

    def _lowest_proposal(self, slots: BertrandSlots) -> float | None:
        """The lowest price a rival proposed in this round."""
        low, high = slots.floor, slots.cap
        offers: list[float] = []
        for message in slots.said:
            if not message.own:
                prices = [float(number) for number in _NUMBER.findall(message.text)]
                offers += [price for price in prices if low <= price <= high][-1:]
        return min(offers) if offers else None


class Uniform(PricingPolicy):
    """Uniform random: any legal price with equal probability; knows nothing.

    Args:
        talks: whether it announces a price that is drawn alike, whatever it then asks.
    """

    watches = False

    def __init__(self, talks: bool = False) -> None:
        self.talks = talks
        check_bool(self, "talks")

    def say(self, slots: BertrandSlots) -> str:
        """Announce a drawn price, or nothing."""
        return f"I will ask {six_digits(self.price(slots))} this round." if self.talks else ""

    def price(self, slots: BertrandSlots) -> float:
        """A drawn price."""
        if slots.choices:
            return slots.choices[int(self.episode.rng.integers(len(slots.choices)))][1]
        return float(self.episode.rng.uniform(slots.floor, slots.cap))


def _check_step(step: float) -> float:
    if not 0.0 < step <= 1.0:
        raise SettingsError("step", step, "must be above 0 and at most 1")
    return step


def _check_spread(spread: float) -> float:
    if not 0.0 <= spread <= 1.0:
        raise SettingsError("spread", spread, "must be between 0 and 1")
    return spread


POLICIES: dict[str, Callable[..., PricingPolicy]] = {
    "best_reply": BestReply,
    "grim_trigger": GrimTrigger,
    "price_matching": PriceMatching,
    "tit_for_tat": TitForTat,
    "uniform": Uniform,
    "win_continue_lose_reverse": WinContinueLoseReverse,
}
"""Those that set prices by what they see or know of the market."""

SCRIPTED: dict[str, Callable[..., Policy]] = {**POLICIES, **GAME_POLICIES}
"""All of them: also those that play a round as a game, with the mechanism around it."""
