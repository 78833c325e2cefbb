"""The speed of the page of `llm-coop view` on a run of a million agents: first view, pages of agents, memory.

`python -m llm_coop_envs.benchmarks.speed.view FOLDER` writes such a run (random numbers in a beauty contest of five
rounds, one recorded question for each agent; with `--talk`, a message of each), and asks a server what the page asks:
of a run that was never read, while it is read, and then.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.speed.watching import serving
from llm_coop_envs.policies.llm.journal.frames import FOLDER, ZSTD, packer
from llm_coop_envs.runs.episode import PlayedEpisode
from llm_coop_envs.runs.folder import Run, make_run
from llm_coop_envs.storage.folder import COMPLETE
from llm_coop_envs.studies.study import parse_study

ROUNDS = 5
_STUDY = """\
name: million
conditions:
  - name: contest
    scenario: kbc
    settings: {{talk: {talk}, session: repeated, rounds: {rounds}, players: {agents}}}
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
SEARCHES = {
    "said by all": "number",
    "said by one in twelve": "less than you think",
    "said by one": "my name is player_777,",
    "said by nobody": "quite another thing",
}
WORDS = ("number", "less", "more", "than", "you", "think", "of", "mean", "most", "lower", "higher", "all", "far")
FIRST = ("runs", "run?run=million", f"episode?{_PLACE}", f"frames?{_PLACE}&first=0&most=1", f"agents?{_PLACE}&first=0")


def make_large(folder: Path, agents: int, *, talk: bool = False) -> Run:
    """Write a run of one episode with `agents` agents, as if it had been played."""
    study = _STUDY.format(agents=agents, rounds=ROUNDS, talk=str(talk).lower())
    run = make_run(parse_study(study, "million.yaml"), folder)
    condition = run.conditions[0]
    names = [f"player_{number}" for number in range(agents)]
    policies = dict(zip(names, ["kbc/uniform", "kbc/poisson"] * agents, strict=False))
    personas = dict(zip(names, ["baker", "nurse", "pilot", "judge"] * agents, strict=False))
    answers = [{"policy": "kbc/uniform", "seats": [], "personas": personas, "models": {}, "calls": {}}]
    header, *_ = run.episode_records(condition.name, 0, PlayedEpisode(policies=policies, events=[], answers=answers))
    path = run.events_path(condition.name, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb", compresslevel=1) as file:
        for record in (header, *_events(run, names, talk=talk)):
            file.write(json.dumps(record).encode() + b"\n")
    (folder / FOLDER).mkdir()
    pack, lines = packer(ZSTD), _answers(names)
    with (folder / FOLDER / f"main{ZSTD}").open("wb") as journal:
        while some := list(islice(lines, 256)):
            journal.write(pack(b"".join(json.dumps(line).encode() + b"\n" for line in some)))
    run.write(files={**run.manifest["files"], **run.unrecorded_files()}, finished=1)
    number = run.begin(command="")
    run.end(number, COMPLETE)
    return run


def _events(run: Run, names: list[str], *, talk: bool) -> Iterator[dict[str, Any]]:
    condition, rng = run.conditions[0], np.random.default_rng(0)
    about = {"seed": 0, "scenario": condition.spec.env_name, "settings": condition.settings, "agents": names}
    yield {"type": "start", "step": 0, "round": 0, **about}
    for i, name in enumerate(names if talk else ()):
        ending = " ".join(WORDS[index] for index in rng.integers(len(WORDS), size=12))
        text = f"my name is {name}, I choose a number {ending}{' less than you think' if i % 12 == 0 else ''}"
        yield {"type": "message", "step": 0, "round": 1, "agent": name, "text": text, "hearers": names[i - 3 : i]}
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
        record = {"request": {"messages": messages, "model": "m"}, "reply": reply, "tokens": 92, "usd": 0.00001}
        yield {"type": "answer", "key": key, "hash": "0" * 64, **record}


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Make the run unless it is there, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the run is, or is written")
    parser.add_argument("--agents", type=int, default=1_000_000)
    parser.add_argument("--talk", action="store_true", help="a run in which everybody said something")
    options = parser.parse_args()
    runs = options.folder / ("talk" if options.talk else "silent")
    if not (runs / "million" / "run.json").is_file():
        seconds = _timed(lambda: make_large(runs / "million", options.agents, talk=options.talk))
        print(f"written in {seconds:.1f} s", flush=True)
    caches = options.folder / "caches"
    shutil.rmtree(caches, ignore_errors=True)
    os.environ["XDG_CACHE_HOME"] = str(caches)
    with serving(runs) as (server, ask):

        def get(question: str) -> int:
            answer = ask(f"api/{question}")
            body = answer.read()
            assert answer.status in (200, 202), body[:300]
            return answer.status

        _measure_unread(get)
        print(f"first view, read before: {_timed(lambda: [get(question) for question in FIRST]):.2f} s")
        questions = QUESTIONS
        if options.talk:
            questions = {name: f"agents?{_PLACE}&said={text.replace(' ', '+')}" for name, text in SEARCHES.items()}
        for name, question in questions.items():
            times = [_timed(functools.partial(get, question)) for _ in range(6)]
            middle = sorted(times[1:])[2]
            print(f"{name}: first {times[0] * 1000:.0f} ms, then {middle * 1000:.0f} ms", flush=True)
        status = Path(f"/proc/{server.pid}/status")
        if status.is_file():
            peak = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
            print(f"most memory of the server: {int(peak.split()[1]) / 1024:.0f} MB")
        size = sum(path.stat().st_size for path in caches.rglob("*.sqlite*"))
        print(f"index: {size / 1e6:.0f} MB; load: {os.getloadavg()[0]:.1f}")


def _measure_unread(get: Callable[[str], int]) -> None:
    """Measure when answers about a never read run arrive, and how fast the server answers meanwhile."""
    began = time.perf_counter()
    seconds: dict[str, float] = {}
    slowest = 0.0, ""
    while len(seconds) < len(FIRST) + 1:
        for question in (*FIRST, f"story?{_PLACE}&number=777"):
            sent = time.perf_counter()
            status = get(question)
            slowest = max(slowest, (time.perf_counter() - sent, question.partition("?")[0]))
            if question not in seconds and status == 200:
                seconds[question] = time.perf_counter() - began
                print(f"never read: {question.partition('?')[0]} there after {seconds[question]:.2f} s", flush=True)
        time.sleep(0.25)
    print(f"never read: the slowest answer meanwhile took {slowest[0] * 1000:.0f} ms ({slowest[1]})")


if __name__ == "__main__":
    main()
