"""The view fan of the published study, cell by cell with loops, to check the fast form against."""

import math


def line(start, end, desks):
    """Bresenham's line with a running error; ends with the first desk."""
    (row, col), cells = start, []
    down, right = abs(end[0] - row), abs(end[1] - col)
    step_row = 1 if end[0] >= row else -1
    step_col = 1 if end[1] >= col else -1
    error = max(down, right) / 2
    while True:
        cells.append((row, col))
        if (row, col) in desks or (row, col) == end:
            return cells
        if down > right:
            error -= right
            if error < 0:
                col += step_col
                error += down
            row += step_row
        else:
            error -= down
            if error < 0:
                row += step_row
                error += right
            col += step_col


def fan(position, exit_cell, rows, cols, desks=frozenset()):
    """The set of cells seen from `position` towards `exit_cell`."""
    goal = exit_cell[0] - position[0], exit_cell[1] - position[1]
    seen = set()
    for ray in range(101):
        down = math.cos(2 * math.pi / 100 * ray) * 10
        right = math.sin(2 * math.pi / 100 * ray) * 10
        lengths = math.sqrt(down**2 + right**2) * math.sqrt(goal[0] ** 2 + goal[1] ** 2)
        if lengths == 0:
            continue
        cosine = max(-1.0, min(1.0, (down * goal[0] + right * goal[1]) / lengths))
        if math.degrees(math.acos(cosine)) <= 45:
            end = position[0] + round(down), position[1] + round(right)
            seen.update(line(position, end, desks))
    return {(row, col) for row, col in seen if 0 <= row < rows and 0 <= col < cols}
