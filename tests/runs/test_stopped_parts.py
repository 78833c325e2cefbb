"""Parts that cannot see each other's processes: only what was in flight is asked twice, whoever is stopped and when.

Every part has a PID namespace of its own. One is stopped in the middle for longer than its lease, another takes over
what it had begun, and the first one is woken. The server counts what arrives, the journals say what was to be decided.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llm_tools import ENVIRONMENT

from llm_coop_envs.policies.llm.journal import read_questions, read_run
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread
from llm_coop_envs.runs.folder import open_run

PROGRAM = Path(__file__).parents[1] / "tools" / "stopped_parts.py"
KINDS = ("namespaces", "hosts", "clocks", "late")
MOST_SECONDS = 120


def may_unshare():
    command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


pytestmark = pytest.mark.skipif(not may_unshare(), reason="needs the right to make PID namespaces")


class Program:
    """The program that forks parts."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
        self.process = subprocess.Popen([sys.executable, str(PROGRAM)], **pipes)
        assert self.process.stdout.readline() == "ready\n"

    def begin(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def program():
    made = Program()
    yield made
    made.process.communicate()  # closes its standard input, at which it ends


def ended(path):
    end = time.monotonic() + MOST_SECONDS
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} does not end"
        time.sleep(0.02)
    return json.loads(path.read_text())


def trial(program, folder, kind, seed):
    draw = random.Random(seed)
    folder.mkdir()

    def begin(part, number):
        host = f"host-{number}" if kind == "hosts" else "same"
        order = {"folder": str(folder / "run"), "url": server.base_url, "part": part, "host": host}
        order.update(clock=600 * number if kind == "clocks" else 0, late=kind == "late", result=str(folder / part))
        return program.begin(**order), folder / part

    with in_thread(ScriptedServer(scripted_answer, latency=0.1)) as server:
        victim, first = begin("a", 0)
        stop_at = draw.randint(3, 40)
        while sum(server.asked.values()) < stop_at and not first.exists():
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.1))
        stopped = not first.exists()
        if stopped:
            os.kill(victim, signal.SIGSTOP)
        time.sleep(1.75)  # what had been sent has arrived
        # In flight is what the journal says is being sent: the part may have been stopped just before it did so.
        in_flight = sum(one.calls - one.answers for one in read_run(folder / "run"))
        arrived = sum(server.asked.values()) - sum(one.answers for one in read_run(folder / "run"))
        _, other = begin("b", 1)
        time.sleep(draw.uniform(1.0, 3.0))
        if stopped:
            os.kill(victim, signal.SIGCONT)
        told = [ended(first), ended(other)]
        told.append(ended(begin("c", 2)[1]))
    run = open_run(folder / "run")
    assert run.complete, told
    decisions = {key for key, _ in read_questions(folder / "run")}
    again = sum(server.asked.values()) - len(decisions)
    taken, *starved = (sum("was taken over by another" in sentence for sentence in one.get("said", ())) for one in told)
    # A busy machine stops parts, too: what those had in flight nobody has counted.
    assert 0 <= again <= in_flight or any(starved), (again, in_flight, arrived, told)
    counts = {"again": again, "in flight": in_flight, "arrived": arrived, "taken over": taken, "stopped": stopped}
    return {**counts, "starved": sum(starved), "decisions": len(decisions), "requests": sum(server.asked.values())}


def trials(program, folder, count, at_once):
    def one(number):
        return trial(program, folder / f"{KINDS[number % 4]}-{number}", KINDS[number % 4], number)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(count)))


def test_a_part_that_is_stopped_and_woken_asks_nothing_again(program, tmp_path):
    found = trials(program, tmp_path, 4, 2)
    assert any(one["taken over"] and not one["starved"] for one in found), "else this proves nothing"


@pytest.mark.rare
def test_a_hundred_parts_are_stopped_and_woken(program, tmp_path):
    found = trials(program, tmp_path, 100, 5)
    print({name: sum(one[name] for one in found) for name in found[0]})
    assert sum(one["taken over"] for one in found if not one["starved"]) >= 50
