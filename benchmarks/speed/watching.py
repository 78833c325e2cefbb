"""What a page that watches costs a run: `python -m llm_coop_envs.benchmarks.speed.watching`.

The same run is played with a page open and without one, in turns, each in a process of its own. The page follows the
episode that is being played as a browser does: it listens to the stream of runs, and whenever that says something new
asks for the run, the episode and its last rounds. What counts is the ratio of each pair: CPU seconds of the run's
process (all its threads, importing not counted), and its seconds on the clock, in which server and page take part of
the machine, too. What the thread that answers the page used is said beside it: that figure does not need a quiet
machine, and leaves out what threads cost that wait for each other.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.run import control
from llm_coop_envs.benchmarks.run.model_access import ModelAccess
from llm_coop_envs.benchmarks.run.runner import run_study
from llm_coop_envs.benchmarks.speed.harness import arguments, machine, row, spread, write
from llm_coop_envs.benchmarks.speed.llm_studies import server as scripted_server
from llm_coop_envs.benchmarks.study.seating import read_player, with_players
from llm_coop_envs.benchmarks.study.study import parse_study

# Rules that answer at once, in rounds that cost little: nothing hides what the page adds.
_RULES = """\
name: watched
conditions:
  - name: prices
    scenario: bertrand
    settings: {rounds: 4000, talk: false}
    policies: grim_trigger
    episodes: %d
"""
_MODEL = """\
name: watched
conditions:
  - name: contest
    scenario: kbc
    preset: two_thirds
    settings: {players: 24}
    policies: poisson
    episodes: %d
"""
KINDS = {"rules": (_RULES, 200), "model": (_MODEL, 24)}
"""The study, and how many episodes of it are played."""


def play(kind: str, folder: Path, episodes: int, url: str) -> dict[str, float]:
    """Play the run in this process; what it took."""
    study = parse_study(KINDS[kind][0] % episodes, "watched.yaml")
    access = ModelAccess()
    if kind == "model":
        study = with_players(study, read_player("llm:scripted"))
        access = ModelAccess(endpoint={"base_url": url})
    spent, serve = [0.0], control._serve

    def timed(*given: Any) -> None:
        serve(*given)
        spent[0] = time.thread_time()

    control._serve = timed
    wall, cpu = time.perf_counter(), time.process_time()
    run_study(study, folder, access=access)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "answering": spent[0]}


def measured(kind: str, episodes: int, url: str, *, watched: bool) -> dict[str, float]:
    """The run's figures, and how often a page that watched was told something."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as opened:
        looks = opened.enter_context(watching(Path(name))) if watched else [0]
        words = [sys.executable, "-m", __spec__.name, "--play", kind, f"{name}/run", url, "--episodes", str(episodes)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return {**json.loads(done.stdout.splitlines()[-1]), "looks": looks[0]}


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], http.client.HTTPResponse]]]:
    """`llm-coop view` in a process of its own, and a function that asks it."""
    command = [sys.executable, "-m", "llm_coop_envs.benchmarks.cli.main", "view", str(folder), "--no-browser"]
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


@contextlib.contextmanager
def watching(folder: Path) -> Iterator[list[int]]:
    """A page of a folder of runs, open as long as the block lasts; yields how often it was told something."""
    looks = [0]
    with serving(folder) as (_, ask):
        stream = ask("api/live")
        thread = threading.Thread(target=_look, args=(stream, ask, looks), daemon=True)
        thread.start()
        yield looks
    thread.join()


def _look(stream: http.client.HTTPResponse, ask: Callable[[str], http.client.HTTPResponse], looks: list[int]) -> None:
    """What a page does that shows the episode that is being played."""
    shown: tuple[str, str] | None = None
    with contextlib.suppress(OSError, http.client.HTTPException):
        while line := stream.readline():
            if not line.startswith(b"data: "):
                continue
            runs = json.loads(line.removeprefix(b"data: "))
            playing = {(one["run"], name) for one in runs for live in one["live"].values() for name in live["playing"]}
            if shown not in playing:
                shown = min(playing, default=None)
            if shown is None:
                continue
            looks[0] += 1
            condition, _, seed = shown[1].rpartition("/")
            place = urllib.parse.urlencode({"run": shown[0], "condition": condition, "seed": seed})
            answer = ask(f"api/episode?{place}")
            about = json.loads(answer.read())
            if answer.status == 200:
                ask(f"api/frames?{place}&first={max(0, len(about['rounds']) - 2)}&most=100").read()


def main() -> None:
    """Measure both kinds of run, print the ratios, and write the record."""
    parser = arguments(__doc__ or "", 7)
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind of run")
    parser.add_argument("--episodes", type=int, help="of each run")
    parser.add_argument("--play", nargs=3, metavar="WHAT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        kind, folder, url = given.play
        print(json.dumps(play(kind, Path(folder), given.episodes, url)))
        return
    record: dict[str, Any] = {"machine": machine("llm-coop-envs", "aiohttp", "orjson")}
    with scripted_server("--remember", "1000000") as url:
        for kind in [given.only] if given.only else KINDS:
            record[kind] = pairs(kind, given.episodes or KINDS[kind][1], given.repeats, url)
    record["load"] = os.getloadavg()[0]
    write(record, given.json)


def pairs(kind: str, episodes: int, repeats: int, url: str) -> dict[str, Any]:
    """The figures of so many pairs, and their ratios."""
    measured(kind, episodes, url, watched=False)  # the first one finds out, and is not counted
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for turn in range(repeats):
        for watched in (False, True) if turn % 2 else (True, False):
            found[watched].append(measured(kind, episodes, url, watched=watched))
        told = {one: found[True][-1][one] / found[False][-1][one] for one in ("cpu", "wall")}
        print(f"{kind}, pair {turn + 1}: cpu {told['cpu']:.3f}, wall {told['wall']:.3f}", flush=True)
    shares = spread([100 * one["answering"] / one["cpu"] for one in found[True]])
    record: dict[str, Any] = {"looks": [one["looks"] for one in found[True]], "answering_percent": shares}
    print(row(f"{kind}, cpu of answering, %", shares, 30, 3), flush=True)
    for figure in ("cpu", "wall"):
        alone, seen = ([one[figure] for one in found[watched]] for watched in (False, True))
        ratios = [one / other for one, other in zip(seen, alone, strict=True)]
        record[figure] = {"alone": spread(alone), "watched": spread(seen), "ratio": spread(ratios), "ratios": ratios}
        for name in ("alone", "watched", "ratio"):
            print(row(f"{kind}, {figure} {name}", record[figure][name], 30, 3), flush=True)
    print(f"{kind}, looks of the page: {record['looks']}, load {os.getloadavg()[0]:.1f}", flush=True)
    return record


if __name__ == "__main__":
    main()
