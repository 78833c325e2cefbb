"""Learners of stable-baselines3 for the environments, and their networks as plain numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.deep.average_reward import AverageRewardSAC
from llm_coop_envs.baselines.deep.buffers import DecidedRolloutBuffer, PresentReplayBuffer
from llm_coop_envs.baselines.deep.lockstep import Lockstep
from llm_coop_envs.baselines.deep.network import LOGITS, SQUASHED, VALUES, Network
from llm_coop_envs.baselines.deep.saved_model import as_array
from llm_coop_envs.baselines.deep.settings import TrainSettings
from llm_coop_envs.baselines.deep.vecenv import SharedVecEnv
from llm_coop_envs.baselines.learning import DQN, MASKABLE_PPO, SAC, SHARED
from llm_coop_envs.errors import MissingExtra, SettingsError

try:
    import stable_baselines3  # pyright: ignore[reportMissingImports]
    from sb3_contrib import MaskablePPO  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtra("training", "sb3") from error


class SharedDQN(stable_baselines3.DQN):
    """DQN in which every row explores by itself.

    The original draws once for all rows, so that either all players explore or none does. The effect of a single
    player's deviation would never be observed.
    """

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The best choices, some of them replaced by random ones unless `deterministic`."""
        space: Any = self.action_space
        choices, state = self.policy.predict(observation, state, episode_start, True)
        if not deterministic and choices.ndim:
            explores = np.random.random(len(choices)) < self.exploration_rate
            choices = np.where(explores, np.random.randint(int(space.n), size=len(choices)), choices)
        return choices, state


def make_rows(settings: TrainSettings) -> SharedVecEnv:
    """Make the environment to train on."""
    return SharedVecEnv(
        settings.environment,
        copies=settings.copies or 1,
        seed=settings.seed,
        reward_scale=settings.reward_scale or 1.0,
        potential=settings.potential,
        discount=float(settings.hyper.get("gamma", 1.0)),
        points=settings.points,
    )


def make_models(settings: TrainSettings) -> list[Any]:
    """Make fresh learners: one for all players, or one for each seat (`settings.networks`).

    Raises:
        SettingsError: an argument of the algorithm is unknown or impossible.
    """
    env = make_rows(settings)
    if settings.networks == SHARED:
        return [make_model(settings, env)]
    seats = Lockstep(env).seats
    # stable-baselines3 seeds NumPy's global stream, which takes 32 bits.
    seeds = [int(sequence.generate_state(1)[0]) for sequence in np.random.SeedSequence(settings.seed).spawn(len(seats))]
    return [make_model(settings, seat, seed) for seat, seed in zip(seats, seeds, strict=True)]


def make_model(settings: TrainSettings, env: SharedVecEnv, seed: int | None = None) -> Any:
    """Make a fresh learner; `seed` replaces that of the settings.

    Raises:
        SettingsError: an argument of the algorithm is unknown or impossible.
    """
    kinds: dict[str, Any] = {DQN: SharedDQN, MASKABLE_PPO: MaskablePPO, SAC: AverageRewardSAC}
    arguments = dict(settings.hyper)
    if settings.algo in (DQN, SAC):
        arguments["replay_buffer_class"] = PresentReplayBuffer
    elif settings.algo == MASKABLE_PPO:
        arguments["rollout_buffer_class"] = DecidedRolloutBuffer
    kind = kinds.get(settings.algo or "", stable_baselines3.PPO)
    try:
        with warnings.catch_warnings():
            # A smaller last mini-batch does no harm.
            warnings.filterwarnings("ignore", "You have specified a mini-batch size", UserWarning)
            return kind("MlpPolicy", env, seed=settings.seed if seed is None else seed, device="cpu", **arguments)
    except (TypeError, ValueError, AssertionError) as error:
        reason = f"{settings.algo} refuses them ({error})"
        raise SettingsError("hyper", dict(settings.hyper), reason) from error


def export(models: Sequence[Any], settings: TrainSettings, about: dict[str, Any]) -> Network:
    """Export the learners' network, or their networks by seat, as plain numbers.

    Raises:
        SettingsError: a network is not a plain chain of layers.
    """
    networks = [_export(model, settings, about) for model in models]
    if settings.networks == SHARED:
        return networks[0]
    pairs = zip(*(network.layers for network in networks), strict=True)
    layers = tuple((np.stack([w for w, _ in pair]), np.stack([b for _, b in pair])) for pair in pairs)
    return replace(networks[0], layers=layers)


def _export(model: Any, settings: TrainSettings, about: dict[str, Any]) -> Network:
    """Export one learner's network.

    Raises:
        SettingsError: it is not a plain chain of layers.
    """
    policy = model.policy
    heads: list[Any] = []
    if settings.algo == DQN:
        parts, output = policy.q_net.q_net, VALUES
    elif settings.algo == SAC:
        parts, heads, output = policy.actor.latent_pi, [policy.actor.mu, policy.actor.log_std], SQUASHED
    else:
        parts, heads, output = policy.mlp_extractor.policy_net, [policy.action_net], LOGITS
    layers = [[part] for part in parts if isinstance(part, nn.Linear)] + ([heads] if heads else [])
    between = {type(part) for part in parts if not isinstance(part, nn.Linear)}
    activations = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.LeakyReLU: "leaky_relu"}
    if len(between) > 1 or not between <= set(activations):
        raise SettingsError("hyper", dict(settings.hyper), "only networks of layers with tanh or (leaky) ReLU are kept")
    return Network(
        scenario=settings.env,
        features=model.env.unwrapped.rows.names,
        layers=tuple(
            (as_array([part.weight for part in layer]), as_array([part.bias for part in layer])) for layer in layers
        ),
        activation=activations[between.pop()] if between else "tanh",
        output=output,
        about=about,
    )
