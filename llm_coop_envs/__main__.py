"""`python -m llm_coop_envs` is the command `llm-coop`."""

import sys
from pathlib import Path

# `python -m` searches the working directory first, which may be somebody else's run.
if sys.path and Path(sys.path[0] or ".").resolve() == Path.cwd() and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from llm_coop_envs.cli.main import main

if __name__ == "__main__":
    main()
