"""The numeric view in TorchRL's `PettingZooWrapper`.

`pip install torchrl`, then `pytest -m torchrl tests/integrations`.
"""

import pytest
from configurations import SMALL_ROOM

pytest.importorskip("torchrl")

import torch
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import check_env_specs

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.wrappers import NumericView

pytestmark = [pytest.mark.torchrl, pytest.mark.slow, pytest.mark.filterwarnings("default")]

MADE = {
    "kbc": lambda: kbc_v0.parallel_env(players=4),
    "bertrand": lambda: bertrand_v0.parallel_env(preset="calvano", rounds=20),
    "bertrand-continuous": lambda: bertrand_v0.parallel_env(rounds=8),
    "evacuation": lambda: evacuation_v0.parallel_env(**{**SMALL_ROOM, "control": "exit", "talk": False}),
    "evacuation-move": lambda: evacuation_v0.parallel_env(**SMALL_ROOM, rounds=10),
}


def wrapped(name, **options):
    view = NumericView(MADE[name](), **options)
    return PettingZooWrapper(view, use_mask=True, categorical_actions=True, done_on_any=False, seed=0)


@pytest.mark.parametrize("mask_in_obs", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_specs_hold(name, mask_in_obs):
    check_env_specs(wrapped(name, mask_in_obs=mask_in_obs), seed=0)


@pytest.mark.parametrize("name", MADE)
def test_rollouts_choose_what_is_legal(name):
    env = wrapped(name)
    played = env.rollout(40)
    (group,) = env.group_map
    choices = played[group, "action"]
    legal = played[group, "action_mask"].gather(-1, choices.unsqueeze(-1)).squeeze(-1)
    present = played[group].get("mask", torch.ones_like(legal))
    assert len(played) > 3
    assert legal[present].all()


def test_the_global_state_is_passed_on():
    view = NumericView(MADE["bertrand"]())
    env = PettingZooWrapper(view, return_state=True, use_mask=True, categorical_actions=True, seed=0)
    played = env.rollout(5)
    assert played["state"].shape[-1] == view.state_space.shape[0]
