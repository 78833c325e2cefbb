"""Without the compiler (extra `rl`) only the analysis can be tested."""

import importlib.util

NEED_THE_COMPILER = [
    "test_command_line.py",
    "test_docked.py",
    "test_environment.py",
    "test_learner.py",
    "test_runs.py",
    "test_streams.py",
]
collect_ignore = [] if importlib.util.find_spec("numba") else NEED_THE_COMPILER
