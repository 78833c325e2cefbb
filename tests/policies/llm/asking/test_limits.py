import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.limits import COOL_DOWN, HOLD, Bucket, InFlight
from llm_coop_envs.policies.llm.clients.endpoint import Limits


def rounds(found, now, count, latency=1.0):
    """Full rounds of answers, each after `latency`; returns the time and the limits after each."""
    seen = []
    for _ in range(count):
        size = found.limit
        for i in range(size):
            found.record_sent(now, i + 1)
        now += latency
        for _ in range(size):
            found.record_answer(now)
        seen.append(found.limit)
    return now, seen


def test_the_defaults():
    assert Limits() == Limits(start=8, most=4096, requests_per_minute=None, tokens_per_minute=None)
    assert (COOL_DOWN, HOLD) == (15.0, 60.0)


@pytest.mark.parametrize(
    "field",
    [{"start": 0}, {"most": 0}, {"start": 9, "most": 8}, {"requests_per_minute": 0}, {"tokens_per_minute": 0.5}],
)
def test_impossible_settings(field):
    with pytest.raises(SettingsError, match=next(iter(field))):
        Limits(**field)


def test_it_doubles_until_the_ceiling():
    found = InFlight(Limits(start=8, most=100))
    _, seen = rounds(found, 0.0, 6)
    assert seen == [16, 32, 64, 100, 100, 100]


def test_it_does_not_grow_if_it_was_not_reached():
    found = InFlight(Limits(start=8))
    for now in range(50):
        found.record_sent(now, 1)
        found.record_answer(now + 0.5)
    assert found.limit == 8


def test_a_refusal_shrinks_it_once_per_episode():
    found = InFlight(Limits(start=100))
    found.record_refusal(0.0, 100)
    assert found.limit == 80
    found.record_refusal(14.9, 80)
    assert found.limit == 80
    found.record_refusal(15.0, 80)
    assert found.limit == 64
    for now in range(16, 4000, 16):
        found.record_refusal(float(now + 100), 1)
    assert found.limit == 1


def test_a_refusal_counts_from_what_was_in_flight():
    found = InFlight(Limits(start=1000))
    found.record_refusal(0.0, 50)
    assert found.limit == 40


def test_after_a_refusal_it_grows_by_five_percent_a_round_when_it_has_cooled_down():
    found = InFlight(Limits(start=100))
    found.record_refusal(0.0, 100)
    now, seen = rounds(found, 1.0, 13)
    assert seen == [80] * 13
    _, seen = rounds(found, now + 2, 3)
    assert seen == [84, 88, 92]


def test_small_limits_grow_too():
    found = InFlight(Limits(start=2))
    found.record_refusal(0.0, 2)
    assert found.limit == 1
    _, seen = rounds(found, 20.0, 2)
    assert seen == [2, 3]


def test_a_server_error_stops_growth_for_a_while_and_shrinks_nothing():
    found = InFlight(Limits(start=8))
    found.record_fault(0.0)
    now, seen = rounds(found, 1.0, 13)
    assert seen == [8] * 13
    _, seen = rounds(found, now + 1, 1)
    assert seen == [16]


def simulated(slots, seconds, service=1.0):
    """A server that works on `slots` requests at once and queues the others."""
    found = InFlight(Limits(start=8, most=4096))
    now, open_requests, free_at, answers = 0.0, [], [0.0] * slots, 0
    while now < seconds:
        while len(open_requests) < found.limit:
            slot = heapq.heappop(free_at)
            done = max(now, slot) + service
            heapq.heappush(free_at, done)
            heapq.heappush(open_requests, done)
            found.record_sent(now, len(open_requests))
        now = heapq.heappop(open_requests)
        found.record_answer(now)
        answers += 1
    return found.limit, answers / seconds


def test_it_stays_small_for_a_server_that_gets_no_faster():
    limit, _ = simulated(slots=4, seconds=600)
    assert 4 <= limit <= 16


@pytest.mark.parametrize("slots", [32, 200])
def test_it_finds_what_a_server_can_do(slots):
    limit, rate = simulated(slots=slots, seconds=300)
    assert rate > 0.9 * slots
    assert limit <= 4 * slots


def test_no_limit_is_no_wait():
    bucket = Bucket(None, 0.0)
    bucket.take(1e9, 0.0)
    assert bucket.wait(1e9, 0.0) == 0.0


@given(st.integers(1, 100_000), st.lists(st.floats(0, 3), max_size=100))
def test_no_minute_gets_more_than_its_amount_and_a_second_of_it(per_minute, pauses):
    bucket, now, taken = Bucket(per_minute, 0.0), 0.0, []
    for pause in pauses:
        now += pause
        if bucket.wait(1, now) == 0.0:
            bucket.take(1, now)
            taken.append(now)
    room = max(1.0, per_minute / 60)
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= per_minute + room + 1e-6


@given(st.integers(1, 10_000), st.integers(1, 1000))
def test_after_the_wait_it_may_be_taken(per_minute, amount):
    bucket = Bucket(per_minute, 0.0)
    bucket.take(amount, 0.0)
    wait = bucket.wait(amount, 0.0)
    assert bucket.wait(amount, wait + 1e-6) == pytest.approx(0.0, abs=1e-6)


def test_a_large_amount_leaves_a_debt():
    bucket = Bucket(60, 0.0)
    assert bucket.wait(10, 0.0) == 0.0
    bucket.take(10, 0.0)
    assert bucket.wait(1, 0.0) == pytest.approx(10.0)
    bucket.take(-5, 0.0)
    assert bucket.wait(1, 0.0) == pytest.approx(5.0)


def refused_at_random(share, seconds, capacity=None):
    """Requests of a second each; a share of them is refused, and all that find `capacity` others there.

    Returns the limits at the end of each second, for the last half.
    """
    generator = random.Random(7)
    found = InFlight(Limits(start=8, most=400))
    limits = []
    for second in range(seconds):
        size = found.limit
        for i in range(size):
            found.record_sent(float(second), i + 1)
        for i in range(size):
            now = second + (i + 1) / (size + 1)
            if (capacity is not None and i >= capacity) or generator.random() < share:
                found.record_refusal(now, size)
            else:
                found.record_answer(now)
        limits.append(found.limit)
    return limits[seconds // 2 :]


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_refusals_that_come_whatever_we_do_do_not_starve_the_run(share):
    assert min(refused_at_random(share, 2000)) > 100


def test_refusals_that_come_from_too_many_keep_it_near_what_is_allowed():
    seen = refused_at_random(0.0, 4000, capacity=50)
    assert max(seen) <= 100
    assert min(seen) >= 25
    seen = refused_at_random(0.05, 4000, capacity=50)
    assert sum(seen) / len(seen) < 120
    assert min(seen) >= 20
