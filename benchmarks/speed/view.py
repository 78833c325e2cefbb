"""How fast the page of `llm-coop view` shows a run of a million agents: first view, pages of agents, memory.

`python -m llm_coop_envs.benchmarks.speed.view FOLDER [AGENTS]` writes such a run (random numbers in a beauty contest of
five rounds, one recorded question for each agent), reads it for the first time, and asks a server what the page asks.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.cookies import SimpleCookie
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.run.episode import Played
from llm_coop_envs.benchmarks.run.folder import Run, make_run, open_run
from llm_coop_envs.benchmarks.study.study import parse_study
from llm_coop_envs.policies.llm.journal.frames import FOLDER, ZSTD, packer
from llm_coop_envs.storage.folder import COMPLETE

ROUNDS = 5
_STUDY = """\
name: million
conditions:
  - name: contest
    scenario: kbc
    settings: {{talk: false, session: repeated, rounds: {rounds}, players: {agents}}}
    policies: {{mix: [{{name: uniform, share: 1}}, {{name: poisson, share: 1}}]}}
    seeds: [0]
"""
_PLACE = "run=million&condition=contest&seed=0"
QUESTIONS = {
    "page of agents": f"agents?{_PLACE}&first=0",
    "page in the middle": f"agents?{_PLACE}&first=500000",
    "by policy": f"agents?{_PLACE}&policy=kbc/poisson",
    "by persona, in the middle": f"agents?{_PLACE}&persona=baker&first=200000",
    "by choice": f"agents?{_PLACE}&low=31&high=32",
    "by name": f"agents?{_PLACE}&name=player_9999",
    "lowest choices first": f"agents?{_PLACE}&sort=last",
    "by model": f"agents?{_PLACE}&model=m",
    "one agent's story": f"story?{_PLACE}&number=777",
}
FIRST = ("runs", "run?run=million", f"episode?{_PLACE}", f"frames?{_PLACE}&first=0&most=1", f"agents?{_PLACE}&first=0")


def make_large(folder: Path, agents: int) -> Run:
    """Write a run of one episode with so many agents, as if it had been played."""
    run = make_run(parse_study(_STUDY.format(agents=agents, rounds=ROUNDS), "million.yaml"), folder)
    condition = run.conditions[0]
    names = [f"player_{number}" for number in range(agents)]
    policies = dict(zip(names, ["kbc/uniform", "kbc/poisson"] * agents, strict=False))
    personas = dict(zip(names, ["baker", "nurse", "pilot", "judge"] * agents, strict=False))
    answers = [{"policy": "kbc/uniform", "seats": [], "personas": personas, "models": {}, "calls": {}}]
    header, *_ = run.episode_records(condition.name, 0, Played(policies=policies, events=[], answers=answers))
    path = run.events_path(condition.name, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb", compresslevel=1) as file:
        for record in (header, *_events(run, names)):
            file.write(json.dumps(record).encode() + b"\n")
    (folder / FOLDER).mkdir()
    pack, lines = packer(ZSTD), _answers(names)
    with (folder / FOLDER / f"main{ZSTD}").open("wb") as journal:
        while some := list(islice(lines, 256)):
            journal.write(pack(b"".join(json.dumps(line).encode() + b"\n" for line in some)))
    run.write(files={**run.manifest["files"], **run.unrecorded()}, finished=1)
    number = run.begin(command="")
    run.end(number, COMPLETE)
    return run


def _events(run: Run, names: list[str]) -> Iterator[dict[str, Any]]:
    condition, rng = run.conditions[0], np.random.default_rng(0)
    about = {"seed": 0, "scenario": condition.spec.env_name, "settings": condition.settings, "agents": names}
    yield {"type": "start", "step": 0, "round": 0, **about}
    for number in range(1, ROUNDS + 1):
        at = {"step": number - 1, "round": number}
        choices = rng.integers(0, 101, len(names)).tolist()
        for name, choice in zip(names, choices, strict=True):
            yield {"type": "choice", **at, "agent": name, "phase": "act", "choice": choice, "flags": []}
        mean = float(np.mean(choices))
        target = 2 * mean / 3
        winners = np.flatnonzero(np.array(choices) == round(target)).tolist()
        settled = {"choices": choices, "mean": mean, "target": target, "winners": winners, "prize": 100.0}
        yield {"type": "round", **at, **settled, "group_numbers": None, "winning_groups": None}
    yield {"type": "end", "step": ROUNDS, "round": ROUNDS, "reason": "all decisions made", "truncated": False}


def _answers(names: list[str]) -> Iterator[dict[str, Any]]:
    messages = [["user", "Choose a number from 0 to 100. Who is nearest to 2/3 of the mean wins. " * 4]]
    reply = {"text": "33", "finish_reason": "stop", "model": "m", "latency": 1.0, "cost": 0.00001}
    reply["usage"] = {"prompt": 90, "completion": 2}
    for name in names:
        key = ["contest/0", name, 0, "choose", 0]
        more = {"request": {"messages": messages, "model": "m"}, "reply": reply, "tokens": 92, "usd": 0.00001}
        yield {"type": "answer", "key": key, "hash": "0" * 64, **more}


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(folder: Path, agents: int) -> None:
    """Make the run unless it is there, and print what was measured."""
    if not (folder / "million" / "run.json").is_file():
        print(f"written in {_timed(lambda: make_large(folder / 'million', agents)):.1f} s", flush=True)
    run = open_run(folder / "million")
    words = [sys.executable, "-m", "llm_coop_envs.benchmarks.view.index", str(run.folder)]
    for what, more in (("events", ["contest/0"]), ("journal", [])):
        seconds = _timed(partial(subprocess.run, [*words, *more], check=True))
        print(f"{what} read once in {seconds:.1f} s", flush=True)
    command = [sys.executable, "-m", "llm_coop_envs.benchmarks.cli.main", "view", str(folder), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        host, _, path = address.removeprefix("http://").partition("/")
        talk = http.client.HTTPConnection(host)
        talk.request("GET", f"/{path}")
        answer = talk.getresponse()
        answer.read()
        (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()

        def get(question: str) -> bytes:
            talk.request("GET", f"/api/{question}", headers={"Cookie": f"{cookie.key}={cookie.value}"})
            found = talk.getresponse()
            body = found.read()
            assert found.status == 200, body[:300]
            return body

        print(f"first view: {_timed(lambda: [get(one) for one in FIRST]):.2f} s")
        for what, question in QUESTIONS.items():
            times = sorted(_timed(partial(get, question)) for _ in range(5))
            print(f"{what}: median {times[2] * 1000:.0f} ms, at most {times[-1] * 1000:.0f} ms", flush=True)
        status = Path(f"/proc/{server.pid}/status")
        if status.is_file():
            peak = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
            print(f"most memory of the server: {int(peak.split()[1]) / 1024:.0f} MB")
        print(f"load: {os.getloadavg()[0]:.1f}")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
