"""A program that plays parts of runs in PID namespaces of their own, with leases of a second or two.

It reads one JSON line per part from standard input, forks the part from itself, and prints the number of its process.
"""

import ctypes
import json
import os
import socket
import sys
import time
import traceback
from pathlib import Path

from playing import warm_up

from llm_coop_envs.policies.llm.asking import shared_ledger
from llm_coop_envs.policies.llm.journal import writer
from llm_coop_envs.runs import claims
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.storage import lease
from llm_coop_envs.storage.machine import HERE, Machine
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.study import parse_study

NEW_PID_NAMESPACE = 0x20000000
STUDY = """\
name: stopped
seed: 1
conditions:
  - name: kbc
    scenario: kbc
    settings: {players: 3, exchanges: 1}
    policies: poisson
    episodes: 6
"""
# A minute is a second and a half.
lease.HEARTBEAT = claims.HEARTBEAT = writer.HEARTBEAT = 0.25
lease.STALE, lease.WATCH, lease.TRUST = 1.5, 0.75, 0.5
claims.WATCH = claims.LATE = 0.75
shared_ledger._LOOK = 0.1
LATE = 0.5


class Told(Watcher):
    """Keeps what was said."""

    def __init__(self):
        self.sentences = []

    def say(self, sentence):
        self.sentences.append(sentence)


def show_late(machine):
    """Let a machine list new names half a second late, if others made them."""
    mine = set()

    def names(folder):
        now = time.time()
        return [
            one for one in Machine.names(machine, folder) if folder / one in mine or now - made(folder / one) > LATE
        ]

    def made(path):
        try:
            return path.stat().st_ctime
        except OSError:
            return 0.0

    def create(path):
        mine.add(path)
        return Machine.create(machine, path)

    machine.names, machine.create = names, create


def play(folder, url, part, host, clock, late, result):
    socket.gethostname = lambda: host
    real = time.time
    if late:
        show_late(HERE)
    elif clock:
        time.time = lambda: real() + clock
    told = Told()
    try:
        plan = with_players(parse_study(STUDY, "study.yaml"), read_player("llm:scripted"))
        endpoint = {"base_url": url, "limits": {"start": 16, "most": 16}}
        outcome = run_study(plan, Path(folder), access=ModelAccess(endpoint=endpoint, part=part), watcher=told)
        found = {"complete": outcome.complete, "played": outcome.played}
    except BaseException:
        found = {"failed": traceback.format_exc()}
    Path(result + ".new").write_text(json.dumps({**found, "said": told.sentences}))
    os.replace(result + ".new", result)
    os._exit(0)


def main():
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        read, write = os.pipe()
        middle = os.fork()
        if middle == 0:  # its children are in a new namespace
            if ctypes.CDLL(None, use_errno=True).unshare(NEW_PID_NAMESPACE):
                os._exit(1)
            child = os.fork()
            if child == 0:
                play(**order)
            os.write(write, str(child).encode())
            os.waitpid(child, 0)
            os._exit(0)
        os.close(write)
        print(int(os.read(read, 20) or b"0"), flush=True)
        os.close(read)


if __name__ == "__main__":
    main()
