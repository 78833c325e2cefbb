"""Values as people write them, in study files and in options of the form name=value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from llm_coop_envs.errors import SettingsError


class Loader(yaml.SafeLoader):
    """YAML 1.1 as PyYAML reads it, except that `1e-3` is a number and a date is text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def read_pairs(option: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Names and values, such as `control=exit`, `talk=false`, `alpha=1e-1` or `exit_widths=[3, 3, 1]`.

    Raises:
        SettingsError: something is no name=value, the value is no YAML, or a name comes twice.
    """
    pairs_by_name: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        name = name.strip()
        if not sign or not name:
            raise SettingsError(option, pair, "must be name=value, such as talk=false")
        if name in pairs_by_name:
            raise SettingsError(option, pair, f"{name} is given twice")
        try:
            pairs_by_name[name] = yaml.load(text, Loader)  # a SafeLoader
        except (yaml.YAMLError, ValueError) as error:
            raise SettingsError(option, pair, "the value cannot be read; quote it if it is a text") from error
    return pairs_by_name
