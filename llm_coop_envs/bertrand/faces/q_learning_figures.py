"""Figures of Q-learning sessions, from their result folders."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.stored import load
from llm_coop_envs.baselines.q_learning.reproduce.published import figure_4
from llm_coop_envs.baselines.q_learning.reproduce.runs import SessionFolder, read_journal
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES
from llm_coop_envs.bertrand.faces import q_learning_strategies
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.curves import Curve, Level, Panel, draw_panels
from llm_coop_envs.render.charts.heatmap import HeatMap, draw_maps
from llm_coop_envs.render.charts.style import BLUE, PUBLISHED, VERMILION
from llm_coop_envs.reports.section import Drawing, FigureKind, NotDrawn
from llm_coop_envs.storage.folder import kind_of

HORIZON = 15
MOST_SETTINGS = 4


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """One folder of sessions.

    Attributes:
        folder: where.
        settings: the learner's settings as its plan holds them.
        gains: the profit gain of each finished session.
    """

    folder: Path
    settings: dict[str, Any]
    gains: tuple[float, ...]

    @property
    def cell(self) -> tuple[float, float] | None:
        """Learning rate and decay of exploration, if all firms share them."""
        pair = [_one(self.settings.get(name)) for name in ("alpha", "beta")]
        return None if None in pair else (float(pair[0] or 0), float(pair[1] or 0))


def is_sessions(folder: Path) -> bool:
    """Whether a folder holds Q-learning sessions, or folders that do."""
    return bool(_folders(folder))


def read_sessions(folder: Path) -> list[Sessions]:
    """The sessions of a folder and of the folders in it.

    Raises:
        RunError: a plan or a journal is damaged, or nothing is finished.
    """
    found = []
    for one in _folders(folder):
        settings = SessionFolder.open(one).manifest["settings"]
        gains = tuple(float(row["gain"]) for row in read_journal(one))
        if gains:
            found.append(Sessions(folder=one, settings=settings, gains=gains))
    if not found:
        raise RunError(f"{folder}: holds no finished session yet; run some first")
    return found


def figures(sessions: Sequence[Sessions]) -> list[FigureKind]:
    """The figures of sessions."""
    gains, answers = functools.partial(gain, sessions), functools.partial(responses, sessions)
    return [
        FigureKind(name="q-learning-gain", about="profit gain over learning rate and exploration", draw=gains),
        FigureKind(name="q-learning-responses", about="impulse responses to a price cut", draw=answers),
        *q_learning_strategies.figures([one.folder for one in sessions]),
    ]


def gain(sessions: Sequence[Sessions]) -> list[Drawing]:
    """The mean profit gain over learning rate and decay of exploration."""
    cells: dict[tuple[float, float], list[float]] = {}
    for one in sessions:
        if one.cell is not None:
            cells.setdefault(one.cell, []).extend(one.gains)
    alphas, betas = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    if len(cells) < 2:
        raise NotDrawn("it needs sessions at two or more learning rates or decays; run the study 'alpha_beta'")
    means = {cell: float(np.mean(values)) for cell, values in cells.items()}
    fewest, most = min(map(len, cells.values())), max(map(len, cells.values()))
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    maps = [_map("here", f"{count} sessions a cell", alphas, betas, means)]
    known = _earlier()
    beside = {cell: value for cell, value in known.items() if cell[0] in alphas and cell[1] in betas}
    source = ""
    if beside:
        maps.append(_map("compared with", "an earlier implementation in C", alphas, betas, beside))
        source = f" Right: {STUDIES['alpha_beta'].source}."
    return [
        Drawing(
            name="q_learning_gain",
            caption="Mean profit gain (0 at the Nash, 1 at the joint-profit price) of Q-learners, by learning rate "
            f"alpha and decay of exploration beta. Calvano et al. 2020 (AER) report 0.849 at alpha 0.15, beta 4e-6."
            f"{source}",
            alt="Coloured tables: the profit gain for each learning rate and decay of exploration.",
            figure=draw_maps(maps, x_label="beta (decay of exploration)", y_label="alpha", bar="profit gain"),
        )
    ]


def responses(sessions: Sequence[Sessions]) -> list[Drawing]:
    """How play goes on after one firm is forced to its static best reply."""
    if len(sessions) > MOST_SETTINGS:
        raise NotDrawn(f"there are {len(sessions)} settings; give the folder of one, such as {sessions[0].folder}")
    drawn = []
    for one in sessions:
        stored = load(one.folder)
        found = stored.answers("best_reply", horizon=HORIZON)
        nash, joint = (float(np.mean(getattr(stored.game.marks, name))) for name in ("nash", "joint"))
        several = len(sessions) > 1
        name = f"q_learning_responses_{one.folder.name}" if several else "q_learning_responses"
        periods = range(HORIZON + 1)
        curves = [
            Curve(
                label=f"deviating firm, here (Q-learning, {found.sessions} sessions)",
                x=periods,
                y=[found.before, *found.deviator.tolist()],
                color=VERMILION,
                marked=True,
            ),
            Curve(
                label="rival, here" if stored.game.firms == 2 else "rivals, here",
                x=periods,
                y=[found.before, *found.rival.tolist()],
                color=BLUE,
                marked=True,
                marker="s",
            ),
        ]
        source = ""
        known = figure_4()
        if stored.game.firms == 2 and abs(nash - known["nash"]) < 1e-3 and abs(joint - known["joint"]) < 1e-3:
            for who, key, marker in (("deviating firm", "deviator", "o"), ("rival", "rival", "s")):
                look: dict[str, Any] = {"color": PUBLISHED, "published": True, "marker": marker}
                curves.append(Curve(label=f"published, {who}", x=range(len(known[key])), y=known[key], **look))
            source = f" Dashed: {known['source']}."
        panel = Panel(
            title="Answer to a price cut",
            x_label="period (the firm deviates in period 1)",
            y_label="price",
            curves=curves,
            levels=[Level(value=nash, label="Nash"), Level(value=joint, label="joint")],
        )
        drawn.append(
            Drawing(
                name=name,
                caption="Prices after one firm is forced to its static best reply in period 1, mean over the states of "
                f"the limit cycle, firms and sessions; of {found.responses} deviations {100 * found.unprofitable:.0f}"
                f" % do not pay.{source}",
                alt="Line chart: prices of the deviating firm and of its rivals by period, with Nash and joint price.",
                figure=draw_panels([[panel]], size=(5.4, 3.6)),
            )
        )
    return drawn


def _folders(folder: Path) -> list[Path]:
    """The folders that hold sessions: this one, or those in it."""
    if _holds(folder):
        return [folder]
    return sorted(one for one in folder.iterdir() if one.is_dir() and _holds(one)) if folder.is_dir() else []


def _holds(folder: Path) -> bool:
    return kind_of(folder) == SessionFolder.kind


def _one(value: Any) -> float | None:
    """A number that holds for all firms."""
    values = set(value) if isinstance(value, list | tuple) else {value}
    only = values.pop() if len(values) == 1 else None
    return only if isinstance(only, int | float) else None


def _earlier() -> dict[tuple[float, float], float]:
    found = {}
    for variant in STUDIES["alpha_beta"].variants:
        alpha, beta = (_one(getattr(variant.settings, name)) for name in ("alpha", "beta"))
        if alpha is not None and beta is not None:
            found[alpha, beta] = variant.published["gain"]
    return found


def _map(
    title: str, note: str, alphas: Sequence[float], betas: Sequence[float], means: dict[tuple[float, float], float]
) -> HeatMap:
    return HeatMap(
        title=title,
        note=note,
        x=[f"{beta:g}" for beta in betas],
        y=[f"{alpha:g}" for alpha in alphas],
        values=[[means.get((alpha, beta)) for beta in betas] for alpha in alphas],
    )
