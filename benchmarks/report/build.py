"""From a run folder to a report: one page that holds everything, and the figures as files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jinja2

from llm_coop_envs.benchmarks.report.answers import INVALID_ABOVE, AnswersPart, AnswersSection
from llm_coop_envs.benchmarks.report.blocks import Section, episodes_text, excerpt, metrics_table
from llm_coop_envs.benchmarks.report.published import PAPER
from llm_coop_envs.benchmarks.run.folder import Run, open_run
from llm_coop_envs.benchmarks.run.tables import EpisodeTables, read_episodes
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.scenario import Row, load
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.style import need_matplotlib
from llm_coop_envs.storage.files import write_whole

PAGE = "index.html"
EXCERPTS = 2
LANGUAGE_MODEL = "language model"
SCRIPTED_ANSWERS = "scripted answers"


class SectionBuilder(Protocol):
    """Gathers one scenario's episodes and writes its section."""

    def add(self, episode: EpisodeTables) -> None:
        """Take what is needed of an episode."""

    def fill(self, section: Section) -> None:
        """Write the section."""


def write_report(
    folder: Path, out: Path | None = None, *, partial: bool = False, invalid_above: float = INVALID_ABOVE
) -> Path:
    """Write the report on a run.

    Args:
        folder: the run folder.
        out: where to write; `folder/report` by default.
        partial: accept a run that is not complete; the page then says so.
        invalid_above: the share of a model's decisions that fell back, or of its answers that were unreadable, above
            which a condition is marked invalid.

    Returns:
        The page.

    Raises:
        RunError: there is no run, it is not complete, it is damaged, or nothing can be written.
        MissingExtra: matplotlib is not installed.
    """
    need_matplotlib()
    run = open_run(folder)
    there = len(run.finished())
    if not run.complete and not partial:
        started = [session["command"] for session in run.manifest["sessions"] if session["command"]]
        again = f"{started[0] if started else 'llm-coop run STUDY'} {shlex.join(['-o', str(folder)])}"
        raise RunError(
            f"{folder}: is not complete ({there} of {run.total} episodes); continue it with '{again}', "
            "or report on what is there with --partial"
        )
    if there == 0:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    if not 0 <= invalid_above <= 1:
        raise RunError(f"--invalid-above {invalid_above}: must be a share between 0 and 1")
    sections, answers = build_parts(run, invalid_above)
    out = out or folder / "report"
    for section in sections:
        for picture in section.pictures:
            write_whole(out / f"{picture.name}.png", picture.png)
    page = out / PAGE
    write_whole(page, render_page(run, sections, answers).encode())
    return page


def build_sections(run: Run) -> list[Section]:
    """One section for each scenario that has finished episodes, in the order of the study."""
    return build_parts(run)[0]


def build_parts(run: Run, invalid_above: float = INVALID_ABOVE) -> tuple[list[Section], AnswersPart | None]:
    """The sections, and the part about the models that answered, if any did."""
    conditions: dict[str, list[Condition]] = {}
    for condition in run.conditions:
        conditions.setdefault(condition.scenario, []).append(condition)
    who = {c.name: _who(run, c) for c in run.conditions}
    sections = {name: Section(name=name, title=cs[0].spec.title) for name, cs in conditions.items()}
    builders: dict[str, SectionBuilder] = {name: load(cs[0].spec.report)(cs, who) for name, cs in conditions.items()}
    asked = AnswersSection(run.conditions, invalid_above)
    metrics: dict[str, list[Row]] = {condition.name: [] for condition in run.conditions}
    talked: set[str] = set()
    for episode in read_episodes(run):
        name = episode.condition.scenario
        builders[name].add(episode)
        asked.add(episode)
        metrics[episode.condition.name].append(episode.metrics)
        if episode.condition.name not in talked and len(sections[name].excerpts) < EXCERPTS:
            part = excerpt(episode)
            if part is not None:
                talked.add(episode.condition.name)
                sections[name].excerpts.append(part)
    for condition in run.conditions:
        if asked.scripted(condition.name):
            who[condition.name] = who[condition.name].replace(LANGUAGE_MODEL, SCRIPTED_ANSWERS)
    answers = asked.part(run)
    kept = [name for name, cs in conditions.items() if any(metrics[c.name] for c in cs)]
    for name in kept:
        builders[name].fill(sections[name])
        sections[name].metrics = metrics_table(metrics, conditions[name], run.manifest["measures"])
        if answers is not None:
            sections[name].invalid = [
                (c.title, answers.invalid[c.name]) for c in conditions[name] if c.name in answers.invalid
            ]
    return [sections[name] for name in kept], answers


def _who(run: Run, condition: Condition) -> str:
    """Who played a condition: `"scripted"`, or what reports call its other policies."""
    return " and ".join(sorted({str(run.manifest["policies"][name]) for name in condition.policies}))


def render_page(run: Run, sections: Sequence[Section], answers: AnswersPart | None = None) -> str:
    """The page; whatever was said in an episode is data in it, never markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    manifest = run.manifest
    scripted = all(kind == "scripted" for kind in manifest["policies"].values())
    return environment.get_template("page.jinja").render(
        run=run,
        manifest=manifest,
        sections=sections,
        scripted=scripted,
        answers=answers,
        there=len(run.finished()),
        conditions=[_condition_row(c, {} if answers is None else answers.invalid) for c in run.conditions],
        versions=manifest["sessions"][-1]["versions"] if manifest["sessions"] else {},
        seeds=_seeds(run.conditions),
        paper=PAPER,
        study_text=_study_text(run),
        style=(Path(__file__).parent / "page.css").read_text(encoding="utf-8"),
    )


def _condition_row(condition: Condition, invalid: Mapping[str, str]) -> dict[str, str]:
    changed = {key: json.dumps(value, ensure_ascii=False) for key, value in condition.changed.items()}
    settings = [f"preset {condition.preset}"] if condition.preset else []
    settings += [f"{key} = {value}" for key, value in changed.items()]
    return {
        "title": condition.title,
        "name": condition.name,
        "scenario": condition.spec.title,
        "settings": ", ".join(settings) or "the defaults",
        "policies": "; ".join(_seat_text(pattern, players) for pattern, players in condition.seats),
        "episodes": episodes_text(len(condition.seeds)),
        "invalid": invalid.get(condition.name, ""),
    }


def _seeds(conditions: Sequence[Condition]) -> list[tuple[str, str]]:
    """The seeds in words, each with the names of the conditions that share them."""
    names: dict[tuple[int, ...], list[str]] = {}
    for condition in conditions:
        names.setdefault(condition.seeds, []).append(condition.name)
    return [(_seeds_text(seeds), ", ".join(who)) for seeds, who in names.items()]


def _seat_text(pattern: str, players: Sequence[Any]) -> str:
    total = sum(player.share for player in players)
    parts = []
    for player in players:
        options = ", ".join(f"{key} = {value}" for key, value in player.options.items())
        name = f"{player.policy} ({options})" if options else player.policy
        parts.append(name if len(players) == 1 else f"{player.share / total:.0%} {name}")
    return f"{pattern}: " + " + ".join(parts)


def _seeds_text(seeds: Sequence[int]) -> str:
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    shown = ", ".join(str(seed) for seed in seeds[:20])
    return shown if len(seeds) <= 20 else f"{shown}, … ({len(seeds)})"


def _study_text(run: Run) -> str:
    try:
        return (run.folder / "study.yaml").read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"{run.folder / 'study.yaml'}: cannot be read ({error.strerror})") from error
