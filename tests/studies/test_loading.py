"""A study imports the scenarios that it names, and no other."""

import subprocess
import sys

from llm_coop_envs.core.registry import shipped_names

STUDY = """\
name: two_episodes
conditions:
  - {name: beauty, scenario: kbc, settings: {players: 4, rounds: 2}, policies: uniform, episodes: 2}
measures: [variance_last]
"""
PROGRAM = """\
import sys, tempfile
from pathlib import Path
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import parse_study

assert run_study(parse_study(sys.argv[1], "study"), Path(tempfile.mkdtemp(), "run")).complete
print(*(name.split(".")[1] for name in sys.modules if name.startswith("llm_coop_envs.")))
"""


def test_a_study_loads_no_module_of_another_scenario():
    done = subprocess.run([sys.executable, "-c", PROGRAM, STUDY], capture_output=True, text=True, check=True)
    loaded = {name.removesuffix("_v0") for name in done.stdout.split()}
    assert loaded & set(shipped_names()) == {"kbc"}
