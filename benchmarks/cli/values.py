"""Options of the form name=value, with values as study files read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from llm_coop_envs.benchmarks.study.yaml_source import Loader
from llm_coop_envs.errors import SettingsError


def read_pairs(option: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Names and values, such as `control=exit`, `talk=false`, `alpha=1e-1` or `exit_widths=[3, 3, 1]`.

    Raises:
        SettingsError: something is no name=value, the value is no YAML, or a name comes twice.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        name = name.strip()
        if not sign or not name:
            raise SettingsError(option, pair, "must be name=value, such as talk=false")
        if name in found:
            raise SettingsError(option, pair, f"{name} is given twice")
        try:
            found[name] = yaml.load(text, Loader)  # a SafeLoader
        except (yaml.YAMLError, ValueError) as error:
            raise SettingsError(option, pair, "the value cannot be read; quote it if it is a text") from error
    return found
