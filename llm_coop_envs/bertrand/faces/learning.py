"""How price competition is learned."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.learning import INDEPENDENT, PPO, Learning
from llm_coop_envs.bertrand.settings import BertrandSettings


def _reward_scale(settings: BertrandSettings) -> float:
    """One over the mean distance from Nash to joint profit; rewards that are no profits stay as they are."""
    if settings.reward != "profit":
        return 1.0
    gaps = [j - n for j, n in zip(settings.equilibria.joint_profit, settings.equilibria.zero_profit, strict=True)]
    return float(len(gaps) / math.fsum(gaps))


def _numbers(settings: BertrandSettings) -> NDArray[np.float64]:
    """The prices of the settings' own grid, lifted or lowered into the range that is allowed."""
    grids: NDArray[np.float64] = np.clip(np.array(settings.grids), np.array(settings.floors)[:, None], settings.cap)
    return grids


LEARNING = Learning(
    algorithm=PPO,
    # One network for all firms sees equal prices only, and learns to agree with itself.
    networks=INDEPENDENT,
    discount=0.95,
    # As many rounds in a rollout as 8 copies with 256 steps; they are played in half the time.
    copies=64,
    rollout=lambda _: {"n_steps": 32, "batch_size": 512, "n_epochs": 8, "learning_rate": 3e-4},
    reward_scale=_reward_scale,
    numbers=_numbers,
    same_game=lambda first, other: bool(first.market == other.market and first.grids == other.grids),
)
