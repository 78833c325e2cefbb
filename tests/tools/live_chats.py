"""A whole chat over a client that does as it is told."""

import asyncio

from llm_tools import key, question, reply

from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.clients import Endpoint

ENDPOINT = Endpoint(model="m", base_url="http://127.0.0.1:1/v1")


class Client:
    """Answers by a function, and counts."""

    def __init__(self, act=None):
        self.act = act or (lambda request: reply(request.messages[-1].content))
        self.asked = []
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def complete(self, request, *, idempotency_key=""):
        self.asked.append((idempotency_key, request))
        await self.gate.wait()
        found = self.act(request)
        if isinstance(found, BaseException):
            raise found
        return found

    async def aclose(self):
        self.closed = True


def with_chat(folder, use, act=None, **fields):
    """Open a chat over a client that does as told, use it; returns what `use` returned and the client."""

    async def go():
        client = Client(act)
        given = {"notify": lambda sentence: None, "connect": lambda endpoint: client, **fields}
        async with open_chat(folder, given.pop("endpoints", ENDPOINT), **given) as chat:
            found = await use(chat, client)
        assert client.closed or "replay" in fields
        return found, client

    return asyncio.run(go())


async def ask_many(chat, count, first=0):
    numbers = range(first, first + count)
    return await asyncio.gather(*[chat.ask(key(n), question(str(n))) for n in numbers], return_exceptions=True)


def asking(count, first=0):
    return lambda chat, client: ask_many(chat, count, first)


async def use_again(chat, client):
    return await chat.ask(key(1), question("a"))


def price(tmp_path, text="m: {input: 1000000, output: 1000000}"):
    """By default a dollar per token."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    return path
