"""Sources of answers for crowds; functions of a module, so that other processes can import them."""

import asyncio
import os

from llm_coop_envs.interface.question import Options
from llm_coop_envs.policies.population.population import Person


async def number(asked, player, seed):
    """A number from 0 to 100 with two decimals."""
    await asyncio.sleep(0)
    return f"{seed % 10_001 / 100}"


async def numbers(asked, players, seeds):
    """The same for many players."""
    await asyncio.sleep(0)
    return [f"{seed % 10_001 / 100}" for seed in seeds.tolist()]


async def own_index(asked, player, seed):
    """Everybody names a number that only this player names."""
    return str(player)


async def dying(asked, player, seed):
    """Answers a few, then ends the process as a kill does."""
    if player % 10 == 9:
        await asyncio.sleep(0.2)  # what was answered before is on the disk by then
        os._exit(9)
    return await number(asked, player, seed)


async def dying_once(folder, asked, player, seed):
    """Ends its process at player 19, once; notes before each answer who was asked."""
    with (folder / "asked").open("a") as file:
        file.write(f"{player}\n")
    if player == 19 and not (folder / "died").exists():
        await asyncio.sleep(0.2)
        (folder / "died").touch()
        os._exit(9)
    return await number(asked, player, seed)


def crowd_rounds(env):
    """What was chosen in each round."""
    return [event["choices"] for event in env.events if event["type"] == "round"]


def reply(options, background, seed, question):
    """What somebody answers, as the option or the number, who takes all into account that a population says."""
    told = len(options["model"] + options["pack"] + options["personas"] + background)
    number = told + round(100 * options["temperature"]) + seed % 97
    if isinstance(question, Options):
        return question.options[number % len(question.options)]
    return question.low + number % max(1, int(question.high - question.low))


async def as_somebody(asked, player, seed, person):
    """The same as a text, of a crowd's person."""
    found = reply(person.options, person.background, seed, asked.question)
    return found.name if isinstance(asked.question, Options) else str(found)


async def as_some(asked, players, seeds, people):
    """The same of many."""
    pairs = zip(players.tolist(), seeds.tolist(), strict=True)
    return [await as_somebody(asked, player, seed, Person(people, player)) for player, seed in pairs]
