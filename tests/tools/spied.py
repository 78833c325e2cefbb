"""Episodes that are watched while they are played: what is counted here never reads an event."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from llm_coop_envs.treatments.regulator import SEAT

WORDS = {"kbc": "I will name {}.", "bertrand": "I will ask {}.", "evacuation": "I am going to the {} exit."}


@dataclass
class Choice:
    """One choice in the phase that measures of talk are about.

    Attributes:
        chosen: the number or option; `None` where it was no choice of the player's own.
        counted: what counted for it in the game.
        announced: what it had announced in this round.
        heard: what it had heard others announce in this round.
        heard_somebody: whether it had heard anything.
        heading: the option that it had before, where players see that.
    """

    round: int
    agent: str
    chosen: float | None
    counted: float
    announced: float | None
    heard: tuple[float, ...]
    heard_somebody: bool
    heading: float | None


@dataclass
class Watched:
    """What was seen of an episode from its seats."""

    env: object
    choices: list[Choice] = field(default_factory=list)
    messages: int = 0
    rewards: Counter = field(default_factory=Counter)
    steps: list = field(default_factory=list)


def watch(env, scenario, pool, *, seed, spoiled=0.0, spoiled_counts=0.0, instead=0.0, forced=()):
    """Play an episode with players who announce one of a pool and choose it half of the time.

    Args:
        env: the environment.
        scenario: its name.
        pool: what is announced and chosen: choices by the value that is announced.
        seed: of the players and of the environment.
        spoiled: the share of choices that are no legal ones.
        spoiled_counts: what counts in their place.
        instead: what counts in place of a choice that a regulator stops.
        forced: the rounds whose choices are not the players' own.
    """
    rng = np.random.default_rng(seed)
    watched = Watched(env)
    values = list(pool)
    _, infos = env.reset(seed=seed)
    said, before, pending = {}, {}, {}
    while env.agents:
        phase, number = env.phase, env.round
        on_turn = [env.possible_agents[i] for i in env.on_turn]
        slots = {agent: infos[agent]["slots"] for agent in on_turn}
        actions = {}
        for agent in on_turn:
            if agent == SEAT:
                stop = int(rng.random() < 0.3)
                actions[agent] = {"choice": stop}
                if stop and slots[agent].about in pending:
                    pending[slots[agent].about].chosen = None
                    pending[slots[agent].about].counted = instead
            elif phase == "talk":
                value = values[rng.integers(len(values))]
                said[number, agent] = value
                watched.messages += 1
                actions[agent] = {"message": WORDS[scenario].format(value)}
            elif phase == "move":
                legal = np.flatnonzero(infos[agent]["action_mask"]["choice"])
                actions[agent] = {"choice": int(rng.choice(legal))}
            else:
                announced = said.get((number, agent))
                keeps = announced is not None and rng.random() < 0.5
                value = announced if keeps else values[rng.integers(len(values))]
                bad = rng.random() < spoiled
                actions[agent] = {"choice": 10**7 if bad else pool[value]}
                heard = _heard(scenario, slots[agent])
                fresh = heard if scenario != "kbc" else heard - before.get(agent, Counter())
                before[agent] = heard
                named = [_named(text, values) for text in fresh.elements()]
                pending[agent] = Choice(
                    round=number,
                    agent=agent,
                    chosen=None if bad or number in forced else _number(value, values),
                    counted=spoiled_counts if bad else _number(value, values),
                    announced=None if announced is None else _number(announced, values),
                    heard=tuple(value for value in named if value is not None),
                    heard_somebody=bool(fresh),
                    heading=_number(slots[agent].target, values) if getattr(slots[agent], "target", None) else None,
                )
                watched.choices.append(pending[agent])
        _, rewards, _, _, infos = env.step(actions)
        watched.rewards.update(rewards)
        watched.steps.append((phase, number, rewards, infos))
    return watched


def _heard(scenario, slots):
    heard = slots.said if scenario == "bertrand" else slots.heard
    return Counter(message.text for message in heard if not message.own)


def _number(value, values):
    return float(value) if not isinstance(value, str) else float(values.index(value))


def _named(text, values):
    return next((_number(value, values) for value in values if str(value) in text), None)


def count_talk(watched, *, numbers):
    """What the measures of talk come to, counted from what players saw and did."""
    own = [choice for choice in watched.choices if choice.chosen is not None]
    made = [choice for choice in own if choice.announced is not None]
    kept = [choice for choice in made if choice.chosen == choice.announced]
    groups = Counter((choice.round, choice.chosen) for choice in kept)
    best = {}
    for (number, _), size in groups.items():
        best[number] = max(best.get(number, 0), size)
    agreed = [size for size in best.values() if size > 1]
    previous, informed = {}, []
    for number in sorted({choice.round for choice in own}):
        now = [choice for choice in own if choice.round == number]
        informed += [(previous.get(choice.agent), choice.chosen, choice.heard) for choice in now if choice.heard]
        previous.update({choice.agent: choice.chosen for choice in now})
    movable = [one for one in informed if one[0] is not None and set(one[2]) != {one[0]}]

    def follows(before, chosen, heard):
        return chosen in heard

    def moves(before, chosen, heard):
        if not numbers:
            return chosen != before and chosen in heard
        mean = sum(heard) / len(heard)
        return (chosen - before) * (mean - before) > 1e-9

    def share(choices, rule):
        return np.mean([rule(*one) for one in choices]) if choices else None

    def by_chance(choices, rule, alike):
        if not choices or len({alike(heard) for *_, heard in choices}) == 1:
            return None
        return np.mean([rule(before, chosen, other[2]) for before, chosen, _ in choices for other in choices])

    def distinct(heard):
        return frozenset(heard)

    def mean_of(heard):
        return round(sum(heard) / len(heard), 9) if numbers else frozenset(heard)

    return {
        "announced_share": len(made) / len(own) if own else None,
        "announcements_kept": len(kept),
        "announcements_broken": len(made) - len(kept),
        "kept_share": len(kept) / len(made) if made else None,
        "agreements": len(agreed),
        "agreed_share": sum(agreed) / len(own) if own else None,
        "heard_choices": len(informed),
        "followed_share": share(informed, follows),
        "followed_by_chance": by_chance(informed, follows, distinct),
        "moved_share": share(movable, moves),
        "moved_by_chance": by_chance(movable, moves, mean_of),
    }


def count_contest(watched, settings):
    """What a contest comes to, from the numbers that counted and what players were paid."""
    rounds = sorted({choice.round for choice in watched.choices})
    players = settings.players
    row = {
        "decisions": len(rounds),
        "players": players,
        "messages": watched.messages,
        "reward_mean": sum(watched.rewards[f"player_{i}"] for i in range(players)) / players,
    }
    for end, number in (("first", rounds[0]), ("last", rounds[-1])):
        named = [choice.counted for choice in watched.choices if choice.round == number]
        mean = sum(named) / len(named)
        target = float(settings.ratio) * mean + float(settings.offset)
        nearest = min(abs(value - target) for value in named)
        middle = (settings.low + settings.high) / 2
        level = [min(10.0, max(0.0, np.log(x / middle) / np.log(2 / 3))) if x > 0 else 10.0 for x in named]
        measures = {
            "mean": mean,
            "target": target,
            "variance": np.var(named),
            "rsd": 100 * np.std(named) / mean if mean else 0.0,
            "modal_share": max(Counter(named).values()) / len(named),
            "unanimous": len(set(named)) == 1,
            "n_winners": sum(abs(abs(value - target) - nearest) < 1e-9 for value in named),
            "mean_level": np.mean(level),
        }
        row.update({f"{name}_{end}": value for name, value in measures.items()})
    return row


def count_market(watched, settings):
    """What a market comes to, from the prices that counted and what firms earned."""
    prices, profits = {}, {}
    for choice in watched.choices:
        prices.setdefault(choice.round, {})[int(choice.agent[5:])] = choice.counted
    for phase, number, rewards, _ in watched.steps:
        if phase != "talk":
            for agent, reward in rewards.items():
                if agent.startswith("firm"):
                    earned = profits.setdefault(number, {})
                    earned[int(agent[5:])] = earned.get(int(agent[5:]), 0.0) + reward
    gains, positions, firms = [], [], []
    for number in sorted(prices):
        firms = sorted(prices[number])
        ends = settings.rivalry_among(firms).equilibria
        low, high = sum(ends.nash_profit) / len(firms), sum(ends.joint_profit) / len(firms)
        gains.append((sum(profits[number][i] for i in firms) / len(firms) - low) / (high - low))
        nash, joint = sum(ends.nash) / len(firms), sum(ends.joint) / len(firms)
        positions.append((sum(prices[number].values()) / len(firms) - nash) / (joint - nash))
    every = [price for asked in prices.values() for price in asked.values()]
    return {
        "rounds": len(prices),
        "messages": watched.messages,
        "firms": len(firms),
        "profit_gain": np.mean(gains),
        "mean_price": np.mean(every),
        "price_spread": np.mean([max(asked.values()) - min(asked.values()) for asked in prices.values()]),
        "price_index_last": min(1.0, max(0.0, np.mean(positions))),
        **{
            f"mean_price_last_{i}": np.mean([asked[i] for asked in prices.values() if i in asked])
            for i in range(settings.firms)
        },
    }


def count_evacuation(watched, settings):
    """What an evacuation comes to, from where people saw themselves and why they left."""
    ends, chose, again = {}, set(), []
    for choice in watched.choices:
        if choice.agent in chose and choice.chosen is not None:
            again.append(choice)
        chose.add(choice.agent)
    changes = [choice for choice in again if choice.chosen != choice.heading]
    for _, number, _, infos in watched.steps:
        for agent, info in infos.items():
            if agent == SEAT:
                continue
            slots = info["slots"]
            if slots.left:
                ends.setdefault(agent, (slots.left, number, (slots.row, slots.col)))
    out = {agent: end for agent, end in ends.items() if end[0] == "out"}
    heard = [choice for choice in again if choice.heard_somebody]
    changed_heard = [choice for choice in changes if choice.heard_somebody]
    unheard = len(again) - len(heard)
    row = {
        "people": settings.people,
        "escaped": len(out),
        "disabled": sum(end[0] == "hurt" for end in ends.values()),
        "taken_out": sum(end[0] == "gone" for end in ends.values()),
        "left_inside": settings.people - len(ends),
        "never_left": settings.people - len(out) - sum(end[0] == "gone" for end in ends.values()),
        "messages": watched.messages,
        "chose_again": len(again),
        "exit_changes": len(changes),
        "exit_changes_after_message": len(changed_heard),
        "change_rate_after_message": len(changed_heard) / len(heard) if heard else None,
        "change_rate_unheard": (len(changes) - len(changed_heard)) / unheard if unheard else None,
    }
    for name in settings.room.exit_names:
        of_exit = {(r, c) for exit_, r, c in settings.exit_list if exit_ == name}
        row[f"escaped_{name}"] = sum(end[2] in of_exit for end in out.values())
    return row
