"""The site's gallery: shipped studies played by rules and learners, their reports as static pages, a run and films.

    python -m llm_coop_envs.benchmarks.doc_pages.gallery build/gallery

`docs/conf.py` puts the folder beside the pages and writes the page that links to it from `gallery.json`. What an
earlier build made is kept; `make clean` removes it.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from llm_coop_envs.cli.main import app
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import RunError
from llm_coop_envs.page.one_file import write_page
from llm_coop_envs.policies.kinds import parse
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.reports.build import PAGE, write_report
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import load_study, shipped_studies

WHOLE = ("team_up", "kbc_talk", "kbc_one_shot", "governance", "oversight")
"""Studies that are played as they ship; all others, which take minutes, in the small size of `--reduced`."""
SKIPPED = ("continuous_learners", "local_model")
"""Studies of networks that somebody trains first, and of a real model."""
CLICKED = "team_up"
"""The run that is exported as a page to click through."""
FILMED = (
    ("team_up", "kbc-talk"),
    ("team_up", "kbc-no-talk"),
    ("oversight", "unwatched"),
    ("team_up", "evacuation-talk"),
    ("team_up", "evacuation-no-talk"),
    ("kbc_talk", "uncooperative"),
    ("governance", "ungoverned"),
    ("kbc_one_shot", "two"),
    ("kbc_talk", "cooperate"),
    ("oversight", "veto"),
)
"""The conditions whose first episodes are filmed, by study."""
WORKERS = 2
_WIDTH = 480
_FILM = ("--fps", "6", "--per", "round", "--size", "480x320", "--scale", "0.5")
MOST_BYTES = 1_000_000
"""The largest film."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One study of the gallery.

    Attributes:
        name: the study.
        about: what it asks.
        source: the paper that it follows.
        whole: whether it was played as it ships.
        episodes: how many episodes its report is on.
        players: who played it: scripted rules, or learners too.
        picture: the file of its thumbnail, or nothing.
    """

    name: str
    about: str
    source: str
    whole: bool
    episodes: int
    players: str
    picture: str


def build(folder: Path) -> None:
    """Play, report on and draw everything into a folder; `folder/site` is what the site shows."""
    site = folder / "site" / "gallery"
    site.mkdir(parents=True, exist_ok=True)
    cards = []
    for name in (*WHOLE, *(name for name in shipped_studies() if name not in WHOLE)):
        if name not in SKIPPED:
            began = time.perf_counter()
            cards.append(add_study(name, folder / "runs", site))
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    run = Run.open(folder / "runs" / CLICKED)
    page = site / "run.html"
    page.unlink(missing_ok=True)
    write_page(run.folder, page)
    films = [film_condition(Run.open(folder / "runs" / name), condition, site) for name, condition in FILMED]
    contents = {(site / film["file"]).read_bytes() for film in films}
    if len(contents) < len(films):
        raise RunError(f"{site}: two of the films are the same; choose other conditions in FILMED")
    record = {"cards": [asdict(card) for card in cards], "films": films, "skipped": SKIPPED, "clicked": CLICKED}
    (folder / "gallery.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def add_study(name: str, runs: Path, site: Path) -> Card:
    """Play a study, unless an earlier build did, and write its report and thumbnail."""
    study = load_study(name)
    whole = name in WHOLE
    selected = study if whole else select(study, reduced=True)
    try:
        run = run_study(selected, runs / name, workers=WORKERS).run
    except RunError:  # played by earlier rules, or half by them
        shutil.rmtree(runs / name)
        shutil.rmtree(site / name, ignore_errors=True)
        run = run_study(selected, runs / name, workers=WORKERS).run
    report = site / name / PAGE
    if not report.is_file():
        write_report(run.folder, site / name)
    picture = shrink_first_figure(report, site / f"{name}.png")
    kinds = {parse(policy)[0] for condition in run.conditions for policy in condition.policies}
    return Card(
        name=name,
        about=" ".join(study.description.split()),
        source=" ".join(study.source.split()),
        whole=whole,
        episodes=run.total,
        players="Scripted rules" if kinds == {""} else "Learners and scripted rules",
        picture=picture,
    )


def shrink_first_figure(report: Path, path: Path) -> str:
    """Write a small copy of the first figure that has a file beside the report; return its name, or nothing."""
    for figure in re.findall(r'href="([\w-]+)\.csv"', report.read_text(encoding="utf-8")):
        source = report.parent / f"{figure}.png"
        if source.is_file():
            picture = pygame.image.load(source)
            height = round(_WIDTH * picture.get_height() / picture.get_width())
            pygame.image.save(pygame.transform.smoothscale(picture, (_WIDTH, height)), str(path))
            return path.name
    return ""


def film_condition(run: Run, name: str, site: Path) -> dict[str, str]:
    """Film the first episode of a condition, unless an earlier build did; return its title and file."""
    (condition,) = (condition for condition in run.conditions if condition.name == name)
    path = site / f"{run.folder.name}-{name}.gif"
    if not path.exists():
        began = time.perf_counter()
        arguments = ["film", str(run.folder), name, str(condition.seeds[0]), "-o", str(path), *_FILM]
        app(arguments, standalone_mode=False)
        print(f"{path.name}: {time.perf_counter() - began:.0f} s", flush=True)
    if path.stat().st_size > MOST_BYTES:
        raise RunError(f"{path}: has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}; film a shorter game")
    game = find_scenario(condition.scenario).title
    return {"title": f"{game}: {condition.title} ({run.folder.name})", "file": path.name}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
