"""The published evacuation, one person at a time, written down straight from its description.

It shares nothing with the package: a dictionary of who stands where, loops, and the published stream of random
numbers.
"""

import functools
import math

import numpy as np
from reference_fan import fan

SIZE = 33
EXITS = [
    ((32, 15), "bottom"),
    ((15, 0), "left"),
    ((32, 16), "bottom"),
    ((16, 0), "left"),
    ((32, 17), "bottom"),
    ((17, 0), "left"),
    ((17, 32), "right"),
]
NAMES = ["bottom", "left", "right"]
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0), (0, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]


def distance(a, b):
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def is_open(cell):
    if cell in [where for where, _ in EXITS]:
        return True
    return 1 <= cell[0] <= SIZE - 2 and 1 <= cell[1] <= SIZE - 2


def place(people, rng):
    occupied = {}
    for person in range(people):
        while True:
            row = int(rng.integers(SIZE))
            col = int(rng.integers(SIZE))
            inside = 1 <= row <= SIZE - 2 and 1 <= col <= SIZE - 2
            if inside and (row, col) not in occupied:
                occupied[row, col] = person
                break
    return {person: cell for cell, person in occupied.items()}


@functools.cache
def visible(watcher, exit_cell):
    return fan(watcher, exit_cell, SIZE, SIZE)


def views(person, where, occupied):
    """Mean distance and mean number of people seen, per exit."""
    by_exit = {name: ([], []) for name in NAMES}
    for cell, name in EXITS:
        by_exit[name][0].append(distance(cell, where[person]))
        by_exit[name][1].append(len(visible(where[person], cell) & occupied))
    return {name: (np.mean(away), np.mean(seen)) for name, (away, seen) in by_exit.items()}


def play(seed, people, choose_exit, choose_move, speak, steps=51):
    """Play; return the trace.

    choose_exit(person, views, heard, round) -> name; choose_move(person, options, target, here, round) -> cell;
    speak(person, heard) -> text. The trace holds per round: positions after it, departures at its start, messages,
    and what each planner had heard when choosing.
    """
    rng = np.random.default_rng(seed)
    where = place(people, rng)
    remaining = list(range(people))
    target = {}
    trace = []
    for step in range(steps):
        left = []
        for index, (cell, _) in enumerate(EXITS):
            for person in list(remaining):
                if where[person] == cell:
                    remaining.remove(person)
                    del where[person]
                    left.append((person, index))
        rng.shuffle(remaining)
        planners = list(remaining) if step == 0 else [p for p in remaining if rng.random() < 0.2]
        messages = []

        def hear(person, messages=messages):
            near = [(distance(where[person], cell), speaker, text) for speaker, cell, text in messages]
            near = sorted(near, key=lambda item: item[0])
            return [(speaker, text) for away, speaker, text in near if away <= 5 and speaker != person]

        for person in planners:
            messages.append((person, where[person], speak(person, hear(person))))
        heard = {person: hear(person) for person in planners}
        standing = set(where.values())
        for person in planners:
            name = choose_exit(person, views(person, where, standing), heard[person], step + 1)
            cells = [cell for cell, label in EXITS if label == name]
            target[person] = min(cells, key=lambda cell: distance(cell, where[person]))
        groups = {}
        for person in remaining:
            groups.setdefault(target[person], []).append(person)
        occupied = set(where.values())
        for goal, members in groups.items():
            for person in sorted(members, key=lambda p: distance(where[p], goal)):
                own_cell = where[person]
                options = []
                for move in MOVES:
                    cell = own_cell[0] + move[0], own_cell[1] + move[1]
                    if move == (0, 0) or (is_open(cell) and cell not in occupied):
                        options.append(cell)
                where[person] = choose_move(person, options, goal, own_cell, step + 1)
                occupied.remove(own_cell)
                occupied.add(where[person])
        trace.append({"positions": dict(where), "left": left, "said": [(p, t) for p, _, t in messages], "heard": heard})
        if not remaining:
            break
    return trace
