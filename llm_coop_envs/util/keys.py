"""Keys: read from the environment, shown nowhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NoReturn

from llm_coop_envs.errors import SettingsError

HIDDEN = "[hidden]"
# What providers' keys and headers look like; error texts that quote one are cleaned even when the key is not ours.
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][A-Za-z0-9_\-*]{8,}|(?<=Bearer )[^\s\"',]+|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?<=/)[^\s/@'\"]+:[^\s@'\"]+(?=@)"  # a password in an address
)
# Narrower: 'hf-internal-testing' is no key.
_KEY = re.compile(r"(?:sk|pk|rk)[-_][A-Za-z0-9_\-]{16,}|(?:gsk_|xai-|hf_|key-|AIza)[A-Za-z0-9_]{20,}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 8  # shorter values ("none", "test") would blot out ordinary words


class Key:
    """A key that no `repr`, log line, traceback or pickle shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the one header it belongs in."""
        return self._value

    def __repr__(self) -> str:
        """Nothing that is secret."""
        return f"Key({HIDDEN})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied into a file or another process."""
        raise TypeError("a Key cannot be pickled; name the environment variable instead")


def read_key(variable: str, *, required: bool) -> Key | None:
    """The key in an environment variable.

    Raises:
        SettingsError: it is not set although required, or cannot be sent in a header. The message never holds it.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        if required:
            reason = "this environment variable is not set; put the provider's key there"
            raise SettingsError("key_env", variable, reason)
        return None
    if not value.isascii() or not value.isprintable() or " " in value:
        raise SettingsError(
            "key_env", variable, "this environment variable holds spaces or signs that no key has; set it again"
        )
    return Key(value)


def looks_like_key(name: str) -> bool:
    """Whether what should be a name, such as a model's, is a provider's key, and not only begins like one."""
    secrets = {value.strip() for variable, value in os.environ.items() if _SECRET_NAME.search(variable)}
    last = name.rpartition("/")[2]
    return bool(_KEY.fullmatch(last)) or (len(name) >= _SHORTEST and name in secrets)


def scrub(text: str, keys: Iterable[Key | None] = ()) -> str:
    """A provider's text without anything that is, or looks like, a key.

    Besides the `keys` in use, those in environment variables named like secrets are found by themselves.
    """
    values = {key.reveal() for key in keys if key is not None}
    values.update(value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name))
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, text)
