import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.limits import goes_on, pause_after
from llm_coop_envs.policies.llm.chat import ChatError
from llm_coop_envs.policies.llm.clients.endpoint import Retry

FAILED = ChatError("no", kind="server")


def test_the_defaults():
    assert Retry() == Retry(attempts=12, first_pause=0.5, longest_pause=60.0, total=1800.0)
    # "one question in two million fails for good": the docstring's number, at 30 % faults
    assert 1 / 0.3 ** Retry().attempts == pytest.approx(1.88e6, rel=0.01)


@given(st.integers(1, 2000), st.integers(0, 2**32))
def test_pauses_are_drawn_from_the_whole_range_and_capped(failures, seed):
    retry = Retry(first_pause=0.5, longest_pause=60)
    most = min(60.0, 0.5 * 2.0 ** min(failures - 1, 40))
    pauses = [pause_after(retry, failures, FAILED, random.Random(f"{seed} {i}")) for i in range(50)]
    assert all(0 <= pause <= most for pause in pauses)
    assert min(pauses) < most / 2 < max(pauses)


def test_pauses_double():
    class Most:
        def uniform(self, low, high):
            assert low == 0
            return high

    retry = Retry(first_pause=0.5, longest_pause=60)
    found = [pause_after(retry, n, FAILED, Most()) for n in range(1, 10)]
    assert found == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_pause_is_at_least_what_the_provider_asked_for():
    asked = ChatError("wait", kind="rate_limit", retry_after=90.0)
    assert pause_after(Retry(), 1, asked, random.Random(0)) == 90.0


@pytest.mark.parametrize(
    ("failures", "spent", "error", "again"),
    [
        (11, 0.0, FAILED, True),
        (12, 0.0, FAILED, False),
        (1, 1799.9, FAILED, True),
        (1, 1800.0, FAILED, False),
        (1, 0.0, ChatError("no", kind="auth"), False),
        (1, 0.0, ChatError("no", kind="rate_limit", retry_after=1800.0), True),
        (1, 0.0, ChatError("no", kind="rate_limit", retry_after=1801.0), False),
    ],
)
def test_when_it_goes_on(failures, spent, error, again):
    assert goes_on(Retry(), failures, spent, error) is again


@pytest.mark.parametrize(
    "field", [{"attempts": 0}, {"attempts": 1.5}, {"first_pause": -1}, {"longest_pause": -1}, {"total": 0}]
)
def test_impossible_settings(field):
    with pytest.raises(SettingsError, match=next(iter(field))):
        Retry(**field)
