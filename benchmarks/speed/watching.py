"""The cost to a run of a page that watches it: `python -m llm_coop_envs.benchmarks.speed.watching`.

A run is played in a process of its own, and asked in some stretches and left alone in others, which take turns. In the
first it is asked what `llm-coop view` asks while a page shows the episode that is being played (how the run goes, and
all events of the episode), `OFTEN` times in each second of processor time instead of once. What counts is the ratio of
the run's processor time per event in two stretches beside each other, on the logarithm's scale, divided by how much too
often was asked: so that noise of some percent, which other work on the machine makes, becomes a hundredth of that. All
threads of the run count, and what they cost that wait for each other; the page's server is another process.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, write
from llm_coop_envs.benchmarks.speed.llm_studies import server as scripted_server
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs import control
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.statistics.comparison import t_interval
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.study import parse_study

# Rules that answer at once, in rounds that cost little: nothing hides what the page adds.
_RULES = """\
name: watched
conditions:
  - name: prices
    scenario: bertrand
    settings: {rounds: 4000, talk: false}
    policies: grim_trigger
    episodes: 20000
"""
_MODEL = """\
name: watched
conditions:
  - name: contest
    scenario: kbc
    preset: two_thirds
    settings: {players: 24}
    policies: poisson
    episodes: 20000
"""
KINDS = {"rules": _RULES, "model": _MODEL}
"""The study, with more episodes than are played until the measurement ends."""
OFTEN = 20
STRETCH = 1.0
"""Seconds of the run's processor time."""
_FETCHED = 2_000


def play(kind: str, folder: Path, url: str) -> None:
    """Play the run in this process."""
    study = parse_study(KINDS[kind], "watched.yaml")
    access = ModelAccess()
    if kind == "model":
        study = with_players(study, read_player("llm:scripted"))
        access = ModelAccess(endpoint={"base_url": url})
    run_study(study, folder, access=access)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], http.client.HTTPResponse]]]:
    """Run `llm-coop view` in a process of its own; yields it and a function that asks it."""
    command = [sys.executable, "-m", "llm_coop_envs", "view", str(folder), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        host, _, path = server.stdout.readline().strip().removeprefix("http://").partition("/")
        cookies: dict[str, str] = {}

        def ask(question: str) -> http.client.HTTPResponse:
            talk = http.client.HTTPConnection(host)
            talk.request("GET", f"/{question}", headers=cookies)
            return talk.getresponse()

        (cookie,) = SimpleCookie(ask(path).headers["Set-Cookie"]).values()
        cookies["Cookie"] = f"{cookie.key}={cookie.value}"
        yield server, ask
    finally:
        server.terminate()
        server.wait()


def look(folder: Path) -> int:
    """Ask what the page's server asks while an episode is shown. Returns the number of events received."""
    playing = control.query_sessions(folder)["main"]["playing"]
    name = min(playing, default="")
    total, events = bool(name), 0
    with contextlib.suppress(RunError):  # it is finished by now
        while events < total:
            request = {"do": "events", "episode": name, "first": events, "most": _FETCHED}
            answer = control.ask(playing[name]["by"], request)
            total = answer["there"]
            events += len(answer["events"])
    return events


def stretch(folder: Path, run: subprocess.Popen[str], size: float, *, watched: bool) -> tuple[float, list[int]]:
    """Measure processor seconds of the run per event in one stretch, and the events that each look received."""
    began, events_before = _spent(run), _events(folder, size)
    looks: list[int] = []
    while _spent(run) < began + STRETCH:
        if watched and _spent(run) > began + len(looks) / OFTEN:
            looks.append(look(folder))
        time.sleep(0.002)
    return (_spent(run) - began) / (_events(folder, size) - events_before), looks


def _spent(run: subprocess.Popen[str]) -> float:
    """Return the processor seconds of another process, all threads together."""
    return time.clock_gettime(~run.pid << 3 | 2)  # the kernel's number of a process's CPU clock: ~pid << 3 | 2


def _events(folder: Path, size: float) -> float:
    """Return the number of events so far, with `size` events in each finished episode."""
    progress = control.query_sessions(folder)["main"]
    playing = sum(episode["events"] for episode in progress["playing"].values())
    return float(progress.get("finished", 0) * size + playing)


def measure(kind: str, pairs: int, url: str) -> dict[str, Any]:
    """Measure by how many percent one look in each second slows a run, with its 95 % interval."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        command = [sys.executable, "-m", __spec__.name, "--play", kind, str(folder), url]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True)
        try:
            while not control.query_sessions(folder).get("main", {}).get("finished"):
                time.sleep(0.1)
            size = _size(folder)
            ratios, looks = [], []
            for turn in range(pairs):
                cost = {}
                for watched in (False, True) if turn % 2 else (True, False):
                    cost[watched], received = stretch(folder, run, size, watched=watched)
                    looks += received
                ratios.append(math.log(cost[True] / cost[False]))
        finally:
            run.kill()
            run.wait()
    slower = t_interval([100 / OFTEN * ratio for ratio in ratios])
    assert slower is not None
    figures = {"percent": slower.mean, "low": slower.low, "high": slower.high}
    return {**figures, "pairs": pairs, "looks": len(looks), "events_of_a_look": float(np.mean(looks))}


def _size(folder: Path) -> float:
    """Return the mean number of events of an episode; all have about as many."""
    from llm_coop_envs.runs.folder import open_run

    run = open_run(folder)
    return float(np.mean([len(run.read_events(*key)[1]) for key in sorted(run.finished())[:5]]))


def main() -> None:
    """Measure both kinds of run, print the results, and write the record."""
    parser = arguments(__doc__ or "", 100)
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind of run")
    parser.add_argument("--play", nargs=3, metavar="WHAT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        kind, folder, url = options.play
        play(kind, Path(folder), url)
        return
    record: dict[str, Any] = {"machine": machine("llm-coop-envs", "aiohttp", "orjson")}
    with scripted_server("--remember", "1000000") as url:
        for kind in [options.only] if options.only else KINDS:
            result = record[kind] = measure(kind, options.repeats, url)
            print(
                f"{kind}: slower by {result['percent']:.2f} % ({result['low']:.2f} to {result['high']:.2f})", flush=True
            )
            print(f"{kind}: {result['looks']} looks with {result['events_of_a_look']:.0f} events each", flush=True)
    record["load"] = os.getloadavg()[0]
    write(record, options.json)


if __name__ == "__main__":
    main()
