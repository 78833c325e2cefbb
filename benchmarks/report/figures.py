"""From a run folder to its figures: what can be drawn is drawn, and what cannot is told with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.report import conversation, grids
from llm_coop_envs.benchmarks.report import q_learning_figures as q_learning
from llm_coop_envs.benchmarks.report.drawing import Drawing, NotDrawn
from llm_coop_envs.benchmarks.report.embedding import Embed
from llm_coop_envs.benchmarks.report.gather import gather
from llm_coop_envs.benchmarks.run.folder import open_run
from llm_coop_envs.bertrand import figures as bertrand
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.evacuation import figures as evacuation
from llm_coop_envs.kbc import figures as kbc
from llm_coop_envs.render.charts.style import FORMATS, need_matplotlib, picture
from llm_coop_envs.storage.files import write_whole

CAPTIONS = "captions.md"

_RUN: dict[str, tuple[str, Callable[..., list[Drawing]]]] = {
    "kbc-variance": ("variance of the numbers by k, with bands", kbc.variance),
    "kbc-distribution": ("numbers of the first decision beside those of people", kbc.distribution),
    "kbc-choices": ("every number in every run, with the targets", kbc.choices),
    "bertrand-prices": ("prices over rounds with Nash and cartel price, collusion shaded", bertrand.prices),
    "evacuation-snapshots": ("the room after rounds 0, 2, 4 and 8", evacuation.snapshots),
    "evacuation-escapes": ("cumulative escapes by exit, with bands", evacuation.escapes),
    "seeds": ("one run each, by condition and seed", grids.seeds),
    "temperature": ("conditions by the temperature of their models", grids.temperature),
    "conversation": ("what was said, by round, in a plane", conversation.conversation),
}
_SESSIONS: dict[str, tuple[str, Callable[..., list[Drawing]]]] = {
    "q-learning-gain": ("profit gain over learning rate and exploration", q_learning.gain),
    "q-learning-responses": ("impulse responses to a price cut", q_learning.responses),
}

#: All figures by name, with what each shows.
FIGURES = {name: about for name, (about, _) in (_RUN | _SESSIONS).items()}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was drawn.

    Attributes:
        folder: where the files are.
        drawn: the names of the files without ending, by figure.
        left: why a figure was not drawn, by figure.
        missing: how many episodes the run lacks.
    """

    folder: Path
    drawn: dict[str, list[str]]
    left: dict[str, str]
    missing: int = 0


def draw_figures(
    folder: Path,
    out: Path | None = None,
    *,
    only: Sequence[str] = (),
    formats: Sequence[str] = ("png", "pdf"),
    embed: Embed | None = None,
    method: str = "TF-IDF",
) -> Outcome:
    """Draw the figures of a run, each as a file in every format, with their captions in `captions.md`.

    Args:
        folder: a run folder of `llm-coop run`, or a folder with Q-learning sessions.
        out: where to write; `folder/figures` by default.
        only: names from `FIGURES`; all by default.
        formats: some of `png`, `pdf`, `svg`.
        embed: makes vectors of messages; TF-IDF by default.
        method: what captions call it.

    Raises:
        RunError: there is no run, it is damaged or empty, or nothing can be written.
        SettingsError: there is no such figure or format.
        MissingExtra: matplotlib is not installed.
    """
    for name in only:
        if name not in FIGURES:
            raise SettingsError("only", name, f"is no figure; {suggestion(name, FIGURES)}")
    for form in formats:
        if form not in FORMATS:
            raise SettingsError("format", form, f"is no format; known are {', '.join(FORMATS)}")
    need_matplotlib()
    makers, data, missing = _material(folder)
    if "conversation" in makers:
        about, draw = makers["conversation"]
        makers = {**makers, "conversation": (about, functools.partial(draw, embed=embed, method=method))}
    out = out or folder / "figures"
    drawn: dict[str, list[str]] = {}
    left: dict[str, str] = {}
    captions = [f"# Figures of {folder.resolve().name}\n"]
    for name in only or FIGURES:
        if name not in makers:
            kind = "Q-learning sessions" if name in _SESSIONS else "episodes of a study"
            left[name] = f"it needs {kind}, which this folder does not hold"
            continue
        try:
            drawings = makers[name][1](data)
        except NotDrawn as why:
            left[name] = str(why)
            continue
        for one in drawings:
            for form in formats:
                write_whole(out / f"{one.name}.{form}", picture(one.figure, form))
            captions.append(f"**{one.name}**: {one.caption}\n")
        drawn[name] = [one.name for one in drawings]
    if drawn:
        write_whole(out / CAPTIONS, "\n".join(captions).encode())
    return Outcome(folder=out, drawn=drawn, left=left, missing=missing)


def _material(folder: Path) -> tuple[dict[str, tuple[str, Callable[..., list[Drawing]]]], Any, int]:
    """Which figures a folder is for, what they are made of, and how many episodes are missing."""
    if q_learning.is_sessions(folder):
        return _SESSIONS, q_learning.read_sessions(folder), 0
    run = open_run(folder)
    data = gather(run)
    if not data.conditions:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    return _RUN, data, run.total - len(run.finished())
