"""Killed at any moment, a run goes on where it was: nothing that was written down is asked again."""

import asyncio
import contextlib
import importlib.util
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from llm_tools import ENVIRONMENT

from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, digest_answer

PROGRAM = Path(__file__).parents[3] / "tools" / "asking.py"
CONVERSATIONS, STEPS = 100, 12

spec = importlib.util.spec_from_file_location("asking", PROGRAM)
asking = importlib.util.module_from_spec(spec)
spec.loader.exec_module(asking)


class Killer:
    """A server that kills whoever asks it, at the n-th answer and a little later."""

    def __init__(self, draw):
        self.draw = draw
        self.answers = 0
        self.at = None
        self.victim = None
        self.kills = 0
        self.server = ScriptedServer(self.answer, latency=0.004)

    def answer(self, prompt, metadata):
        self.answers += 1
        if self.answers == self.at:
            asyncio.get_running_loop().call_later(self.draw.uniform(0, 0.02), self.kill, self.victim)
        return digest_answer(prompt)

    def kill(self, victim):
        if victim is not None and victim == self.victim:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)


async def play(folder, out, kills, seed):
    """Play one run, killed so many times; returns how often it really was, and the server."""
    draw = random.Random(seed)
    killer = Killer(draw)
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    async with killer.server as server:
        order = {"folder": str(folder), "url": server.base_url, "out": str(out)}
        order |= {"conversations": CONVERSATIONS, "steps": STEPS}
        while not out.exists():
            left = CONVERSATIONS * STEPS - len(server.answered)
            killer.at = killer.answers + draw.randint(1, max(1, 2 * left // max(1, kills))) if kills > 0 else None
            program.stdin.write(json.dumps(order).encode() + b"\n")
            killer.victim = int(await program.stdout.readline())
            status = int(await program.stdout.readline())
            killer.victim = None
            assert status in (0, -signal.SIGKILL)
            if status:
                killer.kills += 1
                kills -= 1
        program.stdin.close()
        await program.wait()
    return killer.kills, server


def check(tmp_path, kills, seed):
    folder, out = tmp_path / "run", tmp_path / "out.json"
    killed, server = asyncio.run(play(folder, out, kills, seed))
    assert json.loads(out.read_text()) == asking.expected(CONVERSATIONS, STEPS)
    (report,) = read_run(folder)
    again = sum(server.asked.values()) - len(server.asked)
    assert len(server.asked) == report.answers == CONVERSATIONS * STEPS
    assert not report.gaps
    assert report.double == 0
    # Every attempt was written down before it was sent; what has no outcome was in flight at a kill, and only that
    # was asked twice.
    assert again <= report.lost <= asking.AT_ONCE * killed
    assert sum(server.asked.values()) <= report.calls
    return killed, again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_some_moments(tmp_path):
    killed, _ = check(tmp_path, kills=5, seed=0)
    assert killed >= 2


@pytest.mark.rare
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_a_hundred_random_moments(tmp_path):
    killed, again, seed = 0, 0, 1
    while killed < 100:
        (tmp_path / str(seed)).mkdir()
        more, twice = check(tmp_path / str(seed), kills=10, seed=seed)
        killed, again, seed = killed + more, again + twice, seed + 1
    assert again > 0  # else the kills hit nothing in flight, and proved nothing
