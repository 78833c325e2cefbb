"""Figures of Q-learning sessions, drawn from their run folders."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.baselines.q_learning.reproduce.published import figure_4
from llm_coop_envs.baselines.q_learning.reproduce.runs import SessionFolder, load_run, read_journal
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES
from llm_coop_envs.bertrand.faces import q_learning_strategies
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.heatmap import HeatMap, draw_maps
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Level, Panel
from llm_coop_envs.render.charts.style import BLUE, PUBLISHED, VERMILION
from llm_coop_envs.reports.figures import FolderKind
from llm_coop_envs.reports.section import Drawing, FigureKind, NotDrawn
from llm_coop_envs.storage.folder import kind_of

HORIZON = 15
MOST_SETTINGS = 4


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """One folder of sessions.

    Attributes:
        folder: the folder.
        settings: the learners' settings, as in the manifest.
        gains: the profit gain of each finished session.
    """

    folder: Path
    settings: dict[str, Any]
    gains: tuple[float, ...]

    @property
    def cell(self) -> tuple[float, float] | None:
        """Learning rate and decay of exploration; `None` if firms differ in one of them."""
        pair = [_shared_number(self.settings.get(name)) for name in ("alpha", "beta")]
        return None if None in pair else (float(pair[0] or 0), float(pair[1] or 0))


def is_sessions(folder: Path) -> bool:
    """Whether a folder is a run of Q-learning sessions, or contains such folders."""
    return bool(_folders(folder))


def read_sessions(folder: Path) -> list[Sessions]:
    """Read the sessions of a folder, or of the folders in it.

    Raises:
        RunError: a plan or a journal is damaged, or nothing is finished.
    """
    sessions = []
    for session_folder in _folders(folder):
        settings = SessionFolder.open(session_folder).manifest["settings"]
        gains = tuple(float(row["gain"]) for row in read_journal(session_folder))
        if gains:
            sessions.append(Sessions(folder=session_folder, settings=settings, gains=gains))
    if not sessions:
        raise RunError(f"{folder}: holds no finished session yet; run some first")
    return sessions


def figures(sessions: Sequence[Sessions]) -> list[FigureKind]:
    """List the figures of sessions."""
    gains, answers = functools.partial(gain, sessions), functools.partial(responses, sessions)
    return [
        FigureKind(name="q-learning-gain", about="profit gain over learning rate and exploration", draw=gains),
        FigureKind(name="q-learning-responses", about="impulse responses to a price cut", draw=answers),
        *q_learning_strategies.figures([folder_sessions.folder for folder_sessions in sessions]),
    ]


def gain(sessions: Sequence[Sessions]) -> list[Drawing]:
    """Draw the mean profit gain over learning rate and decay of exploration."""
    cells: dict[tuple[float, float], list[float]] = {}
    for folder_sessions in sessions:
        if folder_sessions.cell is not None:
            cells.setdefault(folder_sessions.cell, []).extend(folder_sessions.gains)
    alphas, betas = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    if len(cells) < 2:
        raise NotDrawn("it needs sessions at two or more learning rates or decays; run the study 'alpha_beta'")
    means = {cell: float(np.mean(values)) for cell, values in cells.items()}
    fewest, largest = min(map(len, cells.values())), max(map(len, cells.values()))
    count = f"{fewest}" if fewest == largest else f"{fewest} to {largest}"
    maps = [_map("here", f"{count} sessions a cell", alphas, betas, means)]
    earlier = _published_gains()
    beside = {cell: value for cell, value in earlier.items() if cell[0] in alphas and cell[1] in betas}
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
    """Draw how play continues after one firm is forced to its static best reply."""
    if len(sessions) > MOST_SETTINGS:
        raise NotDrawn(f"there are {len(sessions)} settings; give the folder of one, such as {sessions[0].folder}")
    drawn = []
    for folder_sessions in sessions:
        stored = load_run(folder_sessions.folder)
        summary = stored.answers("best_reply", horizon=HORIZON)
        nash, joint = (float(np.mean(getattr(stored.game.equilibria, name))) for name in ("nash", "joint"))
        several = len(sessions) > 1
        name = f"q_learning_responses_{folder_sessions.folder.name}" if several else "q_learning_responses"
        periods = range(HORIZON + 1)
        curves = [
            Curve(
                label=f"deviating firm, here (Q-learning, {summary.sessions} sessions)",
                x=periods,
                y=[summary.before, *summary.deviator.tolist()],
                color=VERMILION,
                marked=True,
            ),
            Curve(
                label="rival, here" if stored.game.firms == 2 else "rivals, here",
                x=periods,
                y=[summary.before, *summary.rival.tolist()],
                color=BLUE,
                marked=True,
                marker="s",
            ),
        ]
        source = ""
        published = figure_4()
        if stored.game.firms == 2 and abs(nash - published["nash"]) < 1e-3 and abs(joint - published["joint"]) < 1e-3:
            for firm, key, marker in (("deviating firm", "deviator", "o"), ("rival", "rival", "s")):
                look: dict[str, Any] = {"color": PUBLISHED, "published": True, "marker": marker}
                curves.append(Curve(label=f"published, {firm}", x=range(len(published[key])), y=published[key], **look))
            source = f" Dashed: {published['source']}."
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
                f"the limit cycle, firms and sessions; of {summary.responses} deviations "
                f"{100 * summary.unprofitable:.0f} % do not pay.{source}",
                alt="Line chart: prices of the deviating firm and of its rivals by period, with Nash and joint price.",
                figure=draw_panels([[panel]], size=(5.4, 3.6)),
            )
        )
    return drawn


def _folders(folder: Path) -> list[Path]:
    """The run folders: this folder, or those in it."""
    if _is_run(folder):
        return [folder]
    return (
        sorted(subfolder for subfolder in folder.iterdir() if subfolder.is_dir() and _is_run(subfolder))
        if folder.is_dir()
        else []
    )


def _is_run(folder: Path) -> bool:
    return kind_of(folder) == SessionFolder.kind


def _shared_number(value: Any) -> float | None:
    """The number that all firms share; `None` if they differ or it is no number."""
    values = set(value) if isinstance(value, list | tuple) else {value}
    only = values.pop() if len(values) == 1 else None
    return only if isinstance(only, int | float) else None


def _published_gains() -> dict[tuple[float, float], float]:
    gains = {}
    for variant in STUDIES["alpha_beta"].variants:
        alpha, beta = (_shared_number(getattr(variant.settings, name)) for name in ("alpha", "beta"))
        if alpha is not None and beta is not None:
            gains[alpha, beta] = variant.published["gain"]
    return gains


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


SESSION_FOLDERS = FolderKind(
    holds="Q-learning sessions",
    fits=is_sessions,
    about_figures=lambda: {figure.name: figure.about for figure in figures([])},
    read=lambda folder, **_: (figures(read_sessions(folder)), 0),
)
