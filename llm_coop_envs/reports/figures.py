"""Figures of a folder as files: those that can be drawn, and for each other one the reason why it cannot."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.render.charts.style import FORMATS, need_matplotlib, picture
from llm_coop_envs.reports import grids
from llm_coop_envs.reports.conversation import draw_conversation
from llm_coop_envs.reports.embedding import Embed
from llm_coop_envs.reports.run_sections import new_section, read_run
from llm_coop_envs.reports.section import FigureKind, NotDrawn, ScenarioSection
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.references import load

CAPTIONS = "captions.md"


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """A kind of folder that figures are drawn from.

    Attributes:
        holds: the content of such folders, in words.
        fits: tells whether a folder is of this kind.
        about_figures: gives a few words on each figure that such folders may have, by the figure's name.
        read: reads a folder and gives its figures and the number of episodes that it lacks. It takes the options of the
            conversation, `embed` and `method`.
    """

    holds: str
    fits: Callable[[Path], bool]
    about_figures: Callable[[], Mapping[str, str]]
    read: Callable[..., tuple[list[FigureKind], int]]


@dataclass(frozen=True, kw_only=True)
class DrawnFigures:
    """The outcome of drawing the figures of a folder.

    Attributes:
        folder: the folder of the files.
        drawn: the names of the files of each figure, without ending.
        not_drawn: the reason why a figure was not drawn, by the figure's name.
        missing: the number of episodes that the run lacks.
    """

    folder: Path
    drawn: dict[str, list[str]]
    not_drawn: dict[str, str]
    missing: int = 0


def known_figures() -> dict[str, str]:
    """A few words on each figure of all kinds of folders, by the figure's name."""
    return {name: about for kind in folder_kinds() for name, about in kind.about_figures().items()}


def draw_figures(
    folder: StrPath,
    out: StrPath | None = None,
    *,
    only: Sequence[str] = (),
    formats: Sequence[str] = ("png", "pdf"),
    embed: Embed | None = None,
    method: str = "TF-IDF",
) -> DrawnFigures:
    """Draw the figures of a run, each as a file in every format, with their captions in `captions.md`.

    Args:
        folder: a run folder of `llm-coop run`, or a folder with Q-learning sessions.
        out: the folder to write to; `folder/figures` by default.
        only: names from `known_figures`; all by default.
        formats: some of `png`, `pdf`, `svg`.
        embed: makes vectors of messages; TF-IDF by default.
        method: the name of that method in captions.

    Raises:
        RunError: there is no run, it is damaged or empty, or nothing can be written.
        SettingsError: there is no such figure or format.
        MissingExtra: matplotlib is not installed.
    """
    about_figures = known_figures()
    for name in only:
        if name not in about_figures:
            raise SettingsError("only", name, f"is no figure; {suggestion(name, about_figures)}")
    for form in formats:
        if form not in FORMATS:
            raise SettingsError("format", form, f"is no format; known are {', '.join(FORMATS)}")
    need_matplotlib()
    folder = Path(folder)
    kind = next(kind for kind in folder_kinds() if kind.fits(folder))
    figure_kinds, missing = kind.read(folder, embed=embed, method=method)
    figures = {figure.name: figure for figure in figure_kinds}
    out = Path(out or folder / "figures")
    drawn: dict[str, list[str]] = {}
    not_drawn: dict[str, str] = {}
    captions = [f"# Figures of {folder.resolve().name}\n"]
    for name in only or dict.fromkeys([*figures, *about_figures]):
        try:
            drawings = figures[name].draw() if name in figures else _refuse(name, kind)
        except NotDrawn as reason:
            not_drawn[name] = str(reason)
            continue
        for drawing in drawings:
            for form in formats:
                write_whole(out / f"{drawing.name}.{form}", picture(drawing.figure, form))
            captions.append(f"**{drawing.name}**: {drawing.caption}\n")
        drawn[name] = [drawing.name for drawing in drawings]
    if drawn:
        write_whole(out / CAPTIONS, "\n".join(captions).encode())
    return DrawnFigures(folder=out, drawn=drawn, not_drawn=not_drawn, missing=missing)


def _refuse(name: str, kind: FolderKind) -> NoReturn:
    """Raise `NotDrawn` with the reason why a folder of some kind does not have a figure."""
    holds = next(other.holds for other in folder_kinds() if name in other.about_figures())
    if holds == kind.holds:
        raise NotDrawn("the run has no finished episode of its scenario")
    raise NotDrawn(f"it needs {holds}, which this folder does not hold")


def _study_figures(
    sections: Sequence[ScenarioSection[Any]], embed: Embed | None = None, method: str = ""
) -> list[FigureKind]:
    """Each scenario's own figures, and those that all scenarios have."""
    seeds = functools.partial(grids.draw_seeds, sections)
    temperature = functools.partial(grids.draw_temperature, sections)
    talk = functools.partial(draw_conversation, sections, embed, method)
    return [
        *(figure for section in sections for figure in section.figures()),
        FigureKind(name="seeds", about="one run each, by condition and seed", draw=seeds),
        FigureKind(name="temperature", about="conditions by the temperature of their models", draw=temperature),
        FigureKind(name="conversation", about="what was said, by round, in a plane", draw=talk),
    ]


def _read_study(folder: Path, *, embed: Embed | None, method: str) -> tuple[list[FigureKind], int]:
    run = open_run(folder)
    sections, _ = read_run(run)
    for section in sections:
        section.source = run.manifest.get("source", "")
    if not sections:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    return _study_figures(sections, embed, method), run.total - len(run.finished())


def _about_study_figures() -> dict[str, str]:
    sections = [new_section(scenario) for scenario in scenarios().values()]
    return {figure.name: figure.about for figure in _study_figures(sections)}


_STUDY = FolderKind(
    holds="episodes of a study", fits=lambda folder: True, about_figures=_about_study_figures, read=_read_study
)


def folder_kinds() -> tuple[FolderKind, ...]:
    """The kinds of folders that figures are drawn from; a folder is of the first that fits.

    Those that scenarios register (`Scenario.figures`) come first. Any other folder is taken for a study's run.
    """
    registered = (load(scenario.figures) for scenario in scenarios().values())
    return (*(kind for kind in registered if kind is not None), _STUDY)
