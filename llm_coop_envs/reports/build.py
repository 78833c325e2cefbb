"""From a run folder to a report: one page that holds everything, and the figures as files."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.style import need_matplotlib, plotted
from llm_coop_envs.reports.answers import INVALID_ABOVE, AnswersSection
from llm_coop_envs.reports.citation import Paper, entries
from llm_coop_envs.reports.data import Filed, data_files, episode_rows, file_tables
from llm_coop_envs.reports.methods import (
    condition_text,
    methods,
    of_all,
    presets,
    prompts_text,
    seats_text,
    seeds_text,
    shared_switches,
    switched_text,
)
from llm_coop_envs.reports.page_parts import ReportTable
from llm_coop_envs.reports.paired import paired_arms, paired_tables
from llm_coop_envs.reports.published_measures import published_tables
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import Drawing, ScenarioSection
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.folder import STUDY, Run, open_run
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.studies.families import Primary

PAGE, CITATION, ANSWERS = "index.html", "citation.bib", "answers"


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
    for section in sections:
        section.source = run.manifest.get("source", "")
    drawings = {section.scenario.name: section.drawings() for section in sections}
    tables = file_tables(_tables(run, sections, answers), episode_rows(sections))
    again = ["llm-coop", "report", str(folder), *([] if out is None else ["-o", str(out)])]
    again += ["--partial"] if partial else []
    again += [] if invalid_above == INVALID_ABOVE else ["--invalid-above", f"{invalid_above:g}"]
    out = out or folder / "report"
    shown = [figure for found in drawings.values() for figure in found]
    cited = _cited(run, sections, tables, shown)
    changed = run.describe_damage()
    files = data_files(run, sections, [one for found in tables.values() for one in found], shown, intact=not changed)
    files |= {f"{figure.name}.png": figure.png for figure in shown}
    files[CITATION] = "\n\n".join([*cited, ""]).encode()
    for name, content in files.items():
        write_whole(out / name, content)
    page = out / PAGE
    told = _render_page(
        run, sections, drawings, tables, answers, cited, shlex.join(again), [*run.program_changes(), *changed]
    )
    write_whole(page, told.encode())
    return page


def _tables(
    run: Run, sections: Sequence[ScenarioSection[Any]], answers: AnswersSection | None
) -> dict[str, list[ReportTable]]:
    """All tables of the page: of each scenario its own, then its measures, then those about the models."""
    invalid = {} if answers is None else answers.invalid
    arms = paired_arms(sections, run.manifest["measures"], invalid, Primary.from_manifest(run.manifest))
    tables: dict[str, list[ReportTable]] = {}
    for section in sections:
        name, measures = section.scenario.name, section.measures(run.manifest["measures"])
        tables[name] = [*section.tables(), *published_tables(section), *paired_tables(arms, section)]
        tables[f"{name}_measures"] = [] if measures is None else [measures]
        tables[f"{name}_talk"] = section.process()
    return {**tables, ANSWERS: [] if answers is None else [table for table in answers.tables() if table.rows]}


def _cited(
    run: Run,
    sections: Sequence[ScenarioSection[Any]],
    tables: Mapping[str, Sequence[Filed]],
    drawings: Sequence[Drawing],
) -> list[str]:
    """What is to be cited: this software, the study's papers, and those that the page names."""
    return entries(run.manifest.get("source", ""), _papers(sections, tables, drawings))


def _papers(
    sections: Sequence[ScenarioSection[Any]], tables: Mapping[str, Sequence[Filed]], drawings: Sequence[Drawing]
) -> list[Paper]:
    """The papers of the sections that the page names."""
    texts = [text for section in sections for text in section.intro()]
    texts += [note for found in tables.values() for one in found for note in one.table.notes]
    texts += [drawing.caption for drawing in drawings]
    papers = dict.fromkeys(paper for section in sections for paper in section.papers)
    return [paper for paper in papers if any(paper.short in text for text in texts)]


def _render_page(
    run: Run,
    sections: Sequence[ScenarioSection[Any]],
    drawings: Mapping[str, Sequence[Drawing]],
    tables: Mapping[str, Sequence[Filed]],
    answers: AnswersSection | None,
    cited: Sequence[str],
    again: str,
    faults: Sequence[str],
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
    shown = [drawing for found in drawings.values() for drawing in found]
    rows = [row for found in tables.values() for one in found for row in one.table.rows]
    return environment.get_template("page.jinja").render(
        run=run,
        manifest=manifest,
        sections=sections,
        drawings=drawings,
        plotted={drawing.name for drawing in shown if plotted(drawing.figure)},
        tables=tables,
        published=any(row.published for row in rows) or any(drawing.published for drawing in shown),
        again=[*_branched(run), again],
        invalid={} if answers is None else answers.invalid,
        cut_off={} if answers is None else answers.cut_off,
        scripted=all(kind == "scripted" for kind in manifest["policies"].values()),
        answers=answers,
        there=len(run.finished()),
        conditions=_condition_rows(run, sections, answers),
        switches=[line for section in sections for line in _switches(run, section)],
        methods=methods(run, sections, answers),
        versions=manifest["sessions"][-1]["versions"] if manifest["sessions"] else {},
        papers=_papers(sections, tables, shown),
        cited=cited,
        study_text=run.study_text,
        faults=faults,
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{_sha256(style)}'",
        style=style,
    )


def _switches(run: Run, section: ScenarioSection[Any]) -> list[tuple[str, str]]:
    """What the presets of a scenario's conditions set, and what all of these have besides: a name and a text each."""
    mine = [one for one in run.conditions if one.scenario == section.scenario.name]
    title, shared = section.scenario.title, shared_switches(mine)
    told = [(f"{title}, preset {name}", switched_text(of) or "the defaults") for name, of in presets(mine).items()]
    return [*told, *([(f"{title}, besides in every condition", switched_text(shared))] if shared else [])]


def _sha256(text: str) -> str:
    """A hash as a content security policy writes it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _commands(run: Run) -> list[str]:
    """The commands that played a run, each once; what began it before folders were recorded gets its folder."""
    told = [session["command"] for session in run.manifest["sessions"] if session["command"]] or ["llm-coop run STUDY"]
    where = shlex.join(["-o", str(run.folder)])
    return list(dict.fromkeys(one if " -o " in one else f"{one} {where}" for one in told))


def _branched(run: Run) -> list[str]:
    """The commands that played a run; what branched another run is that, and not how its own folder is continued."""
    origin = run.manifest.get(BRANCH)
    if origin is None:
        return _commands(run)
    begun = ["llm-coop", "branch", origin["run"], "--at", str(origin["at"]), "--arms", str(run.folder / STUDY)]
    names = dict.fromkeys(one.branch["condition"] for one in run.conditions if one.branch is not None)
    begun += [word for name in names for word in ("--only", name)]
    begun += next((one.split() for one in reversed(run.manifest["given"]) if one.startswith("--episodes ")), [])
    # After "llm-coop run FOLDER" stands how models were reached.
    return list(dict.fromkeys(shlex.join([*begun, *shlex.split(told)[3:]]) for told in _commands(run)))


def _condition_rows(
    run: Run, sections: Sequence[ScenarioSection[Any]], answers: AnswersSection | None
) -> list[dict[str, str]]:
    """What the page says of each condition."""
    shared = {
        name: shared_switches(one for one in run.conditions if one.scenario == name)
        for name in {one.scenario for one in run.conditions}
    }
    played = episode_rows(sections)
    seeds = {one.condition.name: one.seeds for section in sections for one in section.conditions}
    return [
        {
            "title": one.title,
            "name": one.name,
            "scenario": one.spec.title,
            "settings": condition_text(one, shared[one.scenario]),
            "policies": seats_text(one),
            "prompts": prompts_text(run, one),
            "episodes": of_all(len(there := seeds.get(one.name, [])), len(one.seeds)),
            "seeds": f"seed{'s' * (len(there) > 1)} {seeds_text(there, 5)}" if there else "",
            "rows": played.get(one.name, ""),
            "invalid": "" if answers is None else answers.invalid.get(one.name, ""),
            "cut_off": "" if answers is None else answers.cut_off.get(one.name, ""),
        }
        for one in run.conditions
    ]
