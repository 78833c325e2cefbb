"""What a regulator may do, as settings."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.base_settings import Settings
from llm_coop_envs.util.checks import suggestion

SILENCE, REVISE = "silence", "revise"


@dataclass(frozen=True, kw_only=True)
class RegulatorSettings(Settings):
    """A regulator's powers.

    What is ruled on is held back until the regulator has answered, one message or choice after the other: a message
    that it stops was never heard.

    Attributes:
        on: what it rules on: `"talk"`, each message before it is heard; `"choices"`, each choice before it counts.
        powers: what it may do about them besides allowing them: `"log"`, write them down; `"revise"`, have them
            submitted anew, once; `"veto"`, stop them (what counts instead of a choice is the scenario's to say);
            `"fine"`, have whoever chose pay a fine (of choices only).
        orders: what it may order at the beginning of a round, for that round: `"silence"`, nobody may speak; more is
            the scenario's to say, such as a price cap or an exit that is closed.
        reads_talk: whether it is shown what was said.
        announced: whether players are told of the regulator and its powers. What it did to them they learn anyway.
        fine: what a fine takes of the reward.
        detection: the chance that a fine is imposed; drawn for each one. Certain in a round in which somebody reported.
        leniency: the share of the fine that is remitted to whoever reported; above 0 everybody is asked after choosing
            whether to report (phase `report`).
        reward: what the regulator earns: `"zero"`; `"fines"`, what was paid; `"welfare"`, what the scenario says the
            public has of a round.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "fine": (0, math.inf),
        "detection": (0, 1),
        "leniency": (0, 1),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"reward": ("zero", "fines", "welfare")}
    listed: ClassVar[Mapping[str, Collection[str]]] = {
        "on": ("talk", "choices"),
        "powers": ("log", REVISE, "veto", "fine"),
        "orders": (),
    }

    on: tuple[str, ...] = ("talk",)
    powers: tuple[str, ...] = ("log",)
    orders: tuple[str, ...] = ()
    reads_talk: bool = True
    announced: bool = True
    fine: float = 0.0
    detection: float = 1.0
    leniency: float = 0.0
    reward: str = "zero"

    def __post_init__(self) -> None:
        """Check the powers, alone and with each other; lists become tuples."""
        super().__post_init__()
        for name, allowed in self.listed.items():
            names: Any = getattr(self, name)
            if not isinstance(names, list | tuple) or not all(isinstance(entry, str) and entry for entry in names):
                raise SettingsError(name, names, "must be a list of texts")
            for entry in names:
                if allowed and entry not in allowed:
                    raise SettingsError(name, entry, f"is not known; {suggestion(entry, allowed)}")
            object.__setattr__(self, name, tuple(dict.fromkeys(names)))
        if not self.powers and not self.orders:
            raise SettingsError("powers", [], "leaves it nothing to do; name a power, or an order")
        if self.powers and not self.on:
            raise SettingsError("on", [], "leaves it nothing to rule on; name talk, choices or both")
        if self.powers and "talk" in self.on and not self.reads_talk:
            raise SettingsError("reads_talk", False, "it rules on the talk, which it has to read for that")
        if "fine" in self.powers and ("choices" not in self.on or self.fine == 0):
            raise SettingsError("fine", self.fine, "fines need an amount, and choices among what it rules on")
        if self.leniency and "fine" not in self.powers:
            raise SettingsError("leniency", self.leniency, "remits fines; add fine to its powers")
