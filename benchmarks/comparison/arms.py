"""Who is compared, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.benchmarks.study.players import check_policy, label

MARKETS: Mapping[str, str] = {
    "calvano": "Calvano et al. 2020",
    "team_up": "Wu et al. 2024, logit",
    "team_up_linear": "Wu et al. 2024, linear",
}
"""The presets whose markets are compared, and their names in reports."""

DEEP: Mapping[str, str] = {"bertrand_dqn": "DQN, trained before", "bertrand_ppo": "PPO, trained before"}
"""Shipped trained networks by name, and their titles."""

Q_LEARNING = "q_learning"
SESSIONS = 50
EPISODES = 10
ROUNDS = 1200
"""Rounds of an episode of players that cost nothing (the longest of Wu et al. 2024)."""

MODEL_EPISODES = 5
MODEL_ROUNDS = 400
MODEL_HORIZON = 25
MODEL_TOLERANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One kind of player, in all seats.

    Attributes:
        name: unique; part of keys.
        title: its name in reports.
        policy: its full policy name; empty for learners that learn anew in every episode.
        options: what the policy is given.
        talk: whether the firms may talk.
        presets: the markets it plays.
        episodes: how many episodes in each market.
        rounds: how many rounds of each, before deviations.
        horizon: rounds of each branch that follows a deviation.
        tolerance: up to which distance prices count as equal, as a share of the distance from Nash to joint profit.
        everywhere: deviate from every round of the cycle that play ends in, not only from one.
        asks: whether it asks a language model.
    """

    name: str
    title: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    talk: bool = False
    presets: tuple[str, ...] = tuple(MARKETS)
    episodes: int = EPISODES
    rounds: int = ROUNDS
    horizon: int = 100
    tolerance: float = 1e-9
    everywhere: bool = True
    asks: bool = False

    @property
    def kind(self) -> str:
        """What reports call such players."""
        return "Q-learner" if not self.policy else label(self.policy)

    def check(self) -> None:
        """Find out whether the policy can be made.

        Raises:
            LlmCoopError: it cannot.
        """
        if self.policy:
            check_policy("bertrand", self.policy, self.options)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "options": dict(self.options), "presets": list(self.presets)}


def _scripted(name: str, title: str, *, talk: bool = False) -> Arm:
    return Arm(name=name + ("_talk" if talk else ""), title=title, policy=f"bertrand/{name}", talk=talk)


def own_arms() -> list[Arm]:
    """The arms that need nothing but this package and the compiler; deep learners if the package has trained ones."""
    from llm_coop_envs.baselines.deep.shipped import shipped

    trained = [name for name in DEEP if name in shipped()]
    return [
        Arm(name=Q_LEARNING, title="Q-learning", policy="", episodes=SESSIONS, rounds=0),
        *(Arm(name=name, title=DEEP[name], policy=f"sb3:{name}") for name in trained),
        _scripted("best_reply", "myopic best reply"),
        _scripted("win_continue_lose_reverse", "win-continue, lose-reverse"),
        _scripted("tit_for_tat", "tit-for-tat"),
        _scripted("grim_trigger", "grim trigger"),
        _scripted("price_matching", "price-matching"),
        _scripted("price_matching", "price-matching, with talk", talk=True),
    ]


def trained_note(arms: Sequence[Arm]) -> str:
    """What the shipped networks among the arms learned, in a sentence; nothing without them."""
    from llm_coop_envs.baselines.deep.shipped import find_network

    said = []
    for arm in arms:
        if arm.name in DEEP:
            training = find_network(arm.name).about["training"]
            said.append(f"{arm.title.split(',')[0]} {training['steps']:,} steps in the market of {training['preset']}")
    if not said:
        return ""
    return (
        f"Networks were trained before ({', '.join(said)}; all seats share one network) and learn no more; other "
        "markets are new to them, and they are counted from their first round of play."
    )


def policy_arm(policy: str, options: Mapping[str, Any] | None = None) -> Arm:
    """An arm for any other policy that costs nothing, such as `sb3:PATH`.

    Args:
        policy: its full name.
        options: what it is given.
    """
    title = f"{label(policy)} {policy.partition(':')[2]}".strip() if ":" in policy else policy.partition("/")[2]
    return Arm(name=_key(policy), title=title, policy=policy, options=options or {})


def model_arms(model: str, options: Mapping[str, Any] | None = None) -> list[Arm]:
    """A language model, without and with talk.

    Args:
        model: its name.
        options: what the policy `llm` is given besides.
    """
    return [
        Arm(
            name=_key(f"llm_{model}") + ("_talk" if talk else ""),
            title=f"{model}, with talk" if talk else model,
            policy=f"llm:{model}",
            options=options or {},
            talk=talk,
            episodes=MODEL_EPISODES,
            rounds=MODEL_ROUNDS,
            horizon=MODEL_HORIZON,
            tolerance=MODEL_TOLERANCE,
            everywhere=False,
            asks=True,
        )
        for talk in (False, True)
    ]


def _key(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
