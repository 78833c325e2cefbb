import copy
import pickle
import string

from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.core.spaces import SAMPLE_CHARACTERS, UnicodeText


@given(st.text())
def test_all_of_unicode_is_contained(text):
    space = UnicodeText(40)
    assert space.contains(text) == (len(text) <= 40)


def test_what_is_not_contained():
    space = UnicodeText(5)
    assert not space.contains("\ud800")
    assert not space.contains(b"abc")
    assert not space.contains(None)
    assert space.contains("")


def test_samples_are_plain_and_repeat():
    one, two = UnicodeText(50, seed=3), UnicodeText(50, seed=3)
    samples = [one.sample() for _ in range(20)]
    assert samples == [two.sample() for _ in range(20)]
    assert all(set(s) <= set(string.printable) for s in samples)
    assert isinstance(SAMPLE_CHARACTERS, str)


def test_copies_are_equal():
    space = UnicodeText(9)
    assert pickle.loads(pickle.dumps(space)) == space == copy.deepcopy(space)
    assert space != UnicodeText(8)
    assert repr(space) == "UnicodeText(9)"
