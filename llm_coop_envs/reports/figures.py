"""Figures of a folder as files: those that can be drawn, and for each other one the reason why it cannot."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.render.charts.sizes import column_width, read_width
from llm_coop_envs.render.charts.style import FORMATS, need_matplotlib, picture
from llm_coop_envs.reports import grids
from llm_coop_envs.reports.apart import draw_apart
from llm_coop_envs.reports.contrasts import Contrast, compare_arms
from llm_coop_envs.reports.conversation import draw_conversation
from llm_coop_envs.reports.data import csv_bytes, plotted_table
from llm_coop_envs.reports.effects import draw_effects
from llm_coop_envs.reports.embedding import Embed
from llm_coop_envs.reports.run_sections import new_section, read_run
from llm_coop_envs.reports.section import FigureKind, NotDrawn, ScenarioSection
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.studies.families import Primary
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.references import load

CAPTIONS = "captions.md"
#: How conditions are drawn: in one panel, or side by side.
OVERLAID, APART = ARRANGEMENTS = ("overlaid", "apart")


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """A kind of folder that figures are drawn from.

    Attributes:
        holds: the content of such folders, in words.
        fits: tells whether a folder is of this kind.
        about_figures: gives a few words on each figure that such folders may have, by the figure's name.
        read: reads a folder and gives its figures and the number of episodes that it lacks. It takes the options of the
            conversation, `embed` and `method`, and which `conditions` are drawn in what way, `conditions` and `arms`.
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
    width: str = "",
    conditions: str = OVERLAID,
    arms: Sequence[str] = (),
) -> DrawnFigures:
    """Draw the figures of a run, each as a file in every format with its numbers as CSV, and captions in `captions.md`.

    Args:
        folder: a run folder of `llm-coop run`, or a folder with Q-learning sessions.
        out: the folder to write to; `folder/figures` by default.
        only: names from `known_figures`; all by default.
        formats: some of `png`, `pdf`, `svg`.
        embed: makes vectors of messages; TF-IDF by default.
        method: the name of that method in captions.
        width: the width of every figure, such as `"3.3in"` or `"84mm"` for a journal's column; empty for their own.
        conditions: `"overlaid"` in one panel, or `"apart"`, side by side.
        arms: the names of the conditions to draw; all by default.

    Raises:
        RunError: there is no run, it is damaged or empty, or nothing can be written.
        SettingsError: there is no such figure, format, width, arrangement or condition.
        MissingExtra: matplotlib is not installed.
    """
    about_figures = known_figures()
    for name in only:
        if name not in about_figures:
            raise SettingsError("only", name, f"is no figure; {suggestion(name, about_figures)}")
    for form in formats:
        if form not in FORMATS:
            raise SettingsError("format", form, f"is no format; known are {', '.join(FORMATS)}")
    if conditions not in ARRANGEMENTS:
        raise SettingsError(
            "conditions", conditions, f"must be {' or '.join(ARRANGEMENTS)}; --arm NAME draws some of them"
        )
    inches = read_width(width) if width else None
    need_matplotlib()
    folder = Path(folder)
    kind = next(kind for kind in folder_kinds() if kind.fits(folder))
    if arms and kind is not _STUDY:
        raise SettingsError("arm", arms[0], f"names a condition of a study, and the folder holds {kind.holds}")
    figure_kinds, missing = kind.read(folder, embed=embed, method=method, conditions=conditions, arms=arms)
    figures = {figure.name: figure for figure in figure_kinds}
    out = Path(out or folder / "figures")
    drawn: dict[str, list[str]] = {}
    not_drawn: dict[str, str] = {}
    captions = [f"# Figures of {folder.resolve().name}\n"]
    for name in only or dict.fromkeys([*figures, *about_figures]):
        try:
            with column_width(inches):
                drawings = figures[name].draw() if name in figures else _refuse(name, kind)
        except NotDrawn as reason:
            not_drawn[name] = str(reason)
            continue
        for drawing in drawings:
            for form in formats:
                write_whole(out / f"{drawing.name}.{form}", picture(drawing.figure, form))
            captions.append(f"**{drawing.name}**: {drawing.caption}\n")
            if numbers := plotted_table(drawing.figure):
                write_whole(out / f"{drawing.name}.csv", csv_bytes(numbers))
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
    sections: Sequence[ScenarioSection[Any]],
    embed: Embed | None = None,
    method: str = "",
    contrasts: Sequence[Contrast] = (),
    conditions: str = OVERLAID,
) -> list[FigureKind]:
    """Each scenario's own figures, and those that all scenarios have."""
    seeds = functools.partial(grids.draw_seeds, sections)
    temperature = functools.partial(grids.draw_temperature, sections)
    talk = functools.partial(draw_conversation, sections, embed, method)
    effects = functools.partial(draw_effects, contrasts)
    own_figures = draw_apart if conditions == APART else lambda section: section.figures()
    return [
        *(figure for section in sections for figure in own_figures(section)),
        FigureKind(name="effects", about="compared conditions, pair by pair, and their differences", draw=effects),
        FigureKind(name="seeds", about="one run each, by condition and seed", draw=seeds),
        FigureKind(name="temperature", about="conditions by the temperature of their models", draw=temperature),
        FigureKind(name="conversation", about="what was said, by round, in a plane", draw=talk),
    ]


def _read_study(
    folder: Path, *, embed: Embed | None, method: str, conditions: str, arms: Sequence[str]
) -> tuple[list[FigureKind], int]:
    run = open_run(folder)
    known = [condition.name for condition in run.conditions]
    for name in arms:
        if name not in known:
            raise SettingsError("arm", name, f"is no condition of this run; {suggestion(name, known)}")
    sections, answers = read_run(run)
    if not sections:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    invalid = {} if answers is None else answers.invalid
    # Families of tests are those of the whole study, whatever is drawn of it.
    contrasts = compare_arms(sections, run.manifest["measures"], invalid, Primary.from_manifest(run.manifest))
    if arms:
        contrasts = [contrast for contrast in contrasts if set(contrast.names) <= set(arms)]
        limited = [
            section.limit_to([a for a in section.conditions if a.condition.name in arms]) for section in sections
        ]
        sections = [section for section in limited if section.conditions]
        if not sections:
            raise RunError(f"{folder}: holds no finished episode of {', '.join(arms)} yet")
    return _study_figures(sections, embed, method, contrasts, conditions), run.total - len(run.finished())


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
