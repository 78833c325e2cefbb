"""Fuzzing of every loader and reader: whatever a file holds, it is read, or refused with an error of our own.

`python tests/tools/fuzzing.py SECONDS [NAME...]` fuzzes each of them (`fuzz_targets`) for that many seconds of
computing time; `make fuzz` does.
"""

import contextlib
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz_targets import make_targets
from hypothesis import HealthCheck, Phase, Verbosity, given, settings

from llm_coop_envs.errors import LlmCoopError

MEMORY = 6 << 30


class TimeIsUp(BaseException):
    """The time for a target is over."""


def fuzz(target, seconds, derandomize=False):
    """Give a target what its strategy draws, for a time; returns how many were read, and errors that are not ours.

    Derandomized, all runs begin with the same inputs; how many there are hangs on the machine.
    """
    counts = {"inputs": 0, "refused": 0}
    found = {}
    end = time.process_time() + seconds

    @settings(
        max_examples=10**6,
        deadline=None,
        database=None,
        derandomize=derandomize,
        verbosity=Verbosity.quiet,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def read(content):
        if counts["inputs"] and time.process_time() > end:
            raise TimeIsUp
        counts["inputs"] += 1
        try:
            target.read(content)
        except LlmCoopError:
            counts["refused"] += 1
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = next((f for f in reversed(frames) if "llm_coop" in f.filename or "/baselines/" in f.filename), None)
            key = f"{type(error).__name__} at {place and Path(place.filename).name}:{place and place.lineno}"
            found.setdefault(key, "".join(traceback.format_exception(error))[-2500:])

    with contextlib.suppress(TimeIsUp):
        read()
    return counts, found


def cover(name, seconds):
    """Fuzz a loader of bytes once more, for new paths through the code; returns whether that failed."""
    program = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("covering.py")), seconds, name]
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([*program, place], check=False, capture_output=True, text=True)
    print(f"{name}, by paths: {done.stdout.strip() or 0} inputs, {'failed' if done.returncode else 'nothing found'}")
    if done.returncode:
        print(done.stderr[-3000:])
    return done.returncode != 0


def main(seconds, *names):
    failures = 0
    # What asks for all memory is a failure of its own, and not the machine's end.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as place:
        targets = make_targets(Path(place))
        for name in names or targets:
            counts, found = fuzz(targets[name], float(seconds))
            print(f"{name}: {counts['inputs']} inputs, {counts['refused']} refused, {len(found)} kinds of failures")
            for key, text in found.items():
                print(key, text, sep="\n", flush=True)
            failures += len(found)
            if importlib.util.find_spec("atheris") and targets[name].original is not None:
                failures += cover(name, seconds)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
