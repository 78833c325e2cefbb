"""Soft actor-critic for the average reward: what is learned from maximises the mean reward of a step, without discount.

As in Frick (arXiv 2604.15825): a price rule in [-1, 1] learned in one endless run. The rest is the learner of
stable-baselines3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llm_coop_envs.baselines.deep.settings import SIZES
from llm_coop_envs.errors import MissingExtra

try:
    import stable_baselines3  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.utils import polyak_update  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtra("training", "sb3") from error

_CRITIC = [256, 256]


class AverageRewardSAC(stable_baselines3.SAC):
    """SAC whose critics hold differential values: what is still to come beyond the mean reward.

    With a mean reward m and the mean Q of the two target critics, a step from s to s' is worth
    `r - m + Q(s', a') - Q(0, 0) - temperature * log p(a' | s')`. Subtracting the value of a reference, here the state
    and action of zeros, keeps values from drifting, because without discount they are known up to a constant only. At a
    true end (not a time-out) what comes is worth as much as the reference.

    Args:
        policy: the policy's name.
        env: the environment.
        size: the actor's hidden layers, one of `SIZES`.
        learning_rate: step size of the actor.
        critic_rate: step size of the critics.
        temperature_rate: step size of the temperature.
        mean_rate: step size of the mean reward.
        max_grad_norm: longest gradient of the actor and of both critics together; longer ones are shortened.
        policy_kwargs: arguments of the policy.
        arguments: arguments of `stable_baselines3.SAC`.
    """

    mean_reward: torch.Tensor

    def __init__(
        self,
        policy: Any,
        env: Any,
        *,
        size: str = "small",
        learning_rate: float = 0.03,
        critic_rate: float = 0.003,
        temperature_rate: float = 0.003,
        mean_rate: float = 0.01,
        max_grad_norm: float = 10.0,
        policy_kwargs: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        self.critic_rate, self.temperature_rate = critic_rate, temperature_rate
        self.mean_rate, self.max_grad_norm = mean_rate, max_grad_norm
        networks = {"net_arch": {"pi": list(SIZES[size]), "qf": _CRITIC}, "activation_fn": nn.LeakyReLU}
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            policy_kwargs={**networks, **(policy_kwargs or {})},
            gamma=1.0,
            **arguments,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self.mean_reward = torch.zeros(1)
        self._set_rate(self.critic.optimizer, self.critic_rate)
        if self.ent_coef_optimizer is not None:
            self._set_rate(self.ent_coef_optimizer, self.temperature_rate)

    @staticmethod
    def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
        for group in optimizer.param_groups:
            group["lr"] = rate

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Learn from `gradient_steps` batches of the replay buffer."""
        self.policy.set_training_mode(True)
        critic_loss = actor_loss = torch.zeros(1)
        for _ in range(gradient_steps):
            critic_loss, actor_loss = self._learn_batch(self.replay_buffer.sample(batch_size))
        self._n_updates += gradient_steps
        for name, value in (
            ("n_updates", self._n_updates),
            ("ent_coef", self._temperature().item()),
            ("mean_reward", self.mean_reward.item()),
            ("actor_loss", actor_loss.item()),
            ("critic_loss", critic_loss.item()),
        ):
            self.logger.record(f"train/{name}", value)

    def _temperature(self) -> torch.Tensor:
        return self.ent_coef_tensor if self.log_ent_coef is None else self.log_ent_coef.detach().exp()

    def _learn_batch(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Change critics, actor, temperature, targets and mean reward once; returns the losses of critics and actor."""
        temperature = self._temperature()
        with torch.no_grad():
            next_actions, log_prob = self.actor.action_log_prob(batch.next_observations)
            bonus = -temperature * log_prob.reshape(-1, 1)
            states, actions = batch.observations, batch.actions
            # The reference of zeros is the last row. One pass over all rows costs half as much as three.
            values = torch.stack(
                self.critic_target(
                    torch.cat([batch.next_observations, states, torch.zeros_like(states[:1])]),
                    torch.cat([next_actions, actions, torch.zeros_like(actions[:1])]),
                )
            ).mean(dim=0)
            later, now, reference = values.split([len(states), len(states), 1])
            targets = batch.rewards - self.mean_reward + (1 - batch.dones) * (later - reference + bonus)
        critic_loss = (torch.stack(self.critic(states, actions)) - targets).square().mean(dim=(1, 2)).sum()
        self._descend(self.critic.optimizer, critic_loss, self.critic.parameters())

        chosen, log_prob = self.actor.action_log_prob(states)
        worth = torch.stack(self.critic(states, chosen)).mean(dim=0)
        actor_loss = (temperature * log_prob.reshape(-1, 1) - worth).mean()
        self._descend(self.actor.optimizer, actor_loss, self.actor.parameters())

        with torch.no_grad():
            excess = (log_prob + self.target_entropy).mean()
            bonus = -temperature * log_prob.reshape(-1, 1)
            self.mean_reward.lerp_((batch.rewards + bonus + later - now).mean(), self.mean_rate)
        if self.log_ent_coef is not None and self.ent_coef_optimizer is not None:
            self._descend(self.ent_coef_optimizer, -(self.log_ent_coef * excess).sum(), [self.log_ent_coef])
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        return critic_loss.detach(), actor_loss.detach()

    def _descend(
        self,
        optimizer: torch.optim.Optimizer,
        loss: torch.Tensor,
        parameters: Iterable[torch.nn.Parameter | torch.Tensor],
    ) -> None:
        """Change these parameters, and no others that the loss hangs on, by one step of their optimiser."""
        changed = list(parameters)
        for parameter, gradient in zip(changed, torch.autograd.grad(loss, changed), strict=True):
            parameter.grad = gradient
        nn.utils.clip_grad_norm_(changed, self.max_grad_norm)
        optimizer.step()

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        learners, tensors = super()._get_torch_save_params()
        return learners, [*tensors, "mean_reward"]
