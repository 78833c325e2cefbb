"""How a run asks its models: endpoints, budget, and sources of recorded answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.checks import check_int
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.waiting import run_coroutine

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.asking.budget import Budget
    from llm_coop_envs.policies.llm.asking.live import OpenChat
    from llm_coop_envs.policies.llm.asking.prices import PriceList
    from llm_coop_envs.policies.llm.clients import Endpoint

AT_ONCE = 128
MAIN = "main"


@dataclass(frozen=True, kw_only=True)
class ModelAccess:
    """How a run asks its models; nothing here changes what is played.

    Attributes:
        endpoint: fields of `Endpoint` for all models of the run; they win over those of the study.
        budget: the limits of money, calls and tokens; `None` for none.
        prices: a file of prices.
        recorded_prices: the prices of earlier sessions, by model; they hold where the file has none.
        part: the part of the run that this process writes, if there are several; `None` if it writes all of it.
        replay: a run's folder, whose journal answers in place of the models.
        cache: a folder of answers shared between runs.
        sample: the sample that is taken from the cache above temperature 0.
        at_once: the number of episodes that are played side by side at most.
        stop_invalid: whether a condition is ended when too few of its answers can be read.
    """

    endpoint: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    prices: StrPath | None = None
    recorded_prices: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    replay: StrPath | None = None
    cache: StrPath | None = None
    sample: int | None = None
    at_once: int = AT_ONCE
    stop_invalid: bool = False

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
        """The endpoint of each of the study's models; none in a replay.

        Raises:
            SettingsError: a field is impossible, or the study has two addresses for one model.
        """
        if not study.models:
            return []
        from llm_coop_envs.policies.llm.playing.player import build_endpoint

        fields: dict[str, dict[str, Any]] = {}
        for player in study.models:
            model = player.policy.partition(":")[2]
            endpoint_fields = _merge_endpoints(player.endpoint, self.endpoint)
            if fields.setdefault(model, endpoint_fields) != endpoint_fields:
                raise SettingsError("model", model, "is to be reached in two ways; give both players the same address")
        # Endpoints are made in a replay, too, so that mistakes in their fields are reported.
        endpoints = [build_endpoint(model, endpoint_fields) for model, endpoint_fields in fields.items()]
        return [] if self.replay is not None else endpoints

    def continuing(self, sessions: Sequence[Mapping[str, Any]]) -> ModelAccess:
        """The same for a session that goes on with a run: prices and limits that are not given stay as they were.

        Args:
            sessions: the records of the run's sessions, as its manifest holds them.
        """
        prices: dict[str, Any] = {}
        limits: dict[str, Any] = {}
        for session in sessions:
            asking = session.get("asking", {})
            if asking and asking.get("replay") is None:
                prices |= {model: price for model, price in asking.get("prices", {}).items() if price is not None}
                limits |= asking.get("budget", {})
        if self.replay is not None or not (prices or limits):
            return self
        from llm_coop_envs.policies.llm.asking.budget import Budget

        own = {} if self.budget is None else self.budget.to_json()
        limits |= {name: value for name, value in own.items() if value is not None}
        budget = Budget.build(**limits) if limits else None
        return replace(self, recorded_prices={**prices, **self.recorded_prices}, budget=budget)

    def price_list(self) -> PriceList:
        """The user's prices.

        Raises:
            PriceError: their file cannot be read or used.
        """
        from llm_coop_envs.policies.llm.asking.prices import PriceList

        return PriceList.load(self.prices, self.recorded_prices)

    def check(self, endpoints: list[Endpoint]) -> None:
        """Check that models can be asked, or the journal be replayed, before anything is written.

        Raises:
            LlmCoopError: a key, library, price or journal is missing.
        """
        from llm_coop_envs.policies.llm.asking.live import check_chat
        from llm_coop_envs.policies.llm.journal import require_journal
        from llm_coop_envs.policies.llm.local.sharing import check_local

        if self.replay is None:
            check_local(endpoints)
            run_coroutine(check_chat(endpoints, self.budget, self.price_list()))
        else:
            require_journal(self.replay)

    @contextlib.asynccontextmanager
    async def open(
        self,
        folder: Path,
        endpoints: list[Endpoint],
        notify: Callable[[str], None],
        claim: Callable[[str], int] = lambda _: 0,
    ) -> AsyncIterator[OpenChat]:
        """Open the chat of a run, with servers for its local models; see `open_chat`."""
        from llm_coop_envs.policies.llm.asking.live import open_chat
        from llm_coop_envs.policies.llm.asking.replay import ReplayChat
        from llm_coop_envs.policies.llm.local.sharing import serve_models, watch_servers

        with serve_models(endpoints, folder, notify) as reached:
            async with open_chat(
                folder,
                reached,
                budget=self.budget,
                prices=self.price_list(),
                part=self.part or MAIN,
                replay=self.replay,
                cache=self.cache,
                sample=self.sample,
                notify=notify,
                claim=claim,
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
        """The record of a session's access to models, without keys."""
        from llm_coop_envs.policies.llm.asking.live import known_prices

        prices = known_prices(endpoints, self.price_list())
        budget = {} if self.budget is None else self.budget.to_json()
        return {
            "endpoints": [endpoint.to_json() for endpoint in endpoints],
            "budget": {name: value for name, value in budget.items() if value is not None},
            "prices": {model: price and price.to_json() for model, price in prices.items()},
            "part": self.part,
            "replay": None if self.replay is None else str(self.replay),
            "cache": None if self.cache is None else str(self.cache),
            "sample": self.sample,
            "at_once": self.at_once,
        }


def _merge_endpoints(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of two endpoints, where those of `above` win; `limits` and `retry` are merged field by field."""
    merged = {**plain(below), **above}
    for name in ("limits", "retry"):
        if isinstance(below.get(name), Mapping) and isinstance(above.get(name), Mapping):
            merged[name] = {**below[name], **above[name]}
    return merged
