import io
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.policies.llm.journal import frames as room
from llm_coop_envs.policies.llm.journal.frames import GZIP, ZSTD, Commit, Gap, packer, read_frames, suffix_of

KINDS = [ZSTD, GZIP]
# Noise of small sizes, and of sizes around what is read at once.
sizes = st.integers(1, 300) | st.integers(8000, 8400) | st.integers(70_000, 75_000)
commits = st.lists(
    st.builds(lambda size, seed: random.Random(seed).randbytes(size), sizes, st.integers()), min_size=1, max_size=6
)


def written(suffix, datas):
    pack = packer(suffix)
    return [pack(data) for data in datas]


@pytest.mark.parametrize("suffix", KINDS)
@given(commits)
def test_what_was_written_is_read(suffix, datas):
    packed = written(suffix, datas)
    found = list(read_frames(io.BytesIO(b"".join(packed)), suffix))
    assert [frame.data for frame in found] == datas
    assert found[0].start == 0
    assert all(one.end == other.start for one, other in itertools.pairwise(found))
    assert found[-1].end == sum(map(len, packed))


@pytest.mark.parametrize("suffix", KINDS)
@given(commits, st.data())
def test_a_file_cut_anywhere_loses_the_last_commit_only(suffix, datas, data):
    packed = written(suffix, datas)
    whole = b"".join(packed)
    cut = data.draw(st.integers(1, len(packed[-1]) - 1))
    found = list(read_frames(io.BytesIO(whole[:-cut]), suffix))
    assert [frame.data for frame in found if isinstance(frame, Commit)] == datas[:-1]
    gap = found[-1]
    assert isinstance(gap, Gap)
    assert gap.tail
    assert (gap.start, gap.end) == (sum(map(len, packed[:-1])), len(whole) - cut)


@pytest.mark.parametrize("suffix", KINDS)
@pytest.mark.parametrize("rest", [b"\0" * 5000, b"\xff", b"{}"])
def test_a_tail_that_is_no_frame_is_a_torn_tail(suffix, rest):
    packed = b"".join(written(suffix, [b"one\n", b"two\n"]))
    found = list(read_frames(io.BytesIO(packed + rest), suffix))
    assert [frame.data for frame in found[:2]] == [b"one\n", b"two\n"]
    assert found[2].tail
    assert found[2].start == len(packed)
    assert len(found) == 3


@pytest.mark.parametrize("suffix", KINDS)
@settings(max_examples=200)
@given(st.data())
def test_a_changed_byte_is_noticed_and_what_follows_is_saved(suffix, data):
    datas = [bytes([65 + i]) * 50 + b"\n" for i in range(4)]
    packed = written(suffix, datas)
    broken = data.draw(st.integers(0, 2))
    position = data.draw(st.integers(0, len(packed[broken]) - 1))
    raw = bytearray(packed[broken])
    raw[position] ^= data.draw(st.integers(1, 255))
    found = list(read_frames(io.BytesIO(b"".join([*packed[:broken], bytes(raw), *packed[broken + 1 :]])), suffix))
    read = [frame.data for frame in found if isinstance(frame, Commit)]
    # A frame's header has bits that change nothing; then the data are right all the same.
    assert read in (datas, datas[:broken] + datas[broken + 1 :])
    if read != datas:
        (gap,) = [one for one in found if isinstance(one, Gap)]
        assert not gap.tail
        start = sum(map(len, packed[:broken]))
        assert (gap.start, gap.end) == (start, start + len(packed[broken]))


@pytest.mark.parametrize("suffix", KINDS)
def test_the_same_lines_make_the_same_bytes(suffix):
    assert packer(suffix)(b"line\n" * 100) == packer(suffix)(b"line\n" * 100)


def test_without_zstandard_gzip_is_written_and_zstd_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "zstandard", None)
    assert room.default_suffix() == GZIP
    assert suffix_of(tmp_path / "main.jsonl.gz") == GZIP
    with pytest.raises(MissingExtra, match=r"main\.jsonl\.zst.*'openai'"):
        suffix_of(tmp_path / "main.jsonl.zst")
