"""A program that plays a study with a model, to be killed by tests.

It reads one JSON line per session from standard input, and plays each session in a child process forked from this one,
which has everything imported already: a hundred sessions start in the time of one.
"""

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401  # imported before the fork, as all of the following

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies.llm.asking.live import open_chat as open_chat
from llm_coop_envs.policies.llm.clients import lean as lean
from llm_coop_envs.runs.manifest import describe_models
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.storage.folder import versions
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.study import parse_study

AT_ONCE = 64
KBC = "{name: warm, conditions: [{name: kbc, scenario: kbc, policies: poisson, episodes: 1}]}"


def session(study, folder, url, part=None):
    plan = with_players(parse_study(study, "study.yaml"), read_player("llm:scripted"))
    limits = {"start": AT_ONCE, "most": AT_ONCE}
    run_study(plan, Path(folder), access=ModelAccess(endpoint={"base_url": url, "limits": limits}, part=part))


def warm_up():
    """Make before the fork what every session needs: scenarios with their wordings, the policy with its prompts."""
    for scenario in (bertrand_v0, evacuation_v0, kbc_v0):
        scenario.parallel_env().reset(seed=0)
    describe_models(with_players(parse_study(KBC, "study.yaml"), read_player("llm:scripted")))
    versions()


def main():
    warm_up()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                session(**json.loads(line))
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
