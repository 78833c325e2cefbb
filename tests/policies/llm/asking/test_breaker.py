import pytest

from llm_coop_envs.policies.llm.asking.limits import Breaker
from llm_coop_envs.policies.llm.chat import ChatError

DEAD = ChatError("gone", kind="network")


def failed(breaker, count, now):
    return [breaker.record_failure(DEAD, now) for _ in range(count)]


def test_twelve_failures_in_a_row_open_it():
    breaker = Breaker()
    assert failed(breaker, 11, 5.0) == [False] * 11
    assert not breaker.is_open
    assert breaker.record_failure(DEAD, 6.0) is True
    assert breaker.is_open
    assert (breaker.until, breaker.failures, breaker.dead_for, breaker.is_hopeless) == (11.0, 12, 1.0, False)


def test_an_answer_between_closes_it():
    breaker = Breaker()
    failed(breaker, 11, 0.0)
    assert breaker.record_answer() is False
    assert failed(breaker, 11, 0.0) == [False] * 11
    failed(breaker, 1, 0.0)
    assert breaker.record_answer() is True
    assert not breaker.is_open
    assert breaker.record_answer() is False


def test_pauses_double_up_to_two_minutes_and_start_again_after_an_answer():
    breaker = Breaker()
    failed(breaker, 11, 0.0)
    now, pauses = 0.0, []
    for _ in range(8):
        assert breaker.record_failure(DEAD, now)
        pauses.append(breaker.until - now)
        now = breaker.until
    assert pauses == [5, 10, 20, 40, 80, 120, 120, 120]
    breaker.record_answer()
    failed(breaker, 11, now)
    assert breaker.record_failure(DEAD, now)
    assert breaker.until == now + 5


def test_failures_during_a_pause_begin_no_other():
    breaker = Breaker()
    failed(breaker, 12, 0.0)
    assert failed(breaker, 50, 4.9) == [False] * 50


def test_it_is_hopeless_after_half_an_hour():
    breaker = Breaker()
    failed(breaker, 12, 0.0)
    assert breaker.record_failure(DEAD, 1799.0)
    assert not breaker.is_hopeless
    assert breaker.record_failure(DEAD, 1800.0 + 120)
    assert breaker.is_hopeless


@pytest.mark.parametrize("kind", ["rate_limit", "auth", "bad_request", "context_too_long", "content_filter"])
def test_orderly_refusals_are_signs_of_life(kind):
    breaker = Breaker()
    for _ in range(100):
        assert breaker.record_failure(ChatError("no", kind=kind), 0.0) is False
    assert not breaker.is_open
