"""A chat for one policy that is made by name: opened by its first question, closed with the event loop it runs in."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import weakref
from pathlib import Path

from llm_coop_envs.policies.llm.asking.live import OpenChat, check_chat, open_chat
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.util.waiting import run_coroutine


class OwnChat:
    """A `Chat` that needs no `async with`; in each event loop in which it is asked it is opened anew.

    Args:
        endpoint: where the model is.
        folder: where answers are kept, and found again by an episode of the same name; by default a temporary one.

    Raises:
        SettingsError: the endpoint's key is missing.
        MissingExtra: a library is not installed.
    """

    def __init__(self, endpoint: Endpoint, folder: Path | None = None) -> None:
        self._endpoint = endpoint
        self._folder = folder
        self._loop: asyncio.AbstractEventLoop | None = None
        run_coroutine(check_chat([endpoint], None))

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The answer to a question; see `Chat.ask`."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._opened = loop, loop.create_task(self._open())
        return await (await asyncio.shield(self._opened)).ask(key, request)

    async def _open(self) -> OpenChat:
        folder = self._folder
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="llm-coop-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        # Kept and never left: an event loop closes, at its end, the asynchronous generators that were begun in it.
        self._context = open_chat(folder, self._endpoint)
        return await self._context.__aenter__()
