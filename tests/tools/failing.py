"""A program whose run fails, as loudly as it can: everything logged, the traceback with all its causes."""

import asyncio
import logging
import sys
from pathlib import Path

from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.endpoint import Retry


async def main(folder, url, client, variable):
    endpoint = Endpoint(
        model="m", base_url=url, client=client, key_env=variable, timeout=2.0, retry=Retry(attempts=4, first_pause=0.0)
    )
    print(endpoint, endpoint.describe())
    async with open_chat(Path(folder), endpoint, cache=Path(folder) / "cache") as chat:
        print(vars(chat))
        try:
            for number in range(30):
                request = ChatRequest("m", (ChatMessage("user", f"question {number}"),), temperature=0, max_tokens=20)
                await chat.ask(RequestKey("e", "a", number, "talk"), request)
        finally:
            print(chat.counters, chat.counters.line(), chat.notes)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
    asyncio.run(main(*sys.argv[1:]))
