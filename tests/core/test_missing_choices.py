"""What counts where nothing was chosen."""

import pytest
from toy import ToyEnv

from llm_coop_envs.interface.hooks import Hooks


def test_a_scenario_with_continuous_choices_says_what_counts_for_a_missing_one():
    class Auction(ToyEnv):
        """Leaves it open what a missing bid is."""

        _clean = Hooks._clean

    with pytest.raises(NotImplementedError, match="Auction: define _missing"):
        Auction(continuous=True, talk=False)
    Auction(talk=False)

    class Answered(Auction):
        """A missing bid is the highest one."""

        def _missing(self, who):
            return 10.0

    env = Answered(continuous=True, talk=False, record=True)
    env.reset(seed=0)
    env.step({env.agents[0]: {"choice": 3.0}})
    choices = [event["choice"] for event in env.events if event["type"] == "choice"]
    assert choices == [3.0] + [10.0] * (env.n_players - 1)
