import warnings

import pytest

from llm_coop_envs import kbc_v0

with warnings.catch_warnings():
    # PettingZoo's test package imports one of its own games in the way it calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import (
        api_test,
        max_cycles_test,
        parallel_api_test,
        parallel_seed_test,
        seed_test,
        state_test,
    )

# What the contract tests, which run on every scenario, do not have.
CASES = {
    "shall-we-talk": {"preset": "shall_we_talk", "players": 3},
    "large-scale": {"preset": "large_scale", "players": 4},
    "shifted": {"players": 3, "low": -7, "high": 9, "ratio": "4/3", "offset": -20},
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
# What api_test says about every environment whose observations hold text.
TEXT_WARNINGS = ("Observation space for each agent prob", "Action space for each agent prob", "Observation is not")


@cases
def test_parallel(case):
    parallel_api_test(kbc_v0.parallel_env(**case), num_cycles=60)
    parallel_seed_test(lambda: kbc_v0.parallel_env(**case), num_cycles=20)


@cases
def test_agent_by_agent(case):
    seed_test(lambda: kbc_v0.env(**case), num_cycles=20)
    state_test(kbc_v0.env(**case), kbc_v0.parallel_env(**case))
    with warnings.catch_warnings():
        for message in TEXT_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        api_test(kbc_v0.env(**case), num_cycles=60)
        api_test(kbc_v0.raw_env(**case), num_cycles=60)


def test_cycles_are_counted():
    max_cycles_test(kbc_v0)
