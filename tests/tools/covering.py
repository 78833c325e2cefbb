"""Fuzzing of a loader of bytes that looks for new paths through the code, with Atheris.

`python tests/tools/covering.py SECONDS NAME FOLDER`; `make fuzz` runs it where Atheris installs. What is found is
shown, and the exit code is not 0.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["llm_coop_envs"]):
    import fuzz_targets

    from llm_coop_envs.errors import LlmCoopError

LONGEST = 1 << 16


def main(seconds, name, place):
    target = fuzz_targets.make_targets(Path(place))[name]
    corpus = Path(place, "corpus")
    corpus.mkdir()
    (corpus / "sound").write_bytes(target.original)
    end, count = time.process_time() + float(seconds), 0

    def read_one(content):
        nonlocal count
        if time.process_time() > end:  # libFuzzer's own limit counts the clock
            print(count, flush=True)
            os._exit(0)
        count += 1
        with contextlib.suppress(LlmCoopError):
            target.read(content)

    limits = [f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=4096"]
    quiet = ["-verbosity=0", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], *limits, *quiet, str(corpus)], read_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
