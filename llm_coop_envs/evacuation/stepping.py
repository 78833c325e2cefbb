"""Many evacuations stepped at once, bit for bit as `env.EvacuationEnv` plays each of them.

The functions are plain Python over arrays, which the compiler turns into machine code. Each names the function whose
rule it is. Here a phase has no lists of people: `level` says in which of its steps each person moves. People, copies
and cells are records, because the compiler takes long for every array that is passed on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from llm_coop_envs.evacuation.movement import REACH
from llm_coop_envs.evacuation.room import MOVES, STAY, VIEW_RADIUS
from llm_coop_envs.util.compiled_stream import draw_below, draw_share, shuffle
from llm_coop_envs.util.compiling import compiled_in_place

#: What stands on a cell, as bits.
PERSON, BLOCKED = 1, 2
#: What is due next in a copy; the first two are the phases.
EXIT, MOVE, SETTLE, ROUND = 0, 1, 2, 3
#: The cells around a person that it may see, row by row, and three rows of them to a word of 64 bits.
VIEW_SIDE = 2 * VIEW_RADIUS + 1
VIEW_WORDS = VIEW_SIDE // 3

_WAYS = len(MOVES)
# What becomes of a wish to move.
_OPEN, _MOVES, _STAYS = 0, 1, 2
_VIEW_ROW = np.uint64(2**VIEW_SIDE - 1)
_SECOND, _THIRD = np.uint64(VIEW_SIDE), np.uint64(2 * VIEW_SIDE)
_0, _1, _2, _4, _56, _64 = (np.uint64(k) for k in (0, 1, 2, 4, 56, 64))
_TWOS, _FOURS, _BYTES, _SUM = (np.uint64(k * (2**64 // 255)) for k in (0x55, 0x33, 0x0F, 0x01))


def _records(**fields: str) -> np.dtype[Any]:
    """Records with fields of these kinds, each kind with the names of its fields."""
    return np.dtype([(name, kind) for kind, names in fields.items() for name in names.split()], align=True)


#: The settings as numbers, see `EvacuationSettings`; `horizon` is 0 for none.
RULES = _records(
    f8="replan_probability reward_inside reward_out lost",
    i8="width rows cols exits rounds last_round horizon",
    bool="walks together removal_lag extra_round all_plan_first sees_desks can_be_hurt disabled_block "
    "hides_people hides_last_move",
)
#: A cell of the padded grid: its index in tables of the room's T cells, row and column, its index among exit cells
#: (-1: none), `BLOCKED` or 0, and whether somebody may start on it.
CELLS = _records(i4="index row col exit_at", u1="ground", bool="may_start")
#: A move: the difference of padded cells, and whether the settings allow it.
STEPS = _records(i4="cells", bool="allowed")
#: What never changes of a person, see `injury.Attributes` and `features.FeatureMaker.persona`.
TRAITS = _records(f8="level pressure_limit count_limit", f4="strong confident")
#: A person, see `crowd.Crowd`; `level` is the step of this phase in which it is on turn, -1 for none.
PEOPLE = _records(f8="reward", i4="cell previous heading target counts level", bool="inside plans overtaken")
#: A copy: the number inside, round and steps of the episode, what is due after this phase, the phase, which of its
#: steps comes next, and how many it has.
GAMES = _records(i8="count round cycles due phase step steps")
#: Room to work in for each person, and for each cell: the first has 0 between calls, the others -1.
PEOPLE_WORK, CELLS_WORK = _records(f8="press", i8="wish fate"), _records(i4="highest occupant winner")


class RoomTables(NamedTuple):
    """The room and the settings; P people, E exit cells, G exits, T cells of the room.

    Tables of float32 hold what `features.FeatureMaker` makes of their index.

    Attributes:
        rules: one of `RULES`.
        cells: (grid,) `CELLS`.
        start_cells: padded cells that are dealt in each episode; empty where cells are drawn.
        steps: (9,) `STEPS`.
        exit_cells: (E,) padded cells.
        targets: (T, G) the index of each exit's nearest cell.
        ways: (T, E) the moves that lead nearer to an exit cell, counted from 1, four bits for each, the nearest lowest.
        nearest_exit: (T,) the exit of the nearest exit cell.
        views: (T, E + 1) which of `view_masks` is seen towards each exit cell, exit by exit, and which are the cells
            around.
        view_starts: (G + 1,) where the columns of each exit begin.
        view_masks: (views, VIEW_WORDS) the cells of a view.
        desks: (words, rows of the padded grid) the desks that count as people, by column.
        traits: (P,) `TRAITS`.
        site_features: (T, 3 + G) row, column, distances of the exits and of the nearest exit cell.
        down: (2 rows - 1,) of rows down, the fewest first.
        right: (2 cols - 1,) of columns to the right, the fewest first.
        round_shares: (rounds + 2,) of rounds.
        seen_shares: (G, numbers) of people seen towards all cells of an exit together.
        around_shares: (numbers,) of people in the cells around.
    """

    rules: Any
    cells: Any
    start_cells: Any
    steps: Any
    exit_cells: Any
    targets: Any
    ways: Any
    nearest_exit: Any
    views: Any
    view_starts: Any
    view_masks: Any
    desks: Any
    traits: Any
    site_features: Any
    down: Any
    right: Any
    round_shares: Any
    seen_shares: Any
    around_shares: Any


class CrowdArrays(NamedTuple):
    """The people of one copy, or of C copies with one more axis in front.

    Attributes:
        game: one of `GAMES`.
        people: (P,) `PEOPLE`.
        queue: (P,) of which the first `count` are the people inside, in this round's order.
        seen: (P, G + 1) features: people seen towards the exits, people around.
        grid: (grid,) what stands on the padded cells, in bits.
        streams: (2, 5) the episode's generator, and that of conflicts.
    """

    game: Any
    people: Any
    queue: Any
    seen: Any
    grid: Any
    streams: Any


class Work(NamedTuple):
    """Room to work in; nothing in it outlives a call.

    Attributes:
        people: (P,) `PEOPLE_WORK`.
        cells: (grid,) `CELLS_WORK`.
        order: (P,) people.
        keys: (P,) numbers to be sorted.
        ranks: (E,) the order of groups; -1 between calls.
        heads: (words, rows of the padded grid) where somebody stands, by column.
        solid: (words, rows of the padded grid) the same with desks that count.
        window: (VIEW_WORDS,) the cells around a person.
        totals: (G,)
    """

    people: Any
    cells: Any
    order: Any
    keys: Any
    ranks: Any
    heads: Any
    solid: Any
    window: Any
    totals: Any


# The rules of one round.


@compiled_in_place
def place_people(plan: Any, crowd: Any) -> None:
    """`placement.random_cells` or `placement.cells_below_desks`."""
    rules, people, count = plan.rules, crowd.people, len(crowd.people)
    if len(plan.start_cells):
        for p in range(count):
            crowd.queue[p] = plan.start_cells[p]
        shuffle(crowd.streams[0], crowd.queue, count)
        for p in range(count):
            people[p].cell = crowd.queue[count - 1 - p]
            crowd.grid[people[p].cell] = PERSON
    placed = count if len(plan.start_cells) else 0
    while placed < count:
        row = draw_below(crowd.streams[0], rules.rows)
        col = draw_below(crowd.streams[0], rules.cols)
        cell = (row + VIEW_RADIUS) * rules.width + col + VIEW_RADIUS
        if plan.cells[cell].may_start and not crowd.grid[cell]:
            people[placed].cell = cell
            crowd.grid[cell] = PERSON
            placed += 1
    for p in range(count):
        crowd.queue[p] = p


@compiled_in_place
def remove(crowd: Any, person: Any) -> None:
    """`Crowd.remove` of one person, but for the queue."""
    person.inside = person.plans = False
    crowd.grid[person.cell] &= ~PERSON


@compiled_in_place
def shorten_queue(crowd: Any) -> None:
    """Keep those in the queue who are inside."""
    length = 0
    for k in range(crowd.game.count):
        p = crowd.queue[k]
        if crowd.people[p].inside:
            crowd.queue[length] = p
            length += 1
    crowd.game.count = length


@compiled_in_place
def let_out(plan: Any, crowd: Any) -> Any:
    """`EvacuationEnv._let_out`; whether anybody got out."""
    earlier = crowd.game.count
    for k in range(earlier):
        person = crowd.people[crowd.queue[k]]
        if plan.cells[person.cell].exit_at >= 0:
            person.reward += plan.rules.reward_out
            remove(crowd, person)
    shorten_queue(crowd)
    return crowd.game.count < earlier


@compiled_in_place
def record_departures(crowd: Any) -> None:
    """`EvacuationEnv._record_departures`."""
    crowd.game.round += 1
    for p in range(len(crowd.people)):
        crowd.people[p].plans = crowd.people[p].overtaken = False


@compiled_in_place
def injure(plan: Any, crowd: Any, work: Any) -> None:
    """`Crowd._apply_injuries` of the active rule: `injury.pressure` and `injury.crush` of everybody inside."""
    count, people, queue = crowd.game.count, crowd.people, crowd.queue
    for k in range(count):
        work.cells[people[queue[k]].cell].occupant = queue[k]
    for k in range(count):
        cell, level, press = people[queue[k]].cell, plan.traits[queue[k]].level, 0.0
        for row in range(-1, 2):
            for col in range(-1, 2):
                other = work.cells[cell + row * plan.rules.width + col].occupant
                if other >= 0:
                    press += plan.traits[other].level - level
        work.people[queue[k]].press = press
    for k in range(count):
        person, traits = people[queue[k]], plan.traits[queue[k]]
        work.cells[person.cell].occupant = -1
        if work.people[queue[k]].press > traits.pressure_limit:
            person.counts += 1
            person.overtaken, person.plans = person.counts < traits.count_limit, False
            if person.counts == traits.count_limit:
                person.reward += plan.rules.lost
                remove(crowd, person)
                if plan.rules.disabled_block:
                    crowd.grid[person.cell] = PERSON | BLOCKED
    shorten_queue(crowd)


@compiled_in_place
def open_round(plan: Any, crowd: Any, work: Any) -> Any:
    """`EvacuationEnv._open_round`; whether the episode is over."""
    rules, game, people, played = plan.rules, crowd.game, crowd.people, crowd.game.round
    has_left = rules.removal_lag and played <= rules.rounds and let_out(plan, crowd)
    if game.count == 0:
        if has_left:
            record_departures(crowd)
        return True
    if played == rules.last_round:
        for k in range(game.count):
            people[crowd.queue[k]].reward += rules.lost
        if rules.removal_lag and not rules.extra_round:
            record_departures(crowd)
        return True
    game.round = played + 1
    shuffle(crowd.streams[0], crowd.queue, game.count)
    everybody = played == 0 and rules.all_plan_first
    for k in range(game.count):
        person = people[crowd.queue[k]]
        person.overtaken = False
        person.plans = everybody or draw_share(crowd.streams[0]) < rules.replan_probability
    if rules.can_be_hurt:
        injure(plan, crowd, work)
    return False


@compiled_in_place
def send_undecided(plan: Any, crowd: Any) -> None:
    """`Crowd.send_undecided`."""
    for k in range(crowd.game.count):
        person = crowd.people[crowd.queue[k]]
        if person.heading < 0:
            index = plan.cells[person.cell].index
            person.heading = plan.nearest_exit[index]
            person.target = plan.targets[index, person.heading]


@compiled_in_place
def sort_numbers(numbers: Any, count: int) -> None:
    """Sort the first numbers (Shell 1959)."""
    gap = count // 2
    while gap:
        for k in range(gap, count):
            number, rank = numbers[k], k
            while rank >= gap and numbers[rank - gap] > number:
                numbers[rank] = numbers[rank - gap]
                rank -= gap
            numbers[rank] = number
        gap = 1 if gap == 2 else gap * 5 // 11


@compiled_in_place
def sort_movers(plan: Any, crowd: Any, work: Any) -> Any:
    """`movement.move_order` of `Crowd._movers`, to `work.order`; how many there are."""
    groups, count, total = 0, 0, len(crowd.people)
    span = plan.rules.rows * plan.rules.rows + plan.rules.cols * plan.rules.cols
    for k in range(crowd.game.count):
        person = crowd.people[crowd.queue[k]]
        if not person.overtaken:
            if work.ranks[person.target] < 0:
                work.ranks[person.target] = groups
                groups += 1
            # Group, then distance, then the shuffled order, in one number.
            stand, goal = plan.cells[person.cell], plan.cells[plan.exit_cells[person.target]]
            down, right = goal.row - stand.row, goal.col - stand.col
            away = np.int64(down * down + right * right)
            work.keys[count] = (work.ranks[person.target] * span + away) * total + k
            count += 1
    for e in range(len(work.ranks)):
        work.ranks[e] = -1
    sort_numbers(work.keys, count)
    for k in range(count):
        work.order[k] = crowd.queue[work.keys[k] % total]
    return count


@compiled_in_place
def divide_movers(plan: Any, crowd: Any, work: Any, count: int) -> Any:
    """`movement.move_levels` of the people in `work.order`; how many levels there are."""
    levels = 0
    for k in range(count):
        person = crowd.people[work.order[k]]
        level = 0
        for row in range(-REACH, REACH + 1):
            for col in range(-REACH, REACH + 1):
                level = max(level, work.cells[person.cell + row * plan.rules.width + col].highest)
        work.cells[person.cell].highest = level + 1
        person.level = level
        levels = max(levels, level + 1)
    for k in range(count):
        work.cells[crowd.people[work.order[k]].cell].highest = 0
    return levels


@compiled_in_place
def arrive(crowd: Any, person: Any, cell: int) -> None:
    """`Crowd._arrive` of one person who moves."""
    crowd.grid[person.cell] &= ~PERSON
    crowd.grid[cell] |= PERSON
    person.previous, person.cell = person.cell, cell


@compiled_in_place
def wish(plan: Any, crowd: Any, person: Any) -> Any:
    """The cell that a person walks to: of `movement.walk_one_by_one`, or of `conflicts.walking_wishes`."""
    cell, following = np.int64(person.cell), np.int64(person.cell)
    ways = plan.ways[plan.cells[cell].index, person.target]
    while ways:
        beside = cell + plan.steps[(ways & 15) - 1].cells
        stands = crowd.grid[beside]
        if stands == 0:
            return beside
        if stands == PERSON and plan.rules.together and following == cell:
            following = beside
        ways >>= 4
    return following


@compiled_in_place
def settle_moves(crowd: Any, work: Any) -> None:
    """`conflicts.settle_moves` of everybody inside."""
    people, hopes, cells, order, count = crowd.people, work.people, work.cells, work.order, 0
    for p in range(len(people)):
        if people[p].inside:
            hopes[p].fate = _OPEN
            cells[people[p].cell].occupant = p
            order[count] = p
            count += 1
    shuffle(crowd.streams[1], order, count)
    for k in range(count):
        wished = hopes[order[k]].wish
        if wished != people[order[k]].cell:
            cells[wished].winner = order[k]
    for k in range(count):
        # Follow the queue in front of a person to its end, which decides for everybody in it.
        first = last = order[k]
        fate = hopes[last].fate
        while fate == _OPEN:
            wished = hopes[last].wish
            occupant_ahead = cells[wished].occupant
            if wished == people[last].cell or cells[wished].winner != last or occupant_ahead == first:
                fate = _STAYS  # it wants to, somebody else was drawn, or it is a ring
            elif occupant_ahead < 0:
                fate = _MOVES
            else:
                last = occupant_ahead
                fate = hopes[last].fate
        p = first
        while hopes[p].fate == _OPEN:
            hopes[p].fate = fate
            if p != last:
                p = cells[hopes[p].wish].occupant
    for k in range(count):
        cells[people[order[k]].cell].occupant = -1
        cells[hopes[order[k]].wish].winner = -1
        if hopes[order[k]].fate == _MOVES:
            crowd.grid[people[order[k]].cell] &= ~PERSON
    for k in range(count):
        if hopes[order[k]].fate == _MOVES:
            person, wished = people[order[k]], hopes[order[k]].wish
            crowd.grid[wished] |= PERSON
            person.previous, person.cell = person.cell, wished


@compiled_in_place
def walk(plan: Any, crowd: Any, work: Any) -> None:
    """`Crowd.walk`."""
    if plan.rules.together:
        for k in range(crowd.game.count):
            p = crowd.queue[k]
            person = crowd.people[p]
            work.people[p].wish = person.cell if person.overtaken else wish(plan, crowd, person)
        settle_moves(crowd, work)
    else:
        for k in range(sort_movers(plan, crowd, work)):
            person = crowd.people[work.order[k]]
            cell = wish(plan, crowd, person)
            if cell != person.cell:
                arrive(crowd, person, cell)


@compiled_in_place
def begin_phase(plan: Any, crowd: Any, work: Any, phase: int) -> Any:
    """Say in which of the phase's steps each person is on turn; whether anybody is (`Crowd.move_levels`)."""
    game, has_levels = crowd.game, phase == MOVE and not plan.rules.together
    game.phase, game.step, game.steps = phase, 0, 0
    for p in range(len(crowd.people)):
        person = crowd.people[p]
        is_on_turn = person.plans if phase == EXIT else person.inside and not person.overtaken
        person.level = -1
        if is_on_turn and not has_levels:
            person.level = 0
            game.steps = 1
    if has_levels:
        game.steps = divide_movers(plan, crowd, work, sort_movers(plan, crowd, work))
    return game.steps > 0


@compiled_in_place
def proceed(plan: Any, crowd: Any, work: Any) -> Any:
    """`EvacuationEnv._next_stage` up to one with somebody on turn; whether the episode is over."""
    game = crowd.game
    while True:
        if game.due == ROUND:
            if open_round(plan, crowd, work):
                return True
            if not plan.rules.hides_people:
                look(plan, crowd, work)
            game.due = EXIT
        if game.due == EXIT:
            game.due, phase = MOVE, game.phase
            if begin_phase(plan, crowd, work, EXIT):
                return False
            game.phase = phase
        if game.due == MOVE:
            game.due = SETTLE
            send_undecided(plan, crowd)
            if plan.rules.walks:
                walk(plan, crowd, work)
            elif begin_phase(plan, crowd, work, MOVE):
                return False
        for k in range(game.count):
            crowd.people[crowd.queue[k]].reward += plan.rules.reward_inside
        if not plan.rules.removal_lag:
            let_out(plan, crowd)
        game.due = ROUND


# Choices.


@compiled_in_place
def is_possible(plan: Any, crowd: Any, person: Any, way: int) -> Any:
    """`movement.free_moves`, or `movement.open_moves` where all move at once, of one person and move."""
    step = plan.steps[way]
    stands = crowd.grid[person.cell + step.cells]
    return way == STAY or (step.allowed and not (stands & BLOCKED if plan.rules.together else stands))


@compiled_in_place
def apply_choices(plan: Any, crowd: Any, work: Any, choices: Any, illegal: Any) -> None:
    """`Crowd.declare` or `Crowd.move` of those on turn; people of one level are too far apart to meet."""
    rules, game = plan.rules, crowd.game
    for p in range(len(choices)):
        person, choice = crowd.people[p], choices[p]
        work.people[p].wish = person.cell
        if person.level != game.step:
            continue
        if game.phase == EXIT:
            index = plan.cells[person.cell].index
            if choice < 0 or choice >= rules.exits:
                illegal[p] = True
                choice = np.int64(person.heading if person.heading >= 0 else plan.nearest_exit[index])
            person.heading, person.target = choice, plan.targets[index, choice]
        else:
            way = choice - rules.exits
            if way < 0 or way >= _WAYS or not is_possible(plan, crowd, person, way):
                illegal[p] = True
            elif rules.together:
                work.people[p].wish = person.cell + plan.steps[way].cells
            elif way != STAY:
                arrive(crowd, person, person.cell + plan.steps[way].cells)
    if game.phase == MOVE and rules.together:
        settle_moves(crowd, work)


@compiled_in_place
def mask_choices(plan: Any, crowds: Any, masks: Any) -> None:
    """Write which choices are legal, (C, P, choices); who is not on turn has the first one."""
    exits = plan.rules.exits
    for c in range(len(masks)):
        crowd = CrowdArrays(
            crowds.game[c], crowds.people[c], crowds.queue[c], crowds.seen[c], crowds.grid[c], crowds.streams[c]
        )
        for p in range(len(crowd.people)):
            person = crowd.people[p]
            is_on_turn = person.level == crowd.game.step
            for choice in range(masks.shape[2]):
                if not is_on_turn:
                    masks[c, p, choice] = choice == 0
                elif crowd.game.phase == EXIT:
                    masks[c, p, choice] = choice < exits
                else:
                    masks[c, p, choice] = choice >= exits and is_possible(plan, crowd, person, choice - exits)


# What is seen.


@compiled_in_place
def count_bits(word: Any) -> Any:
    """The number of ones (the compiler knows this pattern, and uses the processor's instruction)."""
    word = word - ((word >> _1) & _TWOS)
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    return np.int64((((word + (word >> _4)) & _BYTES) * _SUM) >> _56)


@compiled_in_place
def take_view(bits: Any, line: int, col: int, window: Any) -> None:
    """Copy the cells around a padded row and column out of rows of bits."""
    first = col - VIEW_RADIUS
    shift = np.uint64(first & 63)
    lines = bits[first >> 6, line - VIEW_RADIUS : line + VIEW_RADIUS + 1]
    if (first & 63) + VIEW_SIDE <= 64:
        for k in range(VIEW_WORDS):
            upper, middle, lower = lines[3 * k] >> shift, lines[3 * k + 1] >> shift, lines[3 * k + 2] >> shift
            window[k] = (upper & _VIEW_ROW) | (middle & _VIEW_ROW) << _SECOND | (lower & _VIEW_ROW) << _THIRD
    else:
        others = bits[(first >> 6) + 1, line - VIEW_RADIUS : line + VIEW_RADIUS + 1]
        for k in range(VIEW_WORDS):
            window[k] = _0
            for part in range(3):
                cut = lines[3 * k + part] >> shift | others[3 * k + part] << (_64 - shift)
                window[k] |= (cut & _VIEW_ROW) << np.uint64(VIEW_SIDE * part)


@compiled_in_place
def count_seen(window: Any, mask: Any) -> Any:
    """The number of people in a part of the view."""
    seen = 0
    for k in range(VIEW_WORDS):
        seen += count_bits(window[k] & mask[k])
    return seen


@compiled_in_place
def look(plan: Any, crowd: Any, work: Any) -> None:
    """`Crowd._update_sight`, as features."""
    exits, last = plan.rules.exits, len(plan.views[0]) - 1
    for word in range(len(work.heads)):
        for line in range(work.heads.shape[1]):
            work.heads[word, line] = _0
            work.solid[word, line] = plan.desks[word, line]
    for p in range(len(crowd.people)):
        cell = crowd.people[p].cell
        if crowd.grid[cell] & PERSON:
            line, col = plan.cells[cell].row + VIEW_RADIUS, plan.cells[cell].col + VIEW_RADIUS
            bit = _1 << np.uint64(col & 63)
            work.heads[col >> 6, line] |= bit
            work.solid[col >> 6, line] |= bit
    for k in range(crowd.game.count):
        p = crowd.queue[k]
        stand, seen = plan.cells[crowd.people[p].cell], crowd.seen[p]
        line, col, views = stand.row + VIEW_RADIUS, stand.col + VIEW_RADIUS, plan.views[stand.index]
        take_view(work.solid, line, col, work.window)
        for exit_ in range(exits):
            total = 0
            for e in range(plan.view_starts[exit_], plan.view_starts[exit_ + 1]):
                total += count_seen(work.window, plan.view_masks[views[e]])
            seen[exit_] = plan.seen_shares[exit_, total]
        if plan.rules.sees_desks:
            take_view(work.heads, line, col, work.window)
        seen[exits] = plan.around_shares[count_seen(work.window, plan.view_masks[views[last]])]


@compiled_in_place
def show(plan: Any, crowd: Any, is_over: bool, shown: Any, rows: Any) -> None:
    """`features.FeatureMaker.matrix`, and turn and phase, of the people in `shown`; zeros for others."""
    rules, game, exits = plan.rules, crowd.game, plan.rules.exits
    for p in range(len(rows)):
        row, person, traits = rows[p], crowd.people[p], plan.traits[p]
        if not shown[p]:
            for column in range(len(row)):
                row[column] = 0.0
            continue
        stand, fixed = plan.cells[person.cell], plan.site_features[plan.cells[person.cell].index]
        row[0], row[1] = fixed[0], fixed[1]
        row[2] = row[3] = row[4] = row[5] = 0.0
        if person.previous >= 0 and not rules.hides_last_move:
            origin = plan.cells[person.previous]
            row[2], row[3] = stand.row - origin.row, stand.col - origin.col
        if person.heading >= 0:
            goal = plan.cells[plan.exit_cells[person.target]]
            row[4] = plan.down[goal.row - stand.row + rules.rows - 1]
            row[5] = plan.right[goal.col - stand.col + rules.cols - 1]
        for exit_ in range(exits):
            row[6 + exit_] = fixed[2 + exit_]
            row[6 + exits + exit_] = crowd.seen[p, exit_]
            row[6 + 2 * exits + exit_] = person.heading == exit_
        at = 6 + 3 * exits
        row[at], row[at + 1] = fixed[2 + exits], crowd.seen[p, exits]
        row[at + 2], row[at + 3] = person.plans, person.overtaken
        row[at + 4], row[at + 5] = traits.strong, traits.confident
        row[at + 6] = plan.round_shares[game.round]
        at += 7
        for way in range(_WAYS):
            if way != STAY:
                row[at] = plan.steps[way].allowed and not crowd.grid[person.cell + plan.steps[way].cells]
                at += 1
        if not rules.walks:
            row[at] = not is_over and person.level == game.step
            row[at + 1], row[at + 2] = game.phase == EXIT, game.phase == MOVE


# What is played.


@compiled_in_place
def begin_episode(plan: Any, crowd: Any) -> None:
    """`Crowd` with a new generator."""
    for cell in range(len(crowd.grid)):
        crowd.grid[cell] = plan.cells[cell].ground
    place_people(plan, crowd)
    for p in range(len(crowd.people)):
        person = crowd.people[p]
        person.previous = person.heading = -1
        person.target = person.counts = 0
        person.inside = True
        person.plans = person.overtaken = False
        for column in range(crowd.seen.shape[1]):
            crowd.seen[p, column] = -1.0 if plan.rules.hides_people else 0.0
    game = crowd.game
    game.count, game.round, game.cycles, game.due, game.phase = len(crowd.people), 0, 0, ROUND, EXIT


@compiled_in_place
def play_copies(plan: Any, crowds: Any, work: Any, copies: Any, is_new: bool, choices: Any, played: Any) -> None:
    """Play a step of some copies, or begin a new episode in them.

    Args:
        plan: a `RoomTables`.
        crowds: a `Crowd` of all copies; where episodes begin, with new generators.
        work: a `Work`.
        copies: (copies,) which of them.
        is_new: whether new episodes begin.
        choices: (C, P), not read then.
        played: what is written: observations, (C, P, columns), and as in `wrappers.batch.Played`, but not of new
            episodes, rewards, illegal, terminations, truncations and over.
    """
    observations, rewards, illegal, terminations, truncations, over = played
    for c in copies:
        crowd = CrowdArrays(
            crowds.game[c], crowds.people[c], crowds.queue[c], crowds.seen[c], crowds.grid[c], crowds.streams[c]
        )
        game, people, was_inside = crowd.game, crowd.people, terminations[c]
        if is_new:
            begin_episode(plan, crowd)
        else:
            apply_choices(plan, crowd, work, choices[c], illegal[c])
            game.cycles += 1
            game.step += 1
        for p in range(len(people)):
            people[p].reward = 0.0
            was_inside[p] = people[p].inside
        is_decided = (is_new or game.step == game.steps) and proceed(plan, crowd, work)
        is_cut = not is_decided and game.cycles == plan.rules.horizon and not is_new
        show(plan, crowd, is_decided or is_cut, was_inside, observations[c])
        over[c] = is_decided or is_cut
        for p in range(len(people)):
            rewards[c, p] = people[p].reward
            truncations[c, p] = is_cut and people[p].inside
            terminations[c, p] = was_inside[p] and (is_decided or not people[p].inside)
