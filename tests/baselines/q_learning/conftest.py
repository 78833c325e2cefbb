"""Without the compiler (extra `rl`) only the analysis can be tested."""

import importlib.util

NEED_THE_COMPILER = [
    "reproduce/test_command_line.py",
    "reproduce/test_docked.py",
    "learn/test_environment.py",
    "learn/test_learner.py",
    "reproduce/test_runs.py",
    "learn/test_streams.py",
]
collect_ignore = [] if importlib.util.find_spec("numba") else NEED_THE_COMPILER
