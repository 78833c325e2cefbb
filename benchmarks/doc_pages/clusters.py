"""The documentation's page on several machines, with a simulation of where such a run spends its time.

    python -m llm_coop_envs.benchmarks.doc_pages.clusters record    # measures, simulates, writes clusters.json; minutes
    python -m llm_coop_envs.benchmarks.doc_pages.clusters > docs/clusters.md

A test compares the page with what this prints, and simulates a part of it again.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import filled, table
from llm_coop_envs.benchmarks.speed.harness import machine, spread
from llm_coop_envs.benchmarks.speed.llm_studies import through_clients
from llm_coop_envs.storage.lease import Lease

RECORD = Path(__file__).with_name("clusters.json")
PROSE = Path(__file__).with_name("clusters.md")
MACHINES = (1, 10, 100)
PARTS = 2  # on each machine, one per core
EPISODES = 1024  # side by side in a part: --episodes-at-once
CALLS = 500  # of an episode
STEPS_OF_A_CLAIM = 16  # operations on files to take and release one, and to write its events; a test counts them
LATENCY = 1.0
SLOW_FOLDER = 1e-3
STEPS_OF_A_SYNC = 2
BUSY = 0.9  # from there on something is what the run waits for
DEVICE, PROVIDER = 700.0, 10_000.0  # calls per second that models answer
SECONDS = 15.0
_CPU, _MODEL, _FOLDER = "own code", "model", "folder"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A run on several machines, as it is simulated.

    Attributes:
        machines: how many.
        cpu: seconds of own code per call and part, one call at a time.
        operation: seconds that the shared folder takes for one operation; it does one at a time, for all machines.
        sync: seconds until it has a part's answers on the disk; a part syncs all that came meanwhile at once.
        model: calls that models answer per second, on every machine; `None` if there is no limit.
        provider: calls that models answer per second for all machines; `None` if there is no limit.
        latency: seconds until a model has answered, beside waiting for its turn.
    """

    machines: int
    cpu: float
    operation: float
    sync: float
    model: float | None = None
    provider: float | None = None
    latency: float = LATENCY


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What came out.

    Attributes:
        calls: per second.
        busy: the share of the time in which each of the three was at work, on average: own code, model, folder.
    """

    calls: float
    busy: Mapping[str, float]

    @property
    def bottleneck(self) -> str:
        """What holds it up, if it is busy nearly always: models, else own code, else the folder; else latency."""
        # A folder that is always busy need not hold anything up: journals then write more at a time.
        return next((kind for kind in (_MODEL, _CPU, _FOLDER) if self.busy[kind] > BUSY), "latency")


def simulate(cluster: Cluster, seconds: float) -> Simulated:
    """Play episodes on a cluster for so many seconds, after as many that are not counted.

    Every part has `EPISODES` conversations of `CALLS` calls each. A call takes own code, waits for its turn at the
    model, for the answer, and until the answer is on the disk; before and after an episode its claim takes operations
    on the shared folder. All service times are fixed; where somebody waits, it is for those who came before.
    """
    parts = cluster.machines * PARTS
    free: dict[tuple[str, int], float] = {}
    worked: dict[str, float] = dict.fromkeys((_CPU, _MODEL, _FOLDER), 0.0)
    begun, end = seconds, 2 * seconds
    answered = 0
    # Calls, by how many their episode has left: whose answers are being written, and whose wait for the next time.
    writing: list[list[int]] = [[] for _ in range(parts)]
    waiting: list[list[int]] = [[] for _ in range(parts)]
    ticket = itertools.count()
    queue: list[tuple[float, int, str, int, int]] = []  # when, a number that keeps order, what, part, calls left

    def serve(kind: str, place: int, now: float, needs: float) -> float:
        start = max(now, free.get((kind, place), 0.0))
        free[kind, place] = start + needs
        worked[kind] += max(min(start + needs, end) - max(start, begun), 0.0)
        return start + needs

    def then(when: float, what: str, part: int, left: int) -> None:
        heapq.heappush(queue, (when, next(ticket), what, part, left))

    def write(now: float, part: int) -> None:
        writing[part], waiting[part] = waiting[part], []
        then(serve(_FOLDER, 0, now, STEPS_OF_A_SYNC * cluster.operation) + cluster.sync, "written", part, 0)

    for part in range(parts):
        for place in range(EPISODES):  # as if the run had been going on for a while
            then(cluster.latency * place / EPISODES, "call", part, CALLS * (place + 1) // EPISODES or 1)
    while queue[0][0] < end:
        now, _, what, part, left = heapq.heappop(queue)
        if what == "claim":
            then(serve(_FOLDER, 0, now, STEPS_OF_A_CLAIM * cluster.operation), "call", part, CALLS)
        elif what == "call":
            then(serve(_CPU, part, now, cluster.cpu), "ask", part, left)
        elif what == "ask":
            turn = now if cluster.provider is None else serve(_MODEL, 0, now, 1 / cluster.provider)
            turn = turn if cluster.model is None else serve(_MODEL, 1 + part // PARTS, turn, 1 / cluster.model)
            then(turn + cluster.latency, "answered", part, left)
        elif what == "answered":
            waiting[part].append(left)
            if not writing[part]:
                write(now, part)
        else:
            done, writing[part] = writing[part], []
            answered += len(done) if now >= begun else 0
            for other in done:
                then(now, "call" if other > 1 else "claim", part, other - 1)
            if waiting[part]:
                write(now, part)
    models = len({place for kind, place in free if kind == _MODEL})
    busy = {
        kind: worked[kind] / seconds / places
        for kind, places in ((_CPU, parts), (_MODEL, max(models, 1)), (_FOLDER, 1))
    }
    return Simulated(calls=answered / seconds, busy=busy)


def scenarios(rates: Mapping[str, float]) -> dict[str, list[Cluster]]:
    """What is simulated: each on `MACHINES`, with the rates of one machine as they were measured here."""
    own = {"cpu": rates["cpu_us"] / 1e6, "sync": rates["sync_us"] / 1e6}
    here, slow = rates["operation_us"] / 1e6, SLOW_FOLDER
    kinds: dict[str, dict[str, Any]] = {
        "models without a limit": {"operation": here},
        "models without a limit, slow folder": {"operation": slow, "sync": 10 * slow},
        f"{DEVICE:,.0f} calls/s on every machine": {"operation": here, "model": DEVICE},
        f"one provider, {PROVIDER:,.0f} calls/s": {"operation": here, "provider": PROVIDER},
    }
    return {
        name: [Cluster(machines=machines, **{**own, **kind}) for machines in MACHINES] for name, kind in kinds.items()
    }


def measure(repeats: int = 3) -> dict[str, Any]:
    """The rates of this machine that the simulation starts from; medians, with their spread."""
    (rows,) = through_clients(["lean"], repeats).values()
    found = {"cpu_us": [one.cpu_us for one in rows], "operation_us": [], "sync_us": [], "claim_us": []}
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        (folder / "claims").mkdir()
        for _ in range(repeats):
            found["claim_us"].append(_timed(lambda n: _take(folder / "claims" / str(n)), 500))
            found["operation_us"].append(_timed(lambda n: (folder / str(n)).touch(), 2000))
            found["sync_us"].append(_timed(lambda _: _sync(folder / "journal"), 200))
    return {name: spread(values) for name, values in found.items()}


def _timed(do: Any, times: int) -> float:
    started = time.perf_counter()
    for number in range(times):
        do(number)
    return 1e6 * (time.perf_counter() - started) / times


def _take(path: Path) -> None:
    lease = Lease(path, "part")
    assert lease.take()
    lease.release()


def _sync(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())


def record() -> None:
    """Measure, simulate, and write what came out."""
    measured = measure()
    rates = {name: figures["median"] for name, figures in measured.items()}
    found = {
        name: [{"machines": one.machines, **asdict(simulate(one, SECONDS))} for one in rows]
        for name, rows in scenarios(rates).items()
    }
    content = {"machine": machine("aiohttp"), "measured": measured, "simulated": found}
    RECORD.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def page() -> str:
    """The page's Markdown."""
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    names = {
        "cpu_us": "own code and HTTP for one call, one process (CPU)",
        "claim_us": "claiming an episode and giving it up",
        "operation_us": "creating a file",
        "sync_us": "writing 4 kB and waiting for the disk",
    }
    rows = [
        [names[name], *(f"{figures[one]:,.0f}" for one in ("min", "median", "max"))]
        for name, figures in kept["measured"].items()
    ]
    simulated = [
        [
            name if index == 0 else "",
            str(one["machines"]),
            f"{one['calls']:,.0f}",
            *(f"{one['busy'][kind]:.0%}" for kind in (_CPU, _MODEL, _FOLDER)),
            Simulated(calls=one["calls"], busy=one["busy"]).bottleneck,
        ]
        for name, found in kept["simulated"].items()
        for index, one in enumerate(found)
    ]
    told = {
        "measured": table(["microseconds", "least", "median", "most"], rows),
        "simulated": table(
            ["", "machines", "calls/s", *(f"{one} busy" for one in (_CPU, _MODEL, _FOLDER)), "held up by"], simulated
        ),
        "machine": f"{kept['machine']['cpu']}, {kept['machine']['cores']} cores, load {kept['machine']['load']:.1f} "
        f"before, Python {kept['machine']['python']}",
        "assumed": f"{PARTS} parts on each machine, {EPISODES} episodes side by side in each, {CALLS} calls an "
        f"episode, {LATENCY:g} s until an answer is there, {STEPS_OF_A_CLAIM} operations on files for an episode and "
        f"{STEPS_OF_A_SYNC} for each time a journal is written; a slow folder takes {SLOW_FOLDER * 1e3:g} ms for each",
    }
    return filled(PROSE, told)


def main(arguments: Sequence[str]) -> None:
    """Record, or print the page."""
    if list(arguments) == ["record"]:
        record()
    else:
        print(page(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
