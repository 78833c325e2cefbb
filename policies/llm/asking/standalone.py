"""A chat for one policy made by name: opened by its first question, closed together with its event loop."""

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


class StandaloneChat:
    """A `Chat` that needs no `async with`. It is opened anew in each event loop in which it is asked.

    Args:
        endpoint: where the model is.
        folder: the folder of its journal, in which an episode of the same name finds its answers again; a temporary
            one by default.

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
        """Answer a question; see `Chat.ask`."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._opened = loop, loop.create_task(self._open())
        return await (await asyncio.shield(self._opened)).ask(key, request)

    async def _open(self) -> OpenChat:
        folder = self._folder
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="llm-coop-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        # Entered and never exited: an event loop closes its asynchronous generators when it ends.
        self._context = open_chat(folder, self._endpoint)
        return await self._context.__aenter__()
