"""What a checkout costs, group by group: `python -m llm_coop_envs.benchmarks.speed.figures steps` prints one as JSON.

Every figure is a cost, so that less is better. Time is that of the measuring process's processor: what else runs on the
machine counts little.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from llm_coop_envs.benchmarks.speed import batches, llm
from llm_coop_envs.benchmarks.speed.cases import CASES
from llm_coop_envs.benchmarks.speed.llm_studies import own_code, through_clients
from llm_coop_envs.benchmarks.speed.report import STUDY
from llm_coop_envs.benchmarks.speed.view import make_large
from llm_coop_envs.kbc_v0 import parallel_env as kbc_env
from llm_coop_envs.page.index import Index
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import parse_study

Figures = dict[str, float]
MILLION = 1_000_000
EPISODES, AGENTS, OPEN_REQUESTS = 400, 50_000, 2_000


@dataclass(frozen=True, kw_only=True)
class Group:
    """Figures that are measured together.

    Attributes:
        unit: of all of them.
        measure: measures them once.
        goals: what some of them should not exceed.
    """

    unit: str
    measure: Callable[[], Figures]
    goals: Mapping[str, float] = field(default_factory=dict)


def steps() -> Figures:
    """Measure the environments' steps, and those of peers."""
    figures: Figures = {}
    for case in CASES:
        batch = case.prepare()
        batch(0.1)
        spent = [batch(0.1) for _ in range(5)]
        figures[case.name] = min(1e6 * seconds / count for seconds, count in spent)
    env = kbc_env(players=MILLION, session="repeated", rounds=5, talk=False)
    env.begin(seed=0)
    choices = np.random.default_rng(0).integers(0, 101, MILLION)
    env.advance(choices)
    begun = time.process_time()
    env.advance(choices)
    figures["kbc, a settled round of a million"] = 1e6 * (time.process_time() - begun) / MILLION
    return figures


def batched(games: tuple[str, ...], copies: int) -> Figures:
    """Measure our batches of some games, and one of these games."""
    ours = {name: make for name, make in batches.cases(copies).items() if name.startswith(games)}
    return {name: 1e9 / rate(0) for name, rate in batches.prepared(ours).items()}


def periods() -> Figures:
    """Measure the compiled Q-learner; nothing where numba is not installed."""
    try:
        from llm_coop_envs.benchmarks.speed import q_learning

        return {name: case["ns_per_period"]["min"] for name, case in q_learning.speeds(2).items()}
    except ImportError:
        return {}


def imports() -> Figures:
    """Measure importing the package, and pettingzoo alone, in fresh interpreters."""
    code = "import time, sys; t = time.process_time(); import {}; print(time.process_time() - t, len(sys.modules))"

    def first(name: str) -> float:
        command = [sys.executable, "-c", code.format(name)]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
        return 1e3 * min(float(seconds) for seconds, _ in runs)

    return {"import llm_coop_envs": first("llm_coop_envs"), "peer: import pettingzoo": first("pettingzoo")}


def questions() -> Figures:
    """Measure a question to a model: everything but the HTTP client."""
    figures = {f"a question, {name}": min(run.cpu_us for run in runs) for name, runs in own_code(2, share=0.25).items()}
    return {**figures, "key, hash, queue, budget and journal": llm.chain(2)["chain_cpu_us"]["min"]}


def journal() -> Figures:
    """Measure answers that are read back from a journal."""
    figures = llm.replay(2)
    return {"a replayed answer": figures["replay_us"]["min"], "opening, an answer": figures["replay_opening_us"]["min"]}


def client() -> Figures:
    """Measure a call through the lean client, HTTP and all."""
    return {"a call through the lean client": through_clients(["lean"], 1)["lean"][0].cpu_us}


def memory() -> Figures:
    """Measure what open requests take."""
    figures = llm.open_requests(OPEN_REQUESTS)
    return {f"{OPEN_REQUESTS:,} open requests": figures[f"open_{OPEN_REQUESTS}_more_mib"]}


def report() -> Figures:
    """Measure a report."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        run = Path(folder) / "run"
        run_study(parse_study(STUDY.replace("EPISODES", str(EPISODES // 2)), "many"), run)
        with _children() as spent:
            command = [sys.executable, "-m", "llm_coop_envs", "report", str(run), "-o", str(Path(folder) / "report")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {f"a report of {EPISODES} episodes": spent[0]}


def index() -> Figures:
    """Measure the index that the page makes of a run of many agents: its episode, and its journal."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        run = make_large(Path(folder) / "many", AGENTS)
        begun = time.process_time()
        page_index = Index(run)
        page_index.take_episode(run.conditions[0].name, 0)
        page_index.take_journal()
        return {f"the page's index of {AGENTS:,} agents": time.process_time() - begun}


@contextlib.contextmanager
def _children() -> Iterator[list[float]]:
    """Processor seconds of the processes that end inside; a list that gets them at the end."""
    spent: list[float] = []
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield spent
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.append(usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime)


_QUESTIONS = {"kbc": 150.0, "evacuation": 150.0, "kbc_json": 80.0, "evacuation_json": 80.0}
_EVACUATIONS = ("evacuation", "evacuation of exits", "evacuation of exits, at once", "evacuation at once")
GROUPS: Mapping[str, Group] = {
    "steps": Group(
        unit="µs an agent-step",
        measure=steps,
        goals={case.name: case.target for case in CASES if case.target is not None},
    ),
    "batches": Group(
        unit="ns an agent-step",
        measure=functools.partial(batched, ("bertrand", "kbc"), 1024),
        goals={
            "bertrand, batch of 1,024": 50.0,
            "bertrand, continuous prices, batch of 1,024": 50.0,
            "kbc, 24 players, batch of 256": 50.0,
            "kbc nested, 24 players, batch of 256": 50.0,
        },
    ),
    # By themselves: what a checkout lacks costs it the figures of the whole group.
    "evacuations": Group(
        unit="ns an agent-step",
        measure=functools.partial(batched, ("evacuation",), 4096),
        goals={f"{name}, batch of 256": 200.0 for name in _EVACUATIONS},
    ),
    "q_learning": Group(unit="ns a period", measure=periods),
    "import": Group(unit="ms", measure=imports),
    "questions": Group(
        unit="µs",
        measure=questions,
        goals={f"a question, {name}": goal for name, goal in _QUESTIONS.items()},
    ),
    "journal": Group(unit="µs", measure=journal, goals={"a replayed answer": 20.0}),
    "client": Group(unit="µs", measure=client, goals={"a call through the lean client": 333.0}),
    "memory": Group(unit="MiB", measure=memory),
    "report": Group(unit="s", measure=report),
    "index": Group(unit="s", measure=index),
}


def main() -> None:
    """Print the figures of one group."""
    figures = GROUPS[sys.argv[1]].measure()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
