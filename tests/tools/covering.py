"""Fuzzing of a loader of bytes that looks for new paths through the code, with Atheris.

`python tests/tools/covering.py SECONDS NAME FOLDER`; `make fuzz` runs it where Atheris installs. What is found is
shown, and the exit code is not 0.
"""

import contextlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["llm_coop_envs"]):
    import fuzzing

    from llm_coop_envs.errors import LlmCoopError

LONGEST = 1 << 16


def main(seconds, name, place):
    targets = fuzzing.make_targets(Path(place))
    read = targets.all()[name][1]
    corpus = Path(place, "corpus")
    corpus.mkdir()
    (corpus / "sound").write_bytes(targets.originals[name])

    def read_one(content):
        with contextlib.suppress(LlmCoopError):
            read(content)

    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=4096"]
    quiet = ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], *limits, *quiet, str(corpus)], read_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
