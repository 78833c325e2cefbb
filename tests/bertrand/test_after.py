"""Deviations of any policies, by playing on from one point more than once."""

import asyncio

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.equilibrium import best_reply
from llm_coop_envs.bertrand.faces.after import Deviations, PricePath, deviation_choice, deviations
from llm_coop_envs.bertrand.scripted import PricingPolicy
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.policies import Policy, scripted
from llm_coop_envs.policies.branching import Branching


class Nash(PricingPolicy):
    """Always the Nash price."""

    def price(self, slots):
        return self.equilibria.nash[self.firm(slots)]


class TwoRounds(PricingPolicy):
    """Joint profit, unless a rival went below it in the last two rounds: then Nash. Two rounds of punishment."""

    def price(self, slots):
        me = self.firm(slots)
        low = any(min(row.rival_prices) < self.equilibria.joint[me] - 0.1 for row in slots.history[-2:])
        # Its own punishment must not provoke the next one: only the first firm punishes.
        return self.equilibria.nash[me] if low and me == 0 else self.equilibria.joint[me]


def branching(policy, played=10, seed=0, **settings):
    market = {"preset": "calvano", "prices": "continuous", "initial_prices": None, "rounds": 500, **settings}
    game = Branching(bertrand_v0.parallel_env(**market, record=True), policy, seed=seed)
    asyncio.run(game.play(played))
    return game


def respond(game, *arguments, **options):
    return asyncio.run(deviations(game, *arguments, **options))


def test_grim_trigger_answers_with_nash_for_good():
    game = branching(scripted.make("bertrand/grim_trigger"))
    env = game.env
    equilibria = env.equilibria
    responses = respond(game)
    assert [response.firm for response in responses] == [0, 1]
    for response in responses:
        cut = best_reply(env.market, response.firm, equilibria.joint)
        assert response.before.tolist() == list(equilibria.joint)
        assert response.prices[0, response.firm] == pytest.approx(cut)
        assert response.prices[0, 1 - response.firm] == equilibria.joint[0]
        # The betrayed firm is at Nash at once; the deviator when it sees that, and both for ever.
        assert response.prices[1].tolist() == [
            equilibria.nash[0] if i != response.firm else equilibria.joint[0] for i in (0, 1)
        ]
        assert np.allclose(response.prices[2:], equilibria.nash)
        assert (response.length, response.returned) == (3, False)
        prices = [cut if i == response.firm else equilibria.joint[0] for i in (0, 1)]
        second = [equilibria.joint[0] if i == response.firm else equilibria.nash[0] for i in (0, 1)]
        first, then = (env.market.profits(p)[response.firm] for p in (prices, second))
        assert response.value == pytest.approx(first + 0.95 * then + 0.95**2 * equilibria.nash_profit[0] / 0.05)
        assert response.value_before == pytest.approx(equilibria.joint_profit[0] / 0.05)
        assert response.unprofitable
        assert not response.paid
        assert response.rival_change == pytest.approx([equilibria.nash[0] / equilibria.joint[0] - 1.0])


def test_tit_for_tat_alternates_after_a_cut():
    game = branching(scripted.make("bertrand/tit_for_tat"))
    joint, nash = game.env.equilibria.joint[0], game.env.equilibria.nash[0]
    (response,) = respond(game, "nash", firms=[1])
    assert np.allclose(response.prices[:4], [(joint, nash), (nash, joint), (joint, nash), (nash, joint)])
    # Another cycle, of length two, from the first period on.
    assert (response.length, response.returned) == (1, False)


def test_after_two_rounds_of_punishment_play_is_back():
    game = branching(TwoRounds())
    joint, nash = game.env.equilibria.joint[0], game.env.equilibria.nash[0]
    (response,) = respond(game, "nash", firms=[1])
    assert np.allclose(response.prices[:4], [(joint, nash), (nash, joint), (nash, joint), (joint, joint)])
    assert (response.length, response.returned) == (4, True)
    (longer,) = respond(game, "nash", firms=[1], periods=3)
    assert longer.prices[:, 1].tolist()[:4] == [nash, nash, nash, joint]
    assert (longer.length, longer.returned) == (6, True)
    sums = summarise([[response]])
    assert (sums.before, sums.length, sums.returned) == (pytest.approx(joint), 4.0, 1.0)
    assert sums.change == pytest.approx(nash / joint - 1.0)


def test_deviations_may_start_off_the_cycle():
    game = branching(scripted.make("bertrand/tit_for_tat"))
    joint, nash = game.env.equilibria.joint[0], game.env.equilibria.nash[0]
    forced = PricePath.from_events(asyncio.run(game.play(2, {0: 1.6, 1: 1.7})))
    assert forced.prices.tolist() == [[1.6, 1.7]] * 2
    (response,) = respond(game, "nash", firms=[0], everywhere=False)
    assert response.before.tolist() == [1.7, 1.6]
    assert np.allclose(response.prices[:3], [(nash, 1.6), (1.6, nash), (nash, 1.6)])
    assert joint not in response.prices


def test_nobody_answers_who_always_asks_nash():
    responses = respond(branching(Nash()))
    for response in responses:
        # The best reply to Nash is Nash: nothing happens, and it neither pays nor costs more than the solver's error.
        assert np.allclose(response.prices, response.before)
        assert response.value == pytest.approx(response.value_before)
    up = respond(branching(Nash()), "joint")
    assert [(response.length, response.returned, response.unprofitable) for response in up] == [(2, True, True)] * 2
    assert [float(response.rival_change[0]) for response in up] == [0.0, 0.0]


def test_deviations_start_from_every_round_of_a_cycle():
    class Alternate(PricingPolicy):
        """High in odd rounds, low in even ones."""

        def price(self, slots):
            return (self.equilibria.joint if slots.round % 2 else self.equilibria.nash)[self.firm(slots)]

    game = branching(Alternate())
    responses = respond(game, "lowest")
    assert [response.firm for response in responses] == [0, 1, 0, 1]
    joint, nash = game.env.equilibria.joint[0], game.env.equilibria.nash[0]
    assert [response.before[0] for response in responses] == [joint, joint, nash, nash]
    assert len(PricePath.from_events(game.env.events).prices) == 11
    once = respond(game, "lowest", everywhere=False)
    assert len(once) == 2


def test_branches_leave_no_trace():
    def whole(branch):
        env = bertrand_v0.parallel_env(preset="calvano", rounds=60, talk=True, exchanges=1, record=True)
        seats = {
            "firm_0": scripted.make("bertrand/win_continue_lose_reverse"),
            "firm_1": scripted.make("bertrand/uniform"),
        }
        game = Branching(env, seats, seed=4)
        asyncio.run(game.play(20))
        if branch:
            usual = PricePath.from_events(asyncio.run(game.branch(10, "usual")))
            forced = PricePath.from_events(asyncio.run(game.branch(10, "forced", {0: 0})))
            assert forced.prices[0, 0] == env.settings.grids[0][0]
            # The same random numbers: firm 1 draws what it would have drawn.
            assert forced.prices[:, 1].tolist() == usual.prices[:, 1].tolist()
            asyncio.run(game.play(10))
            assert PricePath.from_events(env.events).prices[20:].tolist() == usual.prices.tolist()
            asyncio.run(game.play(30))
        else:
            asyncio.run(game.play(40))
        return env.events

    assert whole(True) == whole(False)


class Remembering(Policy):
    """Counts its rounds, and keeps what happened under the episode's name, as models' journals do."""

    def __init__(self):
        self.told = []

    def begin(self, episode):
        super().begin(episode)
        self.rounds = 0

    async def act(self, requests):
        self.rounds += len(requests)
        self.told.append((self.episode.name, self.rounds, float(self.episode.rng.random())))
        return [{"choice": self.rounds % 3} for _ in requests]

    def get_state(self):
        return {"rounds": self.rounds}

    def set_state(self, state):
        self.rounds = state["rounds"]


def test_policies_that_keep_their_own_state_are_put_back_by_it():
    policy = Remembering()
    game = branching(policy, played=2, prices="grid")
    asyncio.run(game.branch(2, "what-if"))
    asyncio.run(game.play(2))
    names, rounds, draws = zip(*policy.told, strict=True)
    assert names == (*["episode"] * 2, *["episode/what-if"] * 2, *["episode"] * 2)
    assert rounds == (2, 4, 6, 8, 6, 8)
    assert draws[2:4] == draws[4:6]
    assert len(set(draws)) == 4


def test_play_without_a_cycle_is_compared_round_by_round():
    game = branching(scripted.make("bertrand/uniform"), prices="grid")
    responses = respond(game, "lowest", horizon=30)
    assert [response.length for response in responses] == [2, 2]
    assert all(response.returned for response in responses)
    usual = PricePath.from_events(asyncio.run(game.branch(30, "usual")))
    assert responses[0].value_before == pytest.approx((0.95 ** np.arange(30)) @ usual.profits[:, 0])
    assert summarise([responses]).responses == 2
    assert game.env.round == 11
    (lasting,) = respond(game, "highest", firms=[0], periods=29, horizon=30)
    assert (lasting.length, lasting.returned) == (30, True)


def test_what_cannot_be_branched_is_said():
    env = bertrand_v0.parallel_env(preset="calvano")
    with pytest.raises(SettingsError, match="read from the recorded events; set it to True"):
        Branching(env, Nash(), seed=0)
    env = bertrand_v0.parallel_env(preset="team_up", record=True)
    with pytest.raises(SettingsError, match="collusion_window=200: prices held together would end the episode"):
        respond(Branching(env, Nash(), seed=0))
    env = bertrand_v0.parallel_env(preset="calvano", moves="alternating", record=True)
    with pytest.raises(SettingsError, match="moves='alternating': deviations are forced in any round"):
        respond(Branching(env, Nash(), seed=0))
    game = branching(Nash(), rounds=20)
    with pytest.raises(RunError, match=r"the episode ended after 20 rounds; give the environment more \(rounds=20\)"):
        respond(game)
    assert game.env.round == 11
    for options, reason in (
        ({"periods": 0}, "periods=0: must be 1 or more"),
        ({"delta": 1.0}, "delta=1.0: must be at least 0 and below 1"),
        ({"to": "free"}, "to='free': must be a price or one of best_reply"),
        ({"to": 99.0}, "to=99.0: firm 0's prices go from 0 to 2.89"),
    ):
        with pytest.raises(SettingsError, match=reason):
            respond(branching(Nash()), **options)


def test_targets_on_a_grid_are_its_points():
    env = bertrand_v0.parallel_env(preset="calvano", record=True)
    grid = env.settings.grids[0]
    prices = np.array([grid[10], grid[12]])
    chosen = {to: deviation_choice(env, prices, 0, to) for to in ("nash", "joint", "lowest", "highest", 1.6)}
    assert chosen == {"nash": 1, "joint": 13, "lowest": 0, "highest": 14, 1.6: 4}
    earned = [env.market.profits([price, grid[12]])[0] for price in grid]
    assert deviation_choice(env, prices, 0, "best_reply") == int(np.argmax(earned))


@pytest.mark.parametrize(("rounds", "lasting"), [(199, None), (200, 1)])
def test_prices_stay_together_from_two_hundred_rounds_on(rounds, lasting):
    game = branching(scripted.make("bertrand/grim_trigger"), played=rounds, collusion_window=0)
    row = asyncio.run(Deviations(horizon=20, everywhere=False).measure(game))
    assert row["lasting_from"] == lasting
    # Whatever is measured says what it is.
    assert {name for name, value in row.items() if not isinstance(value, str | list)} <= Deviations.about.keys()
