"""The rows against the numeric view: everything a learner gets must be what episodes one by one give."""

import json

import numpy as np
import pytest
from configurations import CONFIGURATIONS, SMALL_ROOM
from toy import ToyEnv

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.baselines.deep.rows import SharedRows, episode_seed
from llm_coop_envs.errors import ResetNeeded, SettingsError, SnapshotError
from llm_coop_envs.wrappers import NumericView

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
        assert np.array_equal(rows.decides, masks.sum(axis=1) > 1)
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
        assert not rows.decides[gone].any()
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
        assert rows.decides.all()
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


@pytest.mark.parametrize("settings", [{"preset": "calvano", "rounds": 5}, {"talk": False, "rounds": 5}])
def test_copies_in_a_batch_and_one_by_one_give_the_same(settings, monkeypatch):
    together, by_itself = (SharedRows(lambda: bertrand_v0.parallel_env(**settings), copies=3, seed=4) for _ in range(2))
    by_itself._play_one_by_one()
    assert together._batch is not None
    rng = np.random.default_rng(0)
    assert np.array_equal(together.reset(), by_itself.reset())
    for k in range(12):
        outputs = rng.integers(0, 15, together.n_rows)
        ours, theirs = together.step(outputs), by_itself.step(outputs)
        for name in ("rewards", "done", "truncated", "vacant", "last", "returns", "lengths"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        for name in ("observations", "masks", "decides"):
            assert np.array_equal(getattr(together, name), getattr(by_itself, name)), name
        if k == 3:  # what an earlier version saved goes on one by one
            together.set_state(json.loads(json.dumps(by_itself.get_state())))
            assert together._batch is None
