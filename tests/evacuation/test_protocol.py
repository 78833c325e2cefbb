"""The environment against an independent engine that plays the published description one person at a time."""

import numpy as np
import pytest
import reference_engine

from llm_coop_envs import evacuation_v0
from llm_coop_envs.core.policy import Request
from llm_coop_envs.policies import ScriptedPolicy, play

NAMES = reference_engine.NAMES


def crowd_exit(views):
    return min(NAMES, key=lambda name: views[name][0] + 0.7 * views[name][1])


def greedy(options, goal, cell):
    """Nearest to the goal if that is nearer than here, the first in the published order on ties."""

    def away(cell):
        return (cell[0] - goal[0]) ** 2 + (cell[1] - goal[1]) ** 2

    best = min(options, key=away)
    return best if away(best) < away(cell) else cell


def wandering(person, options, goal, cell, round_):
    """Mostly greedy, but now and then any option: many more blocked and odd situations."""
    if (person * 7 + round_ * 13) % 5 == 0:
        return options[(person + round_ * 3) % len(options)]
    return greedy(options, goal, cell)


class Mirror(ScriptedPolicy):
    """Plays the same rules in the environment, from slots."""

    def __init__(self, move, speak):
        self.move, self.speak = move, speak
        self.heard = {}

    def decide(self, request: Request):
        slots = request.info["slots"]
        me = int(slots.me.split("_")[1])
        heard = [(int(message.speaker.split("_")[1]), message.text) for message in slots.heard]
        if slots.asked == "talk":
            return {"message": self.speak(me, heard)}
        if slots.asked == "exit":
            self.heard.setdefault(slots.round, {})[me] = heard
            views = {exit_.name: (exit_.distance, exit_.people) for exit_ in slots.exits}
            return {"choice": NAMES.index(self.choose(me, views))}
        cells = {(option.row, option.col): option.choice for option in slots.options}
        return {"choice": cells[self.move(me, list(cells), slots.target_cell, (slots.row, slots.col), slots.round)]}

    def choose(self, me, views):
        return crowd_exit(views)


def spoken(person, heard):
    return f"{person}<" + ",".join(str(speaker) for speaker, _ in heard)


def rounded(views):
    return {name: (round(away, 2), round(seen, 2)) for name, (away, seen) in views.items()}


def both(seed, people, move, talk, steps=51):
    trace = reference_engine.play(
        seed,
        people,
        lambda person, views, heard, round_: crowd_exit(rounded(views)),
        move,
        spoken,
        steps=steps,
    )
    env = evacuation_v0.parallel_env(
        people=people, talk=talk, record=True, rounds=min(steps, 50), extra_round=steps == 51
    )
    mirror = Mirror(move, spoken)
    play(env, mirror, seed=seed)
    return trace, env.events, mirror.heard


def compare(trace, events):
    rounds = [event for event in events if event["type"] == "round"]
    assert [event["round"] for event in rounds] == list(range(1, len(rounds) + 1))
    # The environment may record one more round: the departures after the last one.
    assert 0 <= len(rounds) - len(trace) <= 1
    for event, mine in zip(rounds, trace, strict=False):
        positions = {i: tuple(cell) for i, cell in enumerate(event["positions"]) if cell is not None}
        assert positions == mine["positions"], event["round"]
        assert sorted(map(tuple, event["escaped"])) == sorted(mine["left"]), event["round"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_published_seeds_step_for_step_without_talk(seed):
    trace, events, _ = both(seed, 100, lambda p, options, goal, cell, r: greedy(options, goal, cell), talk=False)
    compare(trace, events)
    assert sum(len(step["left"]) for step in trace) > 95


@pytest.mark.slow
def test_the_published_seed_4_step_for_step_with_talk():
    trace, events, heard = both(4, 100, wandering, talk=True)
    compare(trace, events)
    for number, step in enumerate(trace, start=1):
        assert heard.get(number, {}) == step["heard"]
        messages = [
            (int(e["agent"].split("_")[1]), e["text"])
            for e in events
            if e["type"] == "message" and e["round"] == number
        ]
        assert sorted(messages) == sorted(step["said"])


@pytest.mark.parametrize(("seed", "people", "steps"), [(0, 150, 2), (11, 300, 1)])
def test_crowded_rounds_step_for_step(seed, people, steps):
    trace, events, heard = both(seed, people, wandering, talk=True, steps=steps)
    compare(trace, events)
    for number, step in enumerate(trace, start=1):
        assert heard.get(number, {}) == step["heard"]


def test_the_first_exit_choices_of_seed_4_by_hand():
    # Person 2 starts at (14, 20): worked out on paper from the description.
    env = evacuation_v0.parallel_env(talk=False)
    _, infos = env.reset(seed=4)
    slots = infos["evacuee_2"]["slots"]
    assert (slots.row, slots.col) == (14, 20)
    away = {exit_.name: exit_.distance for exit_ in slots.exits}
    bottom = np.mean([np.hypot(18, 5), np.hypot(18, 4), np.hypot(18, 3)])
    left = np.mean([np.hypot(1, 20), np.hypot(2, 20), np.hypot(3, 20)])
    assert away == {"bottom": round(bottom, 2), "left": round(left, 2), "right": round(np.hypot(3, 12), 2)}
