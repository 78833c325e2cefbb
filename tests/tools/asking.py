"""A program that asks, to be killed by tests: conversations in which every question hangs on the last answer.

It reads one JSON line per session from standard input, and plays each session in a child process forked from this one,
which has everything imported already: a hundred sessions start in the time of one.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients import lean as lean  # imported before the fork
from llm_coop_envs.policies.llm.clients.endpoint import Limits
from llm_coop_envs.policies.llm.testing.server import digest_answer

AT_ONCE = 64


def asked(said):
    return ChatRequest("m", (ChatMessage("system", "Go on."), ChatMessage("user", said)), 0.7, max_tokens=50)


def expected(conversations, steps):
    """What every conversation says, without asking anyone."""
    found = {}
    for number in range(conversations):
        said = [f"This is conversation {number}."]
        for _ in range(steps):
            said.append(digest_answer("Go on.\n\n" + said[-1]) + f" ({len(said)} of {number})")
        found[str(number)] = said
    return found


async def session(folder, url, conversations, steps, out):
    limits = Limits(start=AT_ONCE, most=AT_ONCE)
    endpoint = Endpoint(model="m", base_url=url, limits=limits)

    async with open_chat(Path(folder), endpoint, notify=lambda sentence: None) as chat:

        async def converse(number):
            said = [f"This is conversation {number}."]
            for step in range(steps):
                reply = await chat.ask(RequestKey(f"e/{number}", "a", step, "talk"), asked(said[-1]))
                said.append(f"{reply.text} ({len(said)} of {number})")
            return said

        found = await asyncio.gather(*[converse(number) for number in range(conversations)])
    Path(out).write_text(json.dumps({str(number): said for number, said in enumerate(found)}))


def main():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(session(**json.loads(line)))
            except BaseException as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
