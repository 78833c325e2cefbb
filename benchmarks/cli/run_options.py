"""From the options of `llm-coop run` to who plays, and how models are asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.run.asking import AT_ONCE, Asking
from llm_coop_envs.benchmarks.study.seating import Given, read_player, read_seat, with_players
from llm_coop_envs.benchmarks.study.study import Study
from llm_coop_envs.benchmarks.study.yaml_source import read_yaml_file
from llm_coop_envs.core.settings import plain, suggestion
from llm_coop_envs.errors import StudyError

KIND = "llm"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `llm-coop run` that say who plays and how models are asked, as given."""

    policy: str | None = None
    seats: tuple[str, ...] = ()
    model: str | None = None
    preset: str | None = None
    pack: str | None = None
    answers: str | None = None
    personas: tuple[str, ...] = ()
    temperature: float | None = None
    parameters: Path | None = None
    base_url: str | None = None
    key_env: str | None = None
    client: str | None = None
    stream: bool = False
    timeout: float | None = None
    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    budget: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    prices: Path | None = None
    replay: Path | None = None
    cache: Path | None = None
    sample: int | None = None
    part: str | None = None
    at_once: int = AT_ONCE

    def players(self, study: Study) -> Study:
        """The study with the players that were given.

        Raises:
            LlmCoopError: they cannot play it.
        """
        everyone = None if self.policy is None else read_player(self.policy)
        seats = [read_seat(text) for text in self.seats]
        given = [one for one in (everyone, *(player for _, player in seats)) if one is not None]
        if not any(one.asks_a_model for one in given):
            self._no_model_options()
        if not given:
            return study
        options = self.model_options()
        return with_players(
            study,
            None if everyone is None else self.complete(everyone, options),
            [(pattern, self.complete(player, options)) for pattern, player in seats],
        )

    def asking(self) -> Asking:
        """How models are asked.

        Raises:
            LlmCoopError: a value is impossible.
        """
        endpoint: dict[str, Any] = {
            "base_url": self.base_url,
            "key_env": self.key_env,
            "client": self.client,
            "timeout": self.timeout,
            "stream": self.stream or None,
        }
        limits = {
            "most": self.in_flight,
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
        }
        limits = {name: value for name, value in limits.items() if value is not None}
        endpoint = {name: value for name, value in endpoint.items() if value is not None}
        limited: dict[str, Any] = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens}
        budget = None
        if any(value is not None for value in limited.values()):
            from llm_coop_envs.policies.llm.asking.budget import Budget

            budget = Budget.build(**limited)
        return Asking(
            endpoint={**endpoint, **({"limits": limits} if limits else {})},
            budget=budget,
            prices=self.prices,
            part=self.part,
            replay=self.replay,
            cache=self.cache,
            sample=self.sample,
            at_once=self.at_once,
        )

    def with_more(self) -> RunOptions:
        """The same with twice the budget."""
        given = {name: getattr(self, name) for name in ("budget", "max_calls", "max_tokens")}
        return dataclasses.replace(self, **{name: 2 * value for name, value in given.items() if value is not None})

    def again(self) -> list[str]:
        """The options as arguments, for the record and for a session that continues; no key is among them."""
        found: list[str] = []
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if value == one.default:
                continue
            flag = "--" + _FLAGS.get(one.name, one.name).replace("_", "-")
            if value is True:
                found.append(flag)
            else:
                for part in value if isinstance(value, tuple) else (value,):
                    found += [flag, str(part)]
        return found

    def complete(self, player: Given, options: Mapping[str, Any]) -> Given:
        """A language model with the options for all of them; its own go first."""
        if not player.asks_a_model:
            return player
        name = player.name
        if name == KIND and "model" not in player.options:
            if self.model is None:
                raise StudyError("--policy llm: which model? Give --model NAME, or --policy llm:NAME")
            name = f"{KIND}:{self.model}"
        return Given(name=name, options={**options, **player.options})

    def model_options(self) -> dict[str, Any]:
        """What all language models of the run are given, unless their own options say otherwise."""
        given = {"preset": self.preset, "pack": self.pack, "answers": self.answers}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.personas:
            options["personas"] = list(self.personas)
        parameters = self._parameters()
        if parameters is not None:
            options["parameters"] = parameters
        return options

    def _parameters(self) -> dict[str, Any] | None:
        """Model parameters, if they are not the preset's."""
        from llm_coop_envs.policies.llm.playing.player import NO_PRESET, PRESET
        from llm_coop_envs.policies.llm.playing.presets import presets

        if self.parameters is not None:
            if self.temperature is not None:
                raise StudyError("--temperature: stands in the file of --parameters; leave one of them out")
            _, spot = read_yaml_file(self.parameters)
            return {name: one.plain() for name, one in spot.mapping().items()}
        if self.temperature is None:
            return None
        preset, known = self.preset or PRESET, {NO_PRESET: {}, **presets()}
        if preset not in known:
            raise StudyError(f"--preset {preset}: is no preset; {suggestion(preset, known)}")
        table = plain(known[preset].get("parameters", {}))
        return {name: {**one, "temperature": self.temperature} for name, one in {"default": {}, **table}.items()}

    def _no_model_options(self) -> None:
        """Refuse what only a language model given here could obey."""
        for name in ("model", "preset", "pack", "answers", "personas", "temperature", "parameters"):
            if getattr(self, name):
                flag = _FLAGS.get(name, name)
                raise StudyError(f"--{flag}: for whom? Say who is played by a model: --policy llm, or --seat SEAT=llm")


_FLAGS = {"seats": "seat", "personas": "persona", "at_once": "episodes-at-once"}
