"""How the number contest is learned."""

from __future__ import annotations

from llm_coop_envs.baselines.learning import PPO, Learning

LEARNING = Learning(
    algorithm=PPO,
    discount=1.0,
    rollout=lambda _: {"n_steps": 32, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.0},
    reward_scale=lambda settings: 1.0 / float(settings.unit),
    tabular="llm_coop_envs.kbc.faces.tabular:KBCLearner",
)
