"""The published variants of the experiment and their published numbers (`studies.yaml`).

Unless a study says otherwise, the numbers are those of Calvano et al. (2020) as printed by their replication package
(openICPSR 119462): means over 1,000 sessions with three decimals. A comparison with other random numbers must allow for
the sampling error of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.settings import BertrandSettings

MEASURES = ("gain", "time", "equilibrium", "answer", "unprofitable", "punishment")
"""The compared measures, by the names of `measures.summary`: profit gain, periods to convergence (window not counted),
equilibrium play on path, mean price change of rivals after a deviation to the static best reply (the paper's IR), share
of such deviations that do not pay (IC), and periods until play is back (punishment length)."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One line of a study.

    Attributes:
        name: what varies, such as `"alpha 0.15"`.
        settings: the learners; ties at random, as in the authors' code, only where the first table is flat.
        published: published numbers by the names in `MEASURES`.
        sample: number of sessions that the published numbers are means over.
        sessions: number of sessions for a first look, if less than the study's.
        recorded: number of sessions in the record, if less than for other variants.
        rematched: whether firms trained in different sessions meet and go on learning; see `Plan`.
    """

    name: str
    settings: QLearningSettings
    published: Mapping[str, float] = field(default_factory=dict)
    sample: int = 1000
    sessions: int | None = None
    recorded: int | None = None
    rematched: bool = False


@dataclass(frozen=True, kw_only=True)
class VariantStudy:
    """The variants of one part of the experiment, the source of the published numbers, and the sessions per variant."""

    title: str
    source: str
    variants: tuple[Variant, ...]
    sessions: int = 200


def learners(market: Mapping[str, Any] | None = None, **changes: Any) -> QLearningSettings:
    """The representative experiment with some fields changed."""
    return QLearningSettings(market=BertrandSettings.build("calvano", **(market or {})), **changes)


def _study(data: Mapping[str, Any]) -> VariantStudy:
    shared = data.get("market", {})
    variants = tuple(
        Variant(
            settings=learners({**shared, **variant.pop("market", {})}, **variant.pop("learners", {})),
            **variant,
        )
        for variant in map(dict, data["variants"])
    )
    return VariantStudy(**{**{name: value for name, value in data.items() if name != "market"}, "variants": variants})


STUDIES: dict[str, VariantStudy] = {
    name: _study(data)
    for name, data in yaml.safe_load(Path(__file__).with_name("studies.yaml").read_text(encoding="utf-8")).items()
}
