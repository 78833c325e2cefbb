"""From a run folder to a report: one page that holds everything, and the figures as files."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from llm_coop_envs.benchmarks.report.answers import INVALID_ABOVE, AnswersSection
from llm_coop_envs.benchmarks.report.page_parts import ReportTable, episodes_text
from llm_coop_envs.benchmarks.report.paired import paired_arms, paired_tables
from llm_coop_envs.benchmarks.report.published_measures import published_tables
from llm_coop_envs.benchmarks.report.reading import read_run
from llm_coop_envs.benchmarks.report.section import Drawing, ScenarioSection
from llm_coop_envs.benchmarks.run.folder import Run, open_run
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.style import need_matplotlib
from llm_coop_envs.storage.files import write_whole

PAGE = "index.html"


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
    if not partial and (there < run.total or not run.complete):
        raise RunError(
            f"{folder}: {'was complete, and episodes are gone' if run.complete else 'is not complete'} ({there} of "
            f"{run.total} episodes); continue it with '{_commands(run)[0]}', or report on what is there with --partial"
        )
    if there == 0:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    if not 0 <= invalid_above <= 1:
        raise RunError(f"--invalid-above {invalid_above}: must be a share between 0 and 1")
    sections, answers = read_run(run, invalid_above)
    drawings = {section.scenario.name: section.drawings() for section in sections}
    again = ["llm-coop", "report", str(folder), *([] if out is None else ["-o", str(out)])]
    again += ["--partial"] if partial else []
    again += [] if invalid_above == INVALID_ABOVE else ["--invalid-above", f"{invalid_above:g}"]
    out = out or folder / "report"
    for figure in (figure for found in drawings.values() for figure in found):
        write_whole(out / f"{figure.name}.png", figure.png)
    page = out / PAGE
    write_whole(page, _render_page(run, sections, drawings, answers, shlex.join(again)).encode())
    return page


def _render_page(
    run: Run,
    sections: Sequence[ScenarioSection[Any]],
    drawings: Mapping[str, Sequence[Drawing]],
    answers: AnswersSection | None,
    again: str,
) -> str:
    """The page; whatever was said in an episode is data in it, never markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    manifest = run.manifest
    style = "\n" + (Path(__file__).parent / "page.css").read_text(encoding="utf-8").rstrip("\n") + "\n"
    invalid = {} if answers is None else answers.invalid
    cut_off = {} if answers is None else answers.cut_off
    tables: dict[str, list[ReportTable]] = {}
    texts = []
    arms = paired_arms(sections, manifest["measures"], invalid)
    for section in sections:
        name = section.scenario.name
        tables[name] = [*section.tables(), *published_tables(section), *paired_tables(arms, section)]
        texts += [*section.intro(), *(note for table in tables[name] for note in table.notes)]
        texts += [drawing.caption for drawing in drawings[name]]
    return environment.get_template("page.jinja").render(
        run=run,
        manifest=manifest,
        sections=sections,
        drawings=drawings,
        tables=tables,
        published=any(row.published for found in tables.values() for table in found for row in table.rows)
        or any(drawing.published for found in drawings.values() for drawing in found),
        again=[*_commands(run), again],
        invalid=invalid,
        cut_off=cut_off,
        scripted=all(kind == "scripted" for kind in manifest["policies"].values()),
        answers=answers,
        there=len(run.finished()),
        conditions=[_condition_row(c, invalid, cut_off) for c in run.conditions],
        versions=manifest["sessions"][-1]["versions"] if manifest["sessions"] else {},
        seeds=_seeds(run.conditions),
        papers=[
            paper
            for paper in dict.fromkeys(paper for section in sections for paper in section.papers)
            if any(paper.short in text for text in texts)
        ],
        study_text=run.study_text,
        faults=[*run.mixed(), *run.changed()],
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{_sha256(style)}'",
        style=style,
    )


def _sha256(text: str) -> str:
    """A hash as a content security policy writes it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _commands(run: Run) -> list[str]:
    """The commands that played a run, each once; what began it before folders were recorded gets its folder."""
    told = [session["command"] for session in run.manifest["sessions"] if session["command"]] or ["llm-coop run STUDY"]
    where = shlex.join(["-o", str(run.folder)])
    return list(dict.fromkeys(one if " -o " in one else f"{one} {where}" for one in told))


def _condition_row(condition: Condition, invalid: Mapping[str, str], cut_off: Mapping[str, str]) -> dict[str, str]:
    changed = {key: json.dumps(value, ensure_ascii=False) for key, value in condition.changed.items()}
    settings = [f"preset {condition.preset}"] if condition.preset else []
    settings += [f"{key} = {value}" for key, value in changed.items() if key != "changes"]
    settings += condition.what_changes
    return {
        "title": condition.title,
        "name": condition.name,
        "scenario": condition.spec.title,
        "settings": ", ".join(settings) or "the defaults",
        "policies": "; ".join(_seat_text(pattern, players) for pattern, players in condition.seats),
        "episodes": episodes_text(len(condition.seeds)),
        "invalid": invalid.get(condition.name, ""),
        "cut_off": cut_off.get(condition.name, ""),
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
