"""Counting tokens without the network."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import re
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import LOCAL

#: Counts the tokens of a text.
TokenCounter = Callable[[str], int]

# Words are split: English would do with 6 letters, German needs 4.
_PIECES = re.compile(r"[A-Za-z]{1,4}|\d{1,3}|[^\x00-\x7f]|[^\w\s]|_| (?=\d)")
_BREAKS = re.compile(r"\n+")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d{1,3}")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text for models whose tokenizer is not available.

    Counted as one token are: each 4 letters of a word or part of them, each 3 digits or part of them, line breaks in a
    row, a space before a digit, each other sign, and each 2 bytes of a character beyond ASCII. On prompts in English
    and German the estimate exceeds the count of OpenAI's tokenizers (a test measures it where their tables are at
    hand).
    """
    return sum(map(_line_tokens, text.split("\n"))) + len(_BREAKS.findall(text))


@functools.lru_cache(maxsize=1 << 14)
def _line_tokens(line: str) -> int:
    """The estimate for a line; cached, as the prompts of an episode repeat most lines."""
    pieces: list[str] = _PIECES.findall(line)
    if line.isascii():
        return len(pieces)
    return sum(1 if piece.isascii() else max(1, len(piece.encode("utf-8", "replace")) // 2) for piece in pieces)


def estimate_by_digit(text: str) -> int:
    """Estimate the tokens for models that this machine serves: small models' tokenizers make a token of every digit."""
    return estimate_tokens(text) + len(_DIGIT.findall(text)) - len(_DIGITS.findall(text))


def counter_for(model: str) -> tuple[TokenCounter, str]:
    """Find the token counter for a model, and its name: the tokenizer's, `"estimate"` or `"estimate by digits"`.

    OpenAI's tokenizers are used if tiktoken is installed and their tables are on this machine: in tiktoken's own
    cache folder, or inside an installed litellm. Nothing is ever downloaded.

    Args:
        model: the model's name, possibly with a provider in front (`openai/gpt-4o-mini`).
    """
    if model.startswith(LOCAL):
        return estimate_by_digit, "estimate by digits"
    name = _encoding_name(model.rpartition("/")[2])
    if name is not None:
        encode = _encoder(name)
        if encode is not None:
            return (lambda text: len(encode(text))), name
    return estimate_tokens, "estimate"


def surely_within(text: str, limit: int) -> bool:
    """Whether a text cannot have more than `limit` tokens, without counting.

    No tokenizer in use makes more tokens than there are bytes.
    """
    return len(text) <= limit and (text.isascii() or len(text.encode("utf-8", "replace")) <= limit)


def _encoding_name(model: str) -> str | None:
    if importlib.util.find_spec("tiktoken") is None:
        return None
    names: Any = importlib.import_module("tiktoken.model")
    try:
        return str(names.encoding_name_for_model(model))
    except KeyError:
        return None


@functools.lru_cache(maxsize=8)
def _encoder(name: str) -> Callable[[str], list[int]] | None:
    """An encoding's own function, from tables on this machine; `None` if they are missing."""
    tiktoken: Any = importlib.import_module("tiktoken")
    public: Any = importlib.import_module("tiktoken_ext.openai_public")
    make = public.ENCODING_CONSTRUCTORS.get(name)
    if make is None:
        return None
    # The constructor, but its table is read from the disk and never downloaded.
    offline = types.FunctionType(make.__code__, {**make.__globals__, "load_tiktoken_bpe": _load_table})
    try:
        encoding = tiktoken.Encoding(**offline())
    except (LookupError, OSError, ValueError):
        return None
    encode: Callable[[str], list[int]] = encoding.encode_ordinary
    return encode


def _load_table(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Load the merge table that tiktoken keeps for a URL.

    Raises:
        LookupError: the table is not on this machine.
    """
    import base64

    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    for folder in _table_folders():
        path = folder / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if expected_hash is None or hashlib.sha256(data).hexdigest() == expected_hash:
            rows: list[Any] = [line.split() for line in data.splitlines() if line]
            return {base64.b64decode(token): int(rank) for token, rank in rows}
    raise LookupError(name)


def _table_folders() -> list[Path]:
    folders = [Path(os.environ[name]) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") if os.environ.get(name)]
    folders.append(Path(tempfile.gettempdir()) / "data-gym-cache")
    litellm = importlib.util.find_spec("litellm")
    if litellm is not None:
        folders += [
            Path(where) / "litellm_core_utils" / "tokenizers" for where in litellm.submodule_search_locations or ()
        ]
    return folders
