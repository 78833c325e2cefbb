import copy
import pickle
import string

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.interface.spaces import LONGEST_SAMPLE, SAMPLE_CHARACTERS, UnicodeText


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


@given(st.text(max_size=40))
def test_flattened_and_back(text):
    space = UnicodeText(40)
    flat = flatten(space, text)
    assert flatten_space(space).contains(flat)
    assert flat.shape == (flatdim(space),) == (40,)
    assert flat[: len(text)].tolist() == [ord(one) for one in text]
    assert unflatten(space, flat) == text


def test_inside_other_spaces_it_is_flattened_too():
    space = gymnasium.spaces.Dict({"text": UnicodeText(5), "turn": gymnasium.spaces.Discrete(2)})
    flat = flatten(space, {"text": "a_\u00fc", "turn": 1})
    assert flat.tolist() == [97, 95, 252, 0x110000, 0x110000, 0, 1]
    assert flatten_space(space).contains(flat)


def test_samples_are_short_however_long_texts_may_be():
    space = UnicodeText(10**9, seed=0)
    assert max(len(space.sample()) for _ in range(50)) <= LONGEST_SAMPLE
    assert len(space.sample(mask=(3, None))) == 3
    letters = np.array([one == "x" for one in space.character_list], dtype=np.int8)
    assert set(space.sample(mask=(None, letters))) == {"x"}
    assert space.sample(probability=(2, letters.astype(np.float64))) == "xx"
