import asyncio

import pytest
from llm_tools import TurnedClock

from llm_coop_envs.policies.llm.asking.attempt import TimeLimit
from llm_coop_envs.policies.llm.chat import ChatError


def test_every_attempt_has_its_own_time_and_all_share_an_alarm():
    async def go():
        clock = TurnedClock()
        limit = TimeLimit(clock, 10.0, "there")
        ended = {}

        async def attempt(number, takes):
            await clock.sleep(number)
            try:
                await limit.wait_for(clock.sleep(takes))
            except ChatError as error:
                ended[number] = (error.kind, error.maybe_paid, clock.time() - 1000)
            else:
                ended[number] = ("answered", clock.time() - 1000)

        tasks = [asyncio.ensure_future(attempt(number, takes)) for number, takes in enumerate((5, 99, 3, 99, 9))]
        await clock.pass_time(4.5)
        assert len(clock.alarms) == len(tasks) + 1  # each attempt sleeps by an alarm of its own
        await clock.until(asyncio.gather(*tasks))
        assert ended == {
            0: ("answered", 5),
            1: ("timeout", True, 11),
            2: ("answered", 5),
            3: ("timeout", True, 13),
            4: ("answered", 13),
        }

    asyncio.run(go())


def test_an_attempt_that_is_broken_off_is_not_late():
    async def go():
        clock = TurnedClock()
        task = asyncio.ensure_future(TimeLimit(clock, 10.0, "there").wait_for(clock.sleep(5)))
        await clock.settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await clock.pass_time(20)

    asyncio.run(go())
