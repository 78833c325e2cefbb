"""Prices of models, and bounds on the tokens of a question or an answer."""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

import yaml

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies.llm.chat import LOCAL, ChatRequest, Usage
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.fixed_schema import FixedSchema
from llm_coop_envs.util.opening import DAMAGED, read_file
from llm_coop_envs.util.paths import StrPath

MILLION = 1_000_000
_EXAMPLE = "a line is such as 'openai/gpt-4o-mini: {input: 0.15, output: 0.60}', in US dollars per million tokens"
BYTES_PER_TOKEN = 4  # the usual rule of thumb for English text and byte-pair tokenizers
# The most tokens that chat templates add: markers around every message, and a preamble (Llama's states the date).
PER_MESSAGE = 16
PER_REQUEST = 64
_BUNDLED = "model_prices_and_context_window_backup.json"
_ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


class PriceError(LlmCoopError, ValueError):
    """A file of prices cannot be used."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model's tokens.

    Attributes:
        question: US dollars per token of the question.
        answer: US dollars per token of the answer, hidden reasoning included.
        cached: US dollars per token of the question that the provider had cached.
        source: where the price comes from, for messages.
        longest_answer: the most tokens in an answer of this model, if known.
        above: higher prices for long questions, ascending: (question longer than, question, answer).
    """

    question: float
    answer: float
    cached: float
    source: str
    longest_answer: int | None = None
    above: tuple[tuple[int, float, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """US dollars per million tokens and the source, as plain data."""
        per_million = {"input": self.question, "output": self.answer}
        if self.cached != self.question:
            per_million["cached_input"] = self.cached
        data: dict[str, Any] = {name: round(price * MILLION, 9) for name, price in per_million.items()}
        if self.above:
            data["above"] = [
                [tokens, *(round(price * MILLION, 9) for price in prices)] for tokens, *prices in self.above
            ]
        if self.longest_answer is not None:
            data["longest_answer"] = self.longest_answer
        return {**data, "source": self.source}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Price:
        """The price that `to_json` described."""
        return cls(
            question=data["input"] / MILLION,
            answer=data["output"] / MILLION,
            cached=data.get("cached_input", data["input"]) / MILLION,
            source=data["source"],
            longest_answer=data.get("longest_answer"),
            above=tuple(
                (tokens, question / MILLION, answer / MILLION) for tokens, question, answer in data.get("above", ())
            ),
        )

    def cost(self, usage: Usage) -> float:
        """US dollars for an answer's tokens."""
        question, answer = self._tiers(usage.prompt_tokens)[-1]
        # A discount on the whole, so that rounding cannot lift the cost above `upper_bound`.
        discount = min(usage.cached_tokens, usage.prompt_tokens) * (question - min(self.cached, question))
        return usage.prompt_tokens * question + usage.completion_tokens * answer - discount

    def upper_bound(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The highest cost of these tokens in US dollars: nothing cached, in the dearest tier that may apply."""
        tiers = self._tiers(prompt_tokens)
        return prompt_tokens * max(q for q, _ in tiers) + completion_tokens * max(a for _, a in tiers)

    def _tiers(self, prompt_tokens: int) -> list[tuple[float, float]]:
        dearer = [(question, answer) for tokens, question, answer in self.above if prompt_tokens > tokens]
        return [(self.question, self.answer), *dearer]


@dataclass(frozen=True)
class PriceList:
    """Prices by model: from the user's file (`own`), then litellm's table if installed, then the shipped table."""

    own: Mapping[str, Price]

    @classmethod
    def load(cls, path: StrPath | None = None, recorded: Mapping[str, Any] = MappingProxyType({})) -> PriceList:
        """Load a user's file of prices.

        Args:
            recorded: prices by model that hold where the file has none, as `Price.to_json` describes them.
            path: YAML or JSON: model name to `{input: ..., output: ..., cached_input: ...}` in US dollars per million
                tokens. `cached_input` is optional and equals `input` by default. A local model may cost 0.

        Raises:
            PriceError: the file cannot be read or used.
        """
        own = {model: Price.from_json(data) for model, data in recorded.items()}
        if path is None:
            return cls(own)
        path = Path(path)
        try:
            data = yaml.safe_load(read_file(path).decode())
        except (OSError, yaml.YAMLError, *DAMAGED) as error:
            raise PriceError(f"{path}: cannot be read ({error}); {_EXAMPLE}") from error
        if not isinstance(data, dict) or not data:
            raise PriceError(f"{path}: must map model names to prices; {_EXAMPLE}")
        return cls({**own, **{str(model): _own_price(path, str(model), entry) for model, entry in data.items()}})

    def price_for(self, model: str, *, own_server: bool = False) -> Price | None:
        """Look up a model's price; `None` if it is not known.

        For an `own_server` (an endpoint with a `base_url`) only the user's file counts: no table can know its price,
        whatever its model is called.
        """
        if model in self.own:
            return self.own[model]
        if model.startswith(LOCAL):
            return Price(0.0, 0.0, 0.0, "this machine")
        if own_server:
            return None
        for source, table in (("litellm's table", _bundled_table()), _shipped_table()):
            entry = _entry(table, model)
            if entry is not None:
                return _bundled_price(entry, source)
        return None


def how_to_price(model: str) -> str:
    """Advice on stating a price that is not known, as the end of a sentence."""
    return (
        f"write a file with the line '{model}: {{input: 0.15, output: 0.60}}' (your prices in US dollars per million "
        "tokens; 0 for a server of your own) and give it with --prices FILE"
    )


def _entry(table: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """Find a model's entry that has a price. Names may carry the provider or not: `anthropic/claude-opus-5`."""
    provider, _, name_alone = model.partition("/")
    for name in (model, name_alone):
        entry = table.get(name)
        if isinstance(entry, dict) and _is_price(entry.get("input_cost_per_token")):
            owner = entry.get("litellm_provider", "openai").removesuffix("_chat")
            if name == model or provider.removesuffix("_chat") == owner:
                return entry
    return None


def most_prompt_tokens(request: ChatRequest) -> int:
    """An upper bound on a question's tokens: one per byte (no tokenizer makes more), plus what templates add."""
    size = sum(_size(message.content) for message in request.messages)
    schema = request.json_schema
    schema_size = 0 if schema is None else schema.size if isinstance(schema, FixedSchema) else len(json.dumps(schema))
    return size + schema_size + PER_MESSAGE * len(request.messages) + PER_REQUEST


def likely_prompt_tokens(request: ChatRequest) -> int:
    """A quick guess at a question's tokens, for limits per minute: a quarter of its bytes.

    Tokens that users see, or that go into a reply, are counted instead (`tokens.counter_for`).
    """
    return sum(math.ceil(_size(message.content) / BYTES_PER_TOKEN) + 4 for message in request.messages)


def most_answer_tokens(text: str) -> int:
    """An upper bound on the tokens of a text."""
    return _size(text) + 1


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _own_price(path: Path, model: str, entry: Any) -> Price:
    fields = ("input", "output", "cached_input")
    if not isinstance(entry, dict):
        raise PriceError(
            f"{path}: {model}: must be a mapping with {', '.join(fields)} in US dollars per million tokens"
        )
    for name, value in entry.items():
        if name not in fields:
            raise PriceError(f"{path}: {model}: unknown field '{name}'; {suggestion(str(name), fields)}")
        if not _is_price(value):
            raise PriceError(f"{path}: {model}: {name}={value!r} must be a number, 0 or more")
    for name in fields[:2]:
        if name not in entry:
            raise PriceError(f"{path}: {model}: '{name}' is missing (US dollars per million tokens)")
    question = entry["input"] / MILLION
    return Price(
        question=question,
        answer=entry["output"] / MILLION,
        cached=question if entry.get("cached_input") is None else float(entry["cached_input"]) / MILLION,
        source=path.name,
    )


def _bundled_price(entry: Mapping[str, Any], source: str) -> Price:
    question = float(entry["input_cost_per_token"])
    answer = entry.get("output_cost_per_token")
    answer = float(answer) if _is_price(answer) else 0.0
    cached = entry.get("cache_read_input_token_cost")
    above = []
    for name, value in entry.items():
        match = _ABOVE.fullmatch(name)
        if match and _is_price(value):
            dearer = entry.get(name.replace("input", "output", 1))
            above.append((1000 * int(match[1]), float(value), float(dearer) if _is_price(dearer) else answer))
    longest = entry.get("max_output_tokens")
    return Price(
        question=question,
        answer=answer,
        cached=float(cached) if _is_price(cached) else question,
        source=source,
        longest_answer=longest if isinstance(longest, int) and longest > 0 else None,
        above=tuple(sorted(above)),
    )


def _is_price(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


@functools.lru_cache(maxsize=1)
def _bundled_table() -> Mapping[str, Any]:
    """The table in litellm's folder. It is read as a file, because importing litellm takes seconds."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / _BUNDLED
        if path.is_file():
            table = json.loads(path.read_text(encoding="utf-8"))
            return table if isinstance(table, dict) else {}
    return {}


@functools.lru_cache(maxsize=1)
def _shipped_table() -> tuple[str, Mapping[str, Any]]:
    """The shipped table of well-known models, and how messages call it."""
    table = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    return f"the table of {table['read']} in this package, from {table['source']}; prices change", table["models"]
