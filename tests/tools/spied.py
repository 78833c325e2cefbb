"""Episodes that are watched while they are played: what is counted here never reads an event."""

import csv
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import entropy, wasserstein_distance

import llm_coop_envs
from llm_coop_envs.treatments.regulator import SEAT

READERS = Path(llm_coop_envs.__file__).parent / "kbc" / "data" / "nyt_two_thirds_density_digitised.csv"
ABOVE_NASH = 0.1
"""From which place on prices are above Nash, where the settings name none."""
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
        forced: whether the study laid it down.
    """

    round: int
    agent: str
    chosen: float | None
    counted: float
    announced: float | None
    heard: tuple[float, ...]
    heard_somebody: bool
    heading: float | None
    forced: bool = False


@dataclass
class Watched:
    """What was seen of an episode from its seats.

    Attributes:
        forced: the rounds whose choices are not the players' own.
        begun: what everybody saw at the beginning.
        ended: what everybody saw when a round was over, by its number.
        stumbled: who named a step that is none.
    """

    env: object
    forced: tuple[int, ...] = ()
    choices: list[Choice] = field(default_factory=list)
    messages: int = 0
    rewards: Counter = field(default_factory=Counter)
    steps: list = field(default_factory=list)
    begun: dict = field(default_factory=dict)
    ended: dict = field(default_factory=dict)
    stumbled: set = field(default_factory=set)


def watch(
    env,
    scenario,
    pool,
    *,
    seed,
    spoiled=0.0,
    spoiled_counts=0.0,
    instead=0.0,
    forced=(),
    laid_down=None,
    worth=None,
    cut=None,
):
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
        laid_down: what counts in these rounds.
        worth: what counts for each value that is announced; by default the value.
        cut: what a study forces, as (players, rounds, the value of the pool, what records it when a round begins).
    """
    rng = np.random.default_rng(seed)
    watched = Watched(env, tuple(forced))
    values = list(pool)
    worth = worth or {value: _number(value, values) for value in values}
    _, infos = env.reset(seed=seed)
    cut_players, cut_rounds, cut_value, record = cut or ((), (), None, lambda env: None)
    record(env)
    watched.begun = {agent: info["slots"] for agent, info in infos.items() if agent != SEAT}
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
                if spoiled and rng.random() < spoiled:
                    actions[agent] = {"choice": 10**7}
                    watched.stumbled.add(agent)
            else:
                announced = said.get((number, agent))
                keeps = announced is not None and rng.random() < 0.5
                value = announced if keeps else values[rng.integers(len(values))]
                bad = rng.random() < spoiled
                is_cut = agent in cut_players and number in cut_rounds
                value = cut_value if is_cut else value
                actions[agent] = {"choice": 10**7 if bad else pool[value]}
                heard = _heard(scenario, slots[agent])
                fresh = heard if scenario != "kbc" else heard - before.get(agent, Counter())
                before[agent] = heard
                named = [_named(text, values) for text in fresh.elements()]
                pending[agent] = Choice(
                    round=number,
                    agent=agent,
                    chosen=None if bad or is_cut or number in forced else _number(value, values),
                    counted=laid_down if number in forced else spoiled_counts if bad else worth[value],
                    announced=None if announced is None else _number(announced, values),
                    heard=tuple(value for value in named if value is not None),
                    heard_somebody=bool(fresh),
                    heading=_number(slots[agent].target, values) if getattr(slots[agent], "target", None) else None,
                    forced=is_cut,
                )
                watched.choices.append(pending[agent])
        _, rewards, _, _, infos = env.step(actions)
        record(env)
        watched.rewards.update(rewards)
        watched.steps.append((phase, number, rewards, infos))
        if not env.agents or env.round != number:
            watched.ended[number] = {agent: info["slots"] for agent, info in infos.items() if agent != SEAT}
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


DECISION = ("mean", "target", "variance", "rsd", "modal_share", "unanimous", "n_winners", "mean_level")
DECISION += ("nyt_wasserstein", "nyt_total_variation")


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
        everybody = [choice.counted for choice in watched.choices if choice.round == number]
        target = float(settings.ratio) * sum(everybody) / len(everybody) + float(settings.offset)
        nearest = min(abs(value - target) for value in everybody)
        named = [choice.counted for choice in watched.choices if choice.round == number and not choice.forced]
        if not named:  # no other decision stands for the one that the study laid down
            row.update({f"{name}_{end}": None for name in DECISION})
            continue
        mean = sum(named) / len(named)
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
            **_distances_to_readers(named),
        }
        row.update({f"{name}_{end}": value for name, value in measures.items()})
    return row


def _distances_to_readers(named):
    """How far numbers are from those of the newspaper's readers, by SciPy."""
    lines = [line for line in READERS.read_text().splitlines() if not line.startswith("#")]
    readers = np.array([float(row["density"]) for row in csv.DictReader(lines)])
    readers /= readers.sum()
    shares = np.bincount(np.round(named).astype(int), minlength=101) / len(named)
    smooth = gaussian_filter1d(shares, 1.0, mode="constant", truncate=100.0)
    return {
        "nyt_wasserstein": wasserstein_distance(range(101), range(101), shares, readers),
        "nyt_total_variation": np.abs(smooth / smooth.sum() - readers).sum() / 2,
    }


def _are_held(places, settings, firms, ends):
    """Whether prices at these places between Nash (0) and joint profit (1) are held together, as the settings say."""
    half = 0.0
    if settings.prices == "grid":  # the grid price nearest to an end counts as that end
        steps = [settings.grids[i][1] - settings.grids[i][0] for i in firms]
        half = max(step / (b - a) for step, a, b in zip(steps, ends.nash, ends.joint, strict=True)) / 2
    low = ABOVE_NASH + half if settings.collusion_margin == "above_nash" else settings.collusion_margin
    near = max(places) - min(places) <= settings.collusion_tolerance + 1e-9
    return near and min(places) >= low - 1e-9 and max(places) <= 1 + half + 1e-9


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
    gains, positions, held, firms = [], [], [], []
    forced = {*watched.forced, *(choice.round for choice in watched.choices if choice.forced)}
    own = [number for number in sorted(prices) if number not in forced]
    for number in own:
        firms = sorted(prices[number])
        ends = settings.rivalry_among(firms).equilibria
        low, high = sum(ends.nash_profit) / len(firms), sum(ends.joint_profit) / len(firms)
        gains.append((sum(profits[number][i] for i in firms) / len(firms) - low) / (high - low))
        nash, joint = sum(ends.nash) / len(firms), sum(ends.joint) / len(firms)
        positions.append((sum(prices[number].values()) / len(firms) - nash) / (joint - nash))
        places = [(prices[number][i] - a) / (b - a) for i, a, b in zip(firms, ends.nash, ends.joint, strict=True)]
        held.append(_are_held(places, settings, firms, ends))
    runs = [(is_held, len(list(run))) for is_held, run in groupby(held)]
    window = settings.collusion_window or 200
    late = [place for number, place in zip(own, positions, strict=True) if 250 <= number <= 300]
    ends = settings.rivalry_among(firms).equilibria
    row = {
        "rounds": len(prices),
        "forced_rounds": len(forced),
        "messages": watched.messages,
        "end": watched.env.events[-1]["reason"],
        "firms": len(firms),
        "nash_price": sum(ends.nash) / len(firms),
        "joint_price": sum(ends.joint) / len(firms),
        "collusiveness_index": min(1.0, max(0.0, np.mean(late))) if len(prices) > 299 else None,
        "price_index_last": min(1.0, max(0.0, np.mean(positions[-50:]))),
        "monopoly_found": None,
        "optimal_rounds": None,
        "together_share": np.mean(held),
        "together_longest": max([length for is_held, length in runs if is_held], default=0),
        "together_from": own[-runs[-1][1]] if held[-1] else None,
        "window_round": next(
            (own[k + window - 1] for k in range(len(held) - window + 1) if all(held[k : k + window])), None
        ),
    }
    for i in range(settings.firms):
        last = [prices[number][i] for number in own[-50:] if i in prices[number]]
        row[f"mean_price_last_{i}"] = np.mean(last) if last else None
    for name, rounds in (("", own), ("_last", own[-50:])):
        row[f"profit_gain{name}"] = np.mean(gains[-len(rounds) :])
        row[f"mean_price{name}"] = np.mean([price for number in rounds for price in prices[number].values()])
        row[f"price_spread{name}"] = np.mean(
            [max(prices[number].values()) - min(prices[number].values()) for number in rounds]
        )
    return row


def count_evacuation(watched, settings):
    """What an evacuation comes to, from where people saw themselves and why they left."""
    assert [*watched.ended] == [*range(1, len(watched.ended) + 1)], "a round passed in which nobody was asked"
    ends, chose, again, knocked = {}, set(), [], set()
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
            if slots.overtaken:
                knocked.add((agent, slots.round))
            if slots.left:
                ends.setdefault(agent, (slots.left, number, (slots.row, slots.col)))
    out = {agent: end for agent, end in ends.items() if end[0] == "out"}
    heard = [choice for choice in again if choice.heard_somebody]
    changed_heard = [choice for choice in changes if choice.heard_somebody]
    unheard = len(again) - len(heard)
    row = {
        "people": settings.people,
        "rounds": len(watched.ended),
        "escaped": len(out),
        "disabled": sum(end[0] == "hurt" for end in ends.values()),
        "taken_out": sum(end[0] == "gone" for end in ends.values()),
        "left_inside": settings.people - len(ends),
        "never_left": settings.people - len(out) - sum(end[0] == "gone" for end in ends.values()),
        "messages": watched.messages,
        "overtaken": len(knocked),
        "chose_again": len(again),
        "exit_changes": len(changes),
        "exit_changes_after_message": len(changed_heard),
        "change_rate_after_message": len(changed_heard) / len(heard) if heard else None,
        "change_rate_unheard": (len(changes) - len(changed_heard)) / unheard if unheard else None,
        **_count_walks(watched, settings, out),
    }
    loads = []
    for name in settings.room.exit_names:
        of_exit = {(r, c) for exit_, r, c in settings.exit_list if exit_ == name}
        row[f"escaped_{name}"] = sum(end[2] in of_exit for end in out.values())
        loads.append(row[f"escaped_{name}"] / len(of_exit))
    row["balance"] = entropy(loads) / math.log(len(loads)) if out else None
    # Whoever reaches an exit is out when the next round begins, or the last one is over.
    left_in = [min(number + 1, settings.rounds) for _, number, _ in out.values()]
    row["mean_round"] = np.mean(left_in) if out else None
    row["last_round"] = max(left_in, default=None)
    for number in range(5, 51, 5):
        by_then = sum(leaving <= number for leaving in left_in)
        row[f"escaped_round_{number}"] = by_then if number <= settings.rounds else None
    return row


def _count_walks(watched, settings, out):
    """What people's walks come to, from where they saw themselves when each round was over."""
    spent, stood, steps = 0, 0, Counter()
    before = watched.begun
    for _, after in sorted(watched.ended.items()):
        for agent, slots in before.items():
            if slots.left or (now := after.get(agent)) is None:
                continue
            moved = (slots.row, slots.col) != (now.row, now.col)
            spent, stood = spent + 1, stood + (not moved)
            steps[agent] += moved
        before = {**before, **after}

    def fewest(agent, cells):
        slots = watched.begun[agent]
        apart = [(abs(slots.row - row), abs(slots.col - col)) for row, col in cells]
        return min(max(pair) if settings.diagonals else sum(pair) for pair in apart)

    cells = [(row, col) for _, row, col in settings.exit_list]
    scores = {
        agent: 0.0 if agent not in out or agent in watched.stumbled else fewest(agent, cells) / steps[agent]
        for agent, slots in before.items()
        if slots.left != "gone" and agent not in {choice.agent for choice in watched.choices if choice.forced}
    }
    detours = [steps[agent] / fewest(agent, [end[2]]) for agent, end in out.items()]
    return {
        "waiting": stood / settings.people,
        "waiting_share": stood / spent,
        "detour": np.mean(detours) if detours else None,
        "path_score": np.mean([*scores.values()]) if scores else None,
    }
