"""Settings of every scenario, as keywords for type checkers and editors.

Written by `make types` from `ScenarioSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from llm_coop_envs.mechanisms.settings import MechanismSettings
from llm_coop_envs.treatments.changes import Change
from llm_coop_envs.treatments.listeners import Listener
from llm_coop_envs.treatments.powers import RegulatorSettings
from llm_coop_envs.util.paths import StrPath


class ScenarioFields(TypedDict, total=False):
    """Settings of every scenario; see `ScenarioSettings`."""

    render_mode: Literal["human", "rgb_array", "ansi"] | None
    max_cycles: int | None
    record: bool
    talk: bool
    talk_until: int | None
    talk_mode: Literal["sequential", "simultaneous"]
    message_length: int
    private_messages: int
    wording: StrPath
    delivery: Literal["deliver", "drop", "delay", "shuffle", "swap", "neutral", "paraphrase"]
    delivery_share: float
    delivery_delay: int
    delivery_text: str
    delivery_by: str
    information: Literal["all", "own"]
    observation_noise: float
    memory: int | None
    changes: Sequence[Change | Mapping[str, Any]]
    listeners: Sequence[Listener | Mapping[str, Any]]
    regulator: RegulatorSettings | Mapping[str, Any] | None
    mechanism: MechanismSettings | Mapping[str, Any] | str | None
    group_size: int
    matching: Literal["fixed", "random", "round_robin"]
    present: bool
