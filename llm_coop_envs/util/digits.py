"""Numbers as texts show them."""

from __future__ import annotations

import re

_POWER_OF_TEN = re.compile(r"\d(?:\.\d+)?e\+\d+")


def without_powers(text: str) -> str:
    """A text in which large numbers are written out: 12345700 instead of 1.23457e+07, which readers misread."""
    return _POWER_OF_TEN.sub(lambda match: f"{float(match[0]):.0f}", text) if "e+" in text else text


def six_digits(value: float) -> str:
    """A number with six significant digits, as texts show it."""
    return without_powers(f"{value:.6g}")
