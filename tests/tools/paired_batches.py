"""Batches beside the single environment: the same seeds and choices give the same bits."""

import numpy as np

from llm_coop_envs.interface.actions import ILLEGAL_CHOICE
from llm_coop_envs.wrappers.numeric import numeric_rows


class Alone:
    """The environments of a batch's copies, each played alone."""

    def __init__(self, batch, make):
        self.batch, self.games = batch, [make() for _ in range(batch.copies)]
        for copy in range(batch.copies):
            self.begin(copy)

    def begin(self, copy):
        self.games[copy].begin(self.batch.episode_seed(copy))

    def check_views(self, were_in=None):
        """Compare what is seen; in the step in which somebody leaves its last observation is."""
        batch = self.batch
        shown = [game.alive for game in self.games] if were_in is None else were_in
        state, masks, turn, present = batch.state(), batch.masks(), batch.turn, batch.present
        for copy, game in enumerate(self.games):
            rows = np.where(shown[copy][:, None], numeric_rows(game), 0)
            assert same(batch.observations[copy], rows), (batch.observations[copy], rows)
            assert same(state[copy], game.state()), (state[copy], game.state())
            assert same(turn[copy], game.turn)
            assert same(present[copy], game.alive)
            legal = game.masks()
            assert (masks is None) == (legal is None)
            assert legal is None or same(masks[copy][game.alive], legal[game.alive])

    def step(self, actions):
        """Play a step in both and compare everything; returns how many steps of agents were compared."""
        before, chosen = [game.alive for game in self.games], actions.copy()
        agent_steps = sum(int(alive.sum()) for alive in before)
        observations, rewards, terminations, truncations, infos = self.batch.step(actions)
        assert observations is self.batch.observations
        assert np.array_equal(actions, chosen, equal_nan=actions.dtype.kind == "f")
        ended = infos.get("ended", np.zeros(0, dtype=int)).tolist()
        assert ended == sorted(ended)
        for copy, game in enumerate(self.games):
            game.advance(actions[copy])
            flags = [ILLEGAL_CHOICE in game._flags.get(i, ()) for i in range(game.n_players)]
            was_in, still = before[copy], game.alive
            assert same(infos["illegal_choice"][copy], np.array(flags)), (infos["illegal_choice"][copy], flags)
            assert same(rewards[copy], np.where(was_in, game.rewards, 0.0)), (rewards[copy], game.rewards)
            decided = game.over and not game.truncated
            assert same(terminations[copy], was_in & (decided | ~still)), (terminations[copy], was_in, still)
            assert same(truncations[copy], was_in & still & game.truncated)
            assert game.over == (copy in ended)
            if game.over:
                last = np.where(was_in[:, None], numeric_rows(game), 0)
                assert same(infos["final_observations"][ended.index(copy)], last)
                self.begin(copy)
                before[copy] = self.games[copy].alive
        self.check_views(before)
        return agent_steps


def same(one, other):
    """Whether two arrays hold the same bits, where a zero may have either sign."""
    return one.shape == other.shape and bool(np.array_equal(one, other))


def random_choices(batch, rng, *, legal=0.9):
    """Choices of all agents, some of them out of range."""
    shape = (batch.copies, len(batch.agents))
    masks = batch.masks()
    if masks is None:
        low, high = float(batch.action_space.low[0]), float(batch.action_space.high[0])
        inside = rng.uniform(low, high, shape)
        strange = rng.choice([low - 1, high + 1, np.nan, np.inf, -np.inf, low, high], shape)
        return np.where(rng.random(shape) < legal, inside, strange)
    inside = (masks * (1 + rng.random(masks.shape))).argmax(axis=2)
    strange = rng.integers(-2, masks.shape[2] + 2, shape)
    return np.where(rng.random(shape) < legal, inside, strange)


def play_pairs(batch, make, steps, seed):
    """Play so many steps of random choices in both, and compare all of them."""
    rng = np.random.default_rng(seed)
    batch.reset(seed=seed)
    alone = Alone(batch, make)
    alone.check_views()
    return sum(alone.step(random_choices(batch, rng)) for _ in range(steps))
