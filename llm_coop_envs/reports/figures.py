"""From a folder to its figures: what can be drawn is drawn, and what cannot is told with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.render.charts.style import FORMATS, need_matplotlib, picture
from llm_coop_envs.reports import grids
from llm_coop_envs.reports.conversation import conversation
from llm_coop_envs.reports.embedding import Embed
from llm_coop_envs.reports.run_sections import new_section, read_run
from llm_coop_envs.reports.section import FigureKind, NotDrawn, ScenarioSection
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.references import load

CAPTIONS = "captions.md"


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """A kind of folder that figures are drawn from.

    Attributes:
        holds: what such a folder holds, in words.
        fits: whether a folder is one.
        known: all figures that such folders may have, with what each shows.
        read: from a folder to its figures, and how many episodes it lacks. Takes the options of the conversation.
    """

    holds: str
    fits: Callable[[Path], bool]
    known: Callable[[], Mapping[str, str]]
    read: Callable[..., tuple[list[FigureKind], int]]


@dataclass(frozen=True, kw_only=True)
class DrawnFigures:
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


def known_figures() -> dict[str, str]:
    """All figures by name, with what each shows."""
    return {name: about for kind in folder_kinds() for name, about in kind.known().items()}


def draw_figures(
    folder: Path,
    out: Path | None = None,
    *,
    only: Sequence[str] = (),
    formats: Sequence[str] = ("png", "pdf"),
    embed: Embed | None = None,
    method: str = "TF-IDF",
) -> DrawnFigures:
    """Draw the figures of a run, each as a file in every format, with their captions in `captions.md`.

    Args:
        folder: a run folder of `llm-coop run`, or a folder with Q-learning sessions.
        out: where to write; `folder/figures` by default.
        only: names from `known_figures`; all by default.
        formats: some of `png`, `pdf`, `svg`.
        embed: makes vectors of messages; TF-IDF by default.
        method: what captions call it.

    Raises:
        RunError: there is no run, it is damaged or empty, or nothing can be written.
        SettingsError: there is no such figure or format.
        MissingExtra: matplotlib is not installed.
    """
    known = known_figures()
    for name in only:
        if name not in known:
            raise SettingsError("only", name, f"is no figure; {suggestion(name, known)}")
    for form in formats:
        if form not in FORMATS:
            raise SettingsError("format", form, f"is no format; known are {', '.join(FORMATS)}")
    need_matplotlib()
    kinds = folder_kinds()
    kind = next(kind for kind in kinds if kind.fits(folder))
    found, missing = kind.read(folder, embed=embed, method=method)
    figures = {figure.name: figure for figure in found}
    out = out or folder / "figures"
    drawn: dict[str, list[str]] = {}
    left: dict[str, str] = {}
    captions = [f"# Figures of {folder.resolve().name}\n"]
    for name in only or dict.fromkeys([*figures, *known]):
        if name not in figures:
            holds = next(one.holds for one in kinds if name in one.known())
            left[name] = (
                f"it needs {holds}, which this folder does not hold"
                if holds != kind.holds
                else "the run has no finished episode of its scenario"
            )
            continue
        try:
            drawings = figures[name].draw()
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
    return DrawnFigures(folder=out, drawn=drawn, left=left, missing=missing)


def _study_figures(
    sections: Sequence[ScenarioSection[Any]], embed: Embed | None = None, method: str = ""
) -> list[FigureKind]:
    """Each scenario's own figures, and those that all scenarios have."""
    seeds, temperature = functools.partial(grids.seeds, sections), functools.partial(grids.temperature, sections)
    talk = functools.partial(conversation, sections, embed, method)
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


def _study_known() -> dict[str, str]:
    return {f.name: f.about for f in _study_figures([new_section(scenario) for scenario in scenarios().values()])}


_STUDY = FolderKind(holds="episodes of a study", fits=lambda folder: True, known=_study_known, read=_read_study)


def folder_kinds() -> tuple[FolderKind, ...]:
    """The kinds of folders that figures are drawn from; a folder is of the first that fits.

    Those that scenarios register (`Scenario.figures`) come first. Any other folder is taken for a study's run.
    """
    registered = (load(scenario.figures) for scenario in scenarios().values())
    return (*(kind for kind in registered if kind is not None), _STUDY)
