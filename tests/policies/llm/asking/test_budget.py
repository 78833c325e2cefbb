import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.budget import Budget, Ledger
from llm_coop_envs.policies.llm.chat import BudgetReached


@pytest.mark.parametrize("field", [{"usd": -1}, {"usd": "5"}, {"calls": -1}, {"calls": 1.5}, {"tokens": -1}])
def test_impossible_settings(field):
    with pytest.raises(SettingsError, match=next(iter(field))):
        Budget(**field)


attempts = st.lists(
    st.tuples(
        st.integers(1, 100),  # tokens at most
        st.floats(0.01, 1),  # dollars at most
        st.floats(0, 1),  # share of both that is used
        st.sampled_from(["settle", "cancel", "unsent", "forfeit"]),
        st.integers(0, 5),  # turns of the event loop it takes
    ),
    max_size=60,
)


@given(attempts, st.none() | st.integers(0, 40), st.none() | st.integers(0, 2000), st.none() | st.floats(0, 20))
def test_nothing_is_ever_passed(plan, calls, tokens, usd):
    async def go():
        ledger = Ledger(Budget(calls=calls, tokens=tokens, usd=usd))
        sent = {"calls": 0, "tokens": 0, "usd": 0.0}

        async def attempt(most_tokens, most_usd, share, end, turns):
            try:
                reserved = await ledger.reserve(most_tokens, most_usd)
            except BudgetReached:
                return
            for _ in range(turns):
                await asyncio.sleep(0)
            if end == "unsent":
                ledger.cancel(reserved, sent=False)
                return
            sent["calls"] += 1
            if end == "settle":
                ledger.settle(reserved, tokens=int(share * most_tokens), usd=share * most_usd)
                sent["tokens"] += int(share * most_tokens)
                sent["usd"] += share * most_usd
            elif end == "cancel":
                ledger.cancel(reserved, sent=True)
            else:
                ledger.forfeit(reserved)
                sent["tokens"] += most_tokens
                sent["usd"] += most_usd

        await asyncio.wait_for(asyncio.gather(*[attempt(*one) for one in plan]), 10)
        assert calls is None or sent["calls"] <= calls
        assert tokens is None or sent["tokens"] <= tokens
        assert usd is None or sent["usd"] <= usd + 1e-9
        assert (ledger.calls, ledger.tokens) == (sent["calls"], sent["tokens"])
        assert ledger.usd == pytest.approx(sent["usd"])

    asyncio.run(go())


def test_what_does_not_fit_waits_for_what_is_under_way():
    async def go():
        ledger = Ledger(Budget(tokens=100))
        first = await ledger.reserve(90, 0.0)
        second = asyncio.ensure_future(ledger.reserve(50, 0.0))
        await asyncio.sleep(0)
        assert not second.done()
        ledger.settle(first, tokens=40, usd=0.0)
        ledger.settle(await second, tokens=50, usd=0.0)
        assert ledger.tokens == 90
        with pytest.raises(BudgetReached, match="90 of 100 tokens are used, and the next question may take up to 11"):
            await ledger.reserve(11, 0.0)

    asyncio.run(go())


def test_who_waits_learns_that_nothing_is_left():
    async def go():
        ledger = Ledger(Budget(usd=1.0))
        first = await ledger.reserve(1, 1.0)
        waiting = [asyncio.ensure_future(ledger.reserve(1, 0.5)) for _ in range(3)]
        await asyncio.sleep(0)
        ledger.forfeit(first)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(r, BudgetReached) for r in found)
        assert "$1.0000 of $1.0000 are used, and the next question may cost up to $0.5000" in str(found[0])
        assert "run again with a larger budget" in str(found[0])

    asyncio.run(go())


def test_who_left_while_waiting_takes_no_turn():
    async def go():
        ledger = Ledger(Budget(tokens=100))
        first = await ledger.reserve(100, 0.0)
        gone, waiting = (asyncio.ensure_future(ledger.reserve(100, 0.0)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        ledger.cancel(first, sent=True)
        assert (await waiting).tokens == 100

    asyncio.run(go())


def test_earlier_sessions_count():
    async def go():
        ledger = Ledger(Budget(calls=10, tokens=200, usd=2.0), calls=9, tokens=100, usd=1.0)
        ledger.cancel(await ledger.reserve(100, 1.0), sent=True)
        with pytest.raises(BudgetReached, match="10 of 10 calls"):
            await ledger.reserve(1, 0.0)
        for tokens, usd in ((101, 1.0), (100, 1.01)):
            with pytest.raises(BudgetReached):
                await carried().reserve(tokens, usd)

    def carried():
        return Ledger(Budget(tokens=200, usd=2.0), calls=9, tokens=100, usd=1.0)

    asyncio.run(go())


def test_no_budget_is_no_limit():
    async def go():
        ledger = Ledger(Budget())
        for _ in range(1000):
            await ledger.reserve(10**9, 1e9)
        assert ledger.calls == 1000

    asyncio.run(go())
