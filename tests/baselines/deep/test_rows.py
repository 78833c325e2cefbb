"""The rows against the numeric view: everything a learner gets must be what episodes one by one give."""

import json

import numpy as np
import pytest
from configurations import CONFIGURATIONS, SMALL_ROOM
from toy import ToyEnv

from auction.env import AuctionEnv
from auction.scenario import SCENARIO as AUCTION
from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.baselines.deep.evaluate import play_episode
from llm_coop_envs.baselines.deep.network import LOGITS, Network
from llm_coop_envs.baselines.deep.player import NetworkPolicy
from llm_coop_envs.baselines.deep.rows import SharedRows, episode_seed
from llm_coop_envs.core import registry
from llm_coop_envs.errors import ResetNeeded, SettingsError, SnapshotError
from llm_coop_envs.policies import play
from llm_coop_envs.wrappers import NumericView
from llm_coop_envs.wrappers.numeric import numeric_names

DISCRETE = {
    name: (module, settings)
    for name, (module, settings) in CONFIGURATIONS.items()
    if name.startswith(("kbc", "evacuation", "bertrand-grid")) and "real" not in name and "regulated" not in name
}


class ViewRows:
    """One copy played through the numeric view, written down in the terms of rows."""

    def __init__(self, env, copy, seed):
        self.view, self.copy, self.seed_ = NumericView(env), copy, seed
        self.env, self.episode = env, 0
        self.begin()

    def begin(self):
        seen, infos = self.view.reset(seed=episode_seed(self.seed_, self.copy, self.episode))
        self.episode += 1
        self.totals = dict.fromkeys(self.view.possible_agents, 0.0)
        self.counts = dict.fromkeys(self.view.possible_agents, 0)
        self.seen, self.infos = seen, infos
        self.skip_talk({})

    def skip_talk(self, earned):
        ends = {}
        while self.view.agents and self.env.phase == "talk":
            self.seen, rewards, terminated, truncated, self.infos = self.view.step(dict.fromkeys(self.view.agents, 0))
            for agent in rewards:
                earned[agent] = earned.get(agent, 0.0) + rewards[agent]
                ends[agent] = (terminated[agent], truncated[agent])
        return ends

    def observed(self, width):
        rows = []
        for agent in self.view.possible_agents:
            rows.append(self.seen[agent] if agent in self.view.agents else np.zeros(width, np.float32))
        return np.array(rows)

    def masks(self):
        idle = np.eye(1, self.view.action_space(self.view.possible_agents[0]).n)[0]
        there = self.view.agents
        return np.array([self.infos[a]["action_mask"] if a in there else idle for a in self.view.possible_agents]) > 0

    def step(self, outputs):
        names = self.view.possible_agents
        present = list(self.view.agents)
        self.seen, earned, terminated, truncated, self.infos = self.view.step(
            {agent: int(outputs[names.index(agent)]) for agent in present}
        )
        last = dict(self.seen)
        ends = {a: (terminated[a], truncated[a]) for a in present}
        for agent, end in self.skip_talk(earned).items():
            ends[agent] = end
            last[agent] = self.seen[agent]
        for agent in present:
            self.totals[agent] += earned[agent]
            self.counts[agent] += 1
        over = not self.view.agents
        told = {
            "rewards": [earned.get(a, 0.0) for a in names],
            "vacant": [a not in present for a in names],
            "done": [over if a not in present else any(ends[a]) for a in names],
            "truncated": [a in present and ends[a][1] for a in names],
            "returns": [self.totals[a] for a in names],
            "lengths": [self.counts[a] for a in names],
        }
        told["last"] = {names.index(a): last[a] for a in present if any(ends[a])}
        if over:
            self.begin()
        return told


def compare(make, *, steps, copies=2, seed=5, illegal=False):
    """Play the same choices both ways; how many episodes ended, how many rows were vacant, how many were cut."""
    rows = SharedRows(make, copies=copies, seed=seed)
    views = [ViewRows(make(), copy, seed) for copy in range(copies)]
    rng = np.random.default_rng(3)
    seen = rows.reset()
    ended = vacant = cut = 0
    for _ in range(steps):
        assert np.array_equal(seen, np.concatenate([view.observed(rows.width) for view in views]))
        masks = np.concatenate([view.masks() for view in views])
        assert np.array_equal(rows.masks, masks)
        assert ((seen >= rows.low) & (seen <= rows.high)).all()
        outputs = rng.integers(masks.shape[1], size=rows.n_rows)
        if not illegal:
            outputs = np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)
        step = rows.step(outputs)
        seen = rows.observations
        told = [view.step(outputs[k * rows.players : (k + 1) * rows.players]) for k, view in enumerate(views)]
        for name in ("rewards", "vacant", "done", "truncated", "returns", "lengths"):
            assert np.array_equal(getattr(step, name), np.concatenate([one[name] for one in told])), name
        for copy, one in enumerate(told):
            for player in range(rows.players):
                expected = one["last"].get(player, np.zeros(rows.width, np.float32))
                assert np.array_equal(step.last[copy * rows.players + player], expected)
        ended += int(step.done.sum())
        vacant += int(step.vacant.sum())
        cut += int(step.truncated.sum())
    return ended, vacant, cut


def test_a_regulator_is_refused():
    module, settings = CONFIGURATIONS["kbc-regulated"]
    with pytest.raises(SettingsError, match="train without a regulator"):
        SharedRows(lambda: module.parallel_env(**settings), copies=1, seed=0)


@pytest.mark.parametrize("name", DISCRETE)
def test_rows_are_what_the_numeric_view_gives(name):
    module, settings = DISCRETE[name]
    ended, _, cut = compare(lambda: module.parallel_env(**settings), steps=60 if "evac" in name else 30)
    assert ended > 0 or "evacuation" in name
    if name.startswith("bertrand"):
        assert cut == ended > 0


@pytest.mark.parametrize("control", ["exit", "move"])
def test_whole_evacuations_with_people_leaving(control):
    settings = {**SMALL_ROOM, "control": control, "talk": False, "rounds": 30}
    steps = 120 if control == "exit" else 400
    ended, vacant, cut = compare(lambda: evacuation_v0.parallel_env(**settings), steps=steps)
    assert ended >= 2 * 12
    assert vacant > 0
    assert cut == 0


def test_illegal_choices_come_to_the_same():
    compare(lambda: evacuation_v0.parallel_env(**{**SMALL_ROOM, "talk": False}), steps=60, illegal=True)


@pytest.mark.parametrize("settings", [{"departures": True}, {"levels": True}, {"departures": True, "talk": False}])
def test_the_toy_with_departures_and_levels(settings):
    ended, vacant, _ = compare(lambda: ToyEnv(**settings), steps=40)
    assert ended > 0
    assert ("departures" in settings) == (vacant > 0)


def test_a_clock_that_cuts_is_told_apart_from_departures():
    settings = {**SMALL_ROOM, "control": "exit", "talk": False}
    ended, vacant, cut = compare(lambda: evacuation_v0.parallel_env(max_cycles=4, **settings), steps=40)
    # Somebody left before the clock ended the episode for the others.
    assert 0 < cut < ended
    assert vacant > 0


def test_vacant_rows_end_with_their_copy():
    settings = {**SMALL_ROOM, "control": "exit", "talk": False}
    rows = SharedRows(lambda: evacuation_v0.parallel_env(**settings), copies=1, seed=0)
    rows.reset()
    was_vacant = np.zeros(rows.n_rows, dtype=bool)
    for _ in range(200):
        step = rows.step(np.zeros(rows.n_rows, dtype=int))
        if step.done.all():
            break
        gone = step.vacant | step.done
        assert not rows.observations[gone].any()
        assert (rows.masks[gone].sum(axis=1) == 1).all()
        assert rows.masks[gone].sum() == gone.sum()
        assert not step.rewards[step.vacant].any()
        was_vacant |= step.vacant
    assert step.done.all()
    assert was_vacant.any()
    assert not step.last[step.vacant].any()
    assert rows.observations.any(axis=1).all()


def test_same_seed_same_rows_and_other_seeds_others():
    def played(seed):
        rows = SharedRows(lambda: bertrand_v0.parallel_env(preset="calvano", rounds=5), copies=3, seed=seed)
        rng = np.random.default_rng(0)
        trace = [rows.reset()]
        for _ in range(12):
            rows.step(rng.integers(rows.choices.n, size=rows.n_rows))
            trace.append(rows.observations.copy())
        return np.array(trace)

    assert np.array_equal(played(1), played(1))
    assert not np.array_equal(played(1), played(2))
    # Copies are different games.
    assert not np.array_equal(played(1)[:, :2], played(1)[:, 2:4])


def test_seeding_starts_anew_with_the_next_reset():
    rows = SharedRows(lambda: bertrand_v0.parallel_env(preset="calvano", rounds=5), copies=2, seed=1)
    first, second = rows.reset(), rows.reset()
    assert not np.array_equal(first, second)
    rows.seed(1)
    assert np.array_equal(rows.observations, second)
    assert np.array_equal(rows.reset(), first)


def test_episode_seeds_do_not_repeat():
    seeds = {episode_seed(s, c, e) for s in range(3) for c in range(10) for e in range(100)}
    assert len(seeds) == 3000
    assert min(seeds) > 1_000_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: evacuation_v0.parallel_env(**{**SMALL_ROOM, "talk": False}),
        lambda: kbc_v0.parallel_env(players=5),
    ],
)
def test_going_on_from_a_saved_state(make):
    def act(rows, rng):
        return rows.step(np.where(rows.masks, rng.random(rows.masks.shape), -1).argmax(axis=1))

    rows = SharedRows(make, copies=2, seed=0)
    rows.reset()
    for _ in range(50):
        act(rows, np.random.default_rng(0))
    saved = json.loads(json.dumps(rows.get_state()))
    other = SharedRows(make, copies=2, seed=99)
    other.set_state(saved)
    assert np.array_equal(rows.observations, other.observations)
    assert np.array_equal(rows.masks, other.masks)
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(150):
        one, two = act(rows, ours), act(other, theirs)
        for name in ("rewards", "done", "truncated", "vacant", "last", "returns", "lengths"):
            assert np.array_equal(getattr(one, name), getattr(two, name))
        assert np.array_equal(rows.observations, other.observations)


def test_talk_is_passed_over_silently():
    rows = SharedRows(lambda: kbc_v0.parallel_env(players=4), copies=1, seed=0)
    rows.reset()
    for _ in range(20):
        assert rows.games[0].phase == "act"
        assert (rows.masks.sum(axis=1) > 1).all()
        rows.step(np.arange(4))
    assert not rows.games[0].conversation.messages or all(m.text == "" for m in rows.games[0].conversation.messages)


def test_bad_input():
    def make():
        return kbc_v0.parallel_env(players=4, talk=False)

    with pytest.raises(SettingsError, match="copies"):
        SharedRows(make, copies=0, seed=0)
    with pytest.raises(SettingsError, match="seed"):
        SharedRows(make, copies=1, seed=-1)
    rows = SharedRows(make, copies=1, seed=0)
    with pytest.raises(ResetNeeded):
        rows.step(np.zeros(4, dtype=int))
    with pytest.raises(ResetNeeded):
        rows.get_state()
    rows.reset()
    with pytest.raises(SettingsError, match="saved state has 1"):
        SharedRows(make, copies=2, seed=0).set_state(rows.get_state())
    with pytest.raises(SnapshotError):
        SharedRows(lambda: kbc_v0.parallel_env(players=5, talk=False), copies=1, seed=0).set_state(rows.get_state())
    mute = SharedRows(lambda: kbc_v0.parallel_env(players=4, max_cycles=1), copies=1, seed=0)
    with pytest.raises(SettingsError, match="before anybody"):
        SharedRows(lambda: kbc_v0.parallel_env(players=4, session="single", max_cycles=1), copies=1, seed=0).reset()
    assert mute.n_rows == 4


_ROOM = {"talk": False, "rows": 6, "cols": 6, "people": 6, "rounds": 6}


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (bertrand_v0.parallel_env, {"preset": "calvano", "rounds": 5}),
        (bertrand_v0.parallel_env, {"talk": False, "rounds": 5}),
        (evacuation_v0.parallel_env, _ROOM),
        (evacuation_v0.parallel_env, {**_ROOM, "control": "exit", "max_cycles": 4}),
    ],
)
def test_copies_in_a_batch_and_one_by_one_give_the_same(make, settings):
    together, by_itself = (SharedRows(lambda: make(**settings), copies=3, seed=4) for _ in range(2))
    by_itself._play_one_by_one()
    assert together._batch is not None
    rng = np.random.default_rng(0)
    assert np.array_equal(together.reset(), by_itself.reset())
    vacant = 0
    for k in range(60):
        outputs = rng.integers(0, together.masks.shape[1], together.n_rows)
        ours, theirs = together.step(outputs), by_itself.step(outputs)
        for name in ("rewards", "done", "truncated", "vacant", "last", "returns", "lengths"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        for name in ("observations", "masks"):
            assert np.array_equal(getattr(together, name), getattr(by_itself, name)), name
        vacant += int(ours.vacant.sum())
        if k == 40:  # what an earlier version saved goes on one by one
            together.set_state(json.loads(json.dumps(by_itself.get_state())))
            assert together._batch is None
    assert (vacant > 0) == (make is evacuation_v0.parallel_env)


def test_rows_that_choose_numbers_play_as_the_view_does():
    settings = {"talk": False, "rounds": 4, "initial_prices": "random"}
    rows = SharedRows(lambda: bertrand_v0.parallel_env(**settings), copies=2, seed=5, points=None)
    views = [NumericView(bertrand_v0.parallel_env(**settings)) for _ in range(2)]
    rows.reset()
    for copy, view in enumerate(views):
        view.reset(seed=episode_seed(5, copy, 0))
    rng = np.random.default_rng(0)
    for _ in range(3):
        outputs = rng.uniform(-1, 1, size=4).astype(np.float32)
        outputs[0] = -1.0
        step = rows.step(outputs)
        for copy, view in enumerate(views):
            own = outputs[2 * copy : 2 * copy + 2]
            seen, rewards, *_ = view.step({name: own[k : k + 1] for k, name in enumerate(view.agents)})
            assert list(rewards.values()) == step.rewards[2 * copy : 2 * copy + 2].tolist()
            assert np.array_equal(list(seen.values()), rows.observations[2 * copy : 2 * copy + 2])


def test_rows_of_a_number_that_may_be_passed():
    """The first output passes, the others are bids; a phase of options has the first outputs alone."""
    env = AuctionEnv(talk=False, record=True)
    rows = SharedRows(lambda: env, copies=1, seed=3)
    rows.reset()
    assert rows.choices.n == 101
    assert (env.phase, rows.masks.sum(axis=1).tolist()) == ("enter", [2] * 4)
    rows.step(np.array([1, 1, 1, 0]))
    assert env.phase == "bid"
    assert rows.masks.sum(axis=1).tolist() == [101, 101, 101, 1]
    rows.step(np.array([0, 1, 100, 0]))
    bids = [event["choice"] for event in env.events if event["type"] == "choice" and event["phase"] == "bid"]
    assert bids == [None, 10.0, 100.0]
    assert not any(event["flags"] for event in env.events if event["type"] == "choice")
    # What stands beyond the outputs of a phase is replaced by the environment, and flagged.
    rows.step(np.array([50, 0, 0, 0]))
    assert [event["flags"] for event in env.events if event["type"] == "choice"][-4:] == [
        ["illegal_choice"],
        [],
        [],
        [],
    ]


def test_a_network_of_passable_numbers_plays_as_it_was_trained(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(AUCTION)
    env = AuctionEnv(talk=False, record=True)
    rng, width = np.random.default_rng(7), len(numeric_names(env))
    layers = [
        (rng.normal(size=s).astype(np.float32), rng.normal(size=s[0]).astype(np.float32))
        for s in ((9, width), (101, 9))
    ]
    network = Network(
        scenario="auction",
        features=numeric_names(env),
        layers=tuple(layers),
        activation="tanh",
        output=LOGITS,
        about={"play": "best"},
    )
    expected = play_episode(network, env, 3, play="best")
    recorded = list(env.events)
    play(env, NetworkPolicy(network), seed=3)
    assert env.events == recorded
    assert not any(event["flags"] for event in env.events if event["type"] == "choice")
    assert expected["seed"] == 3
