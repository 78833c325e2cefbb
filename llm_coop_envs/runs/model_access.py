"""How a run asks its models: where they are reached, what may be used, and where answers come from."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.checks import check_int
from llm_coop_envs.util.waiting import run_coroutine

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.asking.budget import Budget
    from llm_coop_envs.policies.llm.asking.live import OpenChat
    from llm_coop_envs.policies.llm.clients import Endpoint

AT_ONCE = 128
MAIN = "main"


@dataclass(frozen=True, kw_only=True)
class ModelAccess:
    """How a run asks its models; nothing here changes what is played.

    Attributes:
        endpoint: fields of `Endpoint` for all models of the run; they win over those of the study.
        budget: what may be used; `None` sets no limit.
        prices: a file of prices.
        part: which part of the run this process writes, if several do; `None` if this one writes all of it.
        replay: a run's folder; its journal answers, and nobody is asked.
        cache: a folder of answers shared between runs.
        sample: which sample to take from the cache above temperature 0.
        at_once: how many episodes are played side by side at most.
    """

    endpoint: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    prices: Path | None = None
    part: str | None = None
    replay: Path | None = None
    cache: Path | None = None
    sample: int | None = None
    at_once: int = AT_ONCE

    def __post_init__(self) -> None:
        """Check the fields, alone and with each other."""
        check_int(self, "at_once", 1)
        if self.replay is not None and self.cache is not None:
            raise SettingsError("cache", str(self.cache), "is not used in a replay, which asks nobody; leave it out")

        if self.sample is not None and self.cache is None:
            raise SettingsError(
                "sample", self.sample, "says which shared answer to take; it needs a cache, --cache DIR"
            )
        if self.part is not None:
            from llm_coop_envs.policies.llm.journal import check_part

            check_part(self.part)
        if self.replay is not None and self.part is not None:
            raise SettingsError("part", self.part, "is not needed in a replay, which asks nobody; leave it out")

    def endpoints(self, study: Study) -> list[Endpoint]:
        """Where the study's models are reached, one endpoint for each; none in a replay.

        Raises:
            SettingsError: a field is impossible, or the study has two addresses for one model.
        """
        if not study.models:
            return []
        from llm_coop_envs.policies.llm.playing.player import endpoint_of

        fields: dict[str, dict[str, Any]] = {}
        for player in study.models:
            model = player.policy.partition(":")[2]
            given = _merged(player.endpoint, self.endpoint)
            if fields.setdefault(model, given) != given:
                raise SettingsError("model", model, "is to be reached in two ways; give both players the same address")
        # In a replay they are made all the same, so that mistakes are found.
        made = [endpoint_of(model, given) for model, given in fields.items()]
        return [] if self.replay is not None else made

    def check(self, endpoints: list[Endpoint]) -> None:
        """Find out, before anything is written, whether models can be asked: keys, libraries, prices; or the journal.

        Raises:
            LlmCoopError: they cannot.
        """
        from llm_coop_envs.policies.llm.asking.live import check_chat
        from llm_coop_envs.policies.llm.journal import journal_files
        from llm_coop_envs.policies.llm.local.sharing import check_local

        if self.replay is None:
            check_local(endpoints)
            run_coroutine(check_chat(endpoints, self.budget, self.prices))
        elif not journal_files(self.replay):
            raise RunError(f"{self.replay}: holds no journal to replay; give the folder of a run that asked a model")

    @contextlib.asynccontextmanager
    async def open(
        self, folder: Path, endpoints: list[Endpoint], notify: Callable[[str], None]
    ) -> AsyncIterator[OpenChat]:
        """The chat of a run, with servers for its local models; see `open_chat`."""
        from llm_coop_envs.policies.llm.asking.live import open_chat
        from llm_coop_envs.policies.llm.asking.replay import ReplayChat
        from llm_coop_envs.policies.llm.local.sharing import serve_models, watch_servers

        with serve_models(endpoints, folder, notify) as reached:
            async with open_chat(
                folder,
                reached,
                budget=self.budget,
                prices=self.prices,
                part=self.part or MAIN,
                replay=self.replay,
                cache=self.cache,
                sample=self.sample,
                notify=notify,
            ) as chat:
                if isinstance(chat, ReplayChat):
                    yield chat
                    return
                watching = asyncio.create_task(watch_servers(reached, chat.stop))
                try:
                    yield chat
                finally:
                    watching.cancel()

    def journal(self, folder: Path) -> list[Path]:
        """The files of a run's journal that this process writes."""
        from llm_coop_envs.policies.llm.journal import journal_files

        own = self.part or MAIN
        return [path for path in journal_files(folder) if self.replay is None and path.name.split(".", 1)[0] == own]

    def describe(self, endpoints: list[Endpoint]) -> dict[str, Any]:
        """What a session's record says; no key."""
        from llm_coop_envs.policies.llm.asking.live import known_prices

        known = known_prices(endpoints, self.prices)
        budget = {} if self.budget is None else self.budget.to_json()
        return {
            "endpoints": [one.to_json() for one in endpoints],
            "budget": {name: value for name, value in budget.items() if value is not None},
            "prices": {model: price and price.to_json() for model, price in known.items()},
            "part": self.part,
            "replay": None if self.replay is None else str(self.replay),
            "cache": None if self.cache is None else str(self.cache),
            "sample": self.sample,
            "at_once": self.at_once,
        }


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an endpoint, those of `above` first; limits one by one."""
    merged = {**plain(below), **above}
    for name in ("limits", "retry"):
        if isinstance(below.get(name), Mapping) and isinstance(above.get(name), Mapping):
            merged[name] = {**below[name], **above[name]}
    return merged
