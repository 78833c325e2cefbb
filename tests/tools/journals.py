"""Journals that tests write, and what is found in them."""

import asyncio
import json

import zstandard
from llm_tools import key, question, reply

from llm_coop_envs.policies.llm.asking.replay import ReplayChat
from llm_coop_envs.policies.llm.journal import Journal, describe, read_run


def in_journal(folder, use, **fields):
    """Open a journal, use it, close it."""

    async def go():
        journal = Journal(folder, **fields)
        try:
            return journal, await use(journal)
        finally:
            await journal.close()

    return asyncio.run(go())


async def record(journal, number, answer=None, **fields):
    asked = question(f"question {number}", **fields)
    await journal.record_attempt(key(number), asked.digest(), tokens=100, usd=0.5)
    await journal.record_answer(key(number), asked, asked.digest(), answer or reply(f"{number}"), tokens=15, usd=0.25)


async def nothing(journal):
    pass


def many(count, first=0):
    async def use(journal):
        await asyncio.gather(*[record(journal, n) for n in range(first, first + count)])

    return use


def found(folder, number):
    asked = question(f"question {number}")
    return asyncio.run(ReplayChat(folder).ask(key(number), asked))


def lines(path):
    with path.open("rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return [json.loads(line) for line in data.splitlines()]


def asked_first():
    """The first question, as an answer to it is looked up."""
    return key(1), question("question 1"), question("question 1").digest()


def described(folder):
    return [sentence for report in read_run(folder) for sentence in describe(report)]
