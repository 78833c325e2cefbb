import errno
import gzip
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.storage import files
from llm_coop_envs.util import opening

records = st.lists(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none()
    )
)


@given(records)
def test_lines_come_back_and_are_the_same_bytes_each_time(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("lines") / "a.gz"
    files.write_whole(path, files.pack_lines(data))
    assert files.read_lines(path) == data
    assert files.pack_lines(data) == path.read_bytes()


def test_any_unicode_survives(tmp_path):
    path = tmp_path / "a.gz"
    text = 'שלום 🙂 "\u2028\u0000\x1b[31m \\ </script>'
    files.write_whole(path, files.pack_lines([{"text": text}]))
    assert files.read_lines(path) == [{"text": text}]


def test_numbers_that_are_no_json_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        files.pack_lines([float("nan")])


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_a_damaged_file_is_named(tmp_path, cut):
    path = tmp_path / "a.gz"
    whole = files.pack_lines([{"a": i} for i in range(50)])
    path.write_bytes(whole[:cut] if cut else b"no gzip at all")
    with pytest.raises(RunError, match=r"a\.gz: cannot be read"):
        files.read_lines(path)


def test_compressed_rubbish_is_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"{no json}\n"))
    with pytest.raises(RunError, match="cannot be read"):
        files.read_lines(path)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    path = tmp_path / "a.txt"
    files.write_whole(path, b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RunError if isinstance(error, OSError) else type(error)) as caught:
        files.write_whole(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_bytes() == b"old"
    if isinstance(error, OSError):
        assert "the disk is full" in str(caught.value)
        assert "a.txt" in str(caught.value)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"a\.txt: cannot be written \(Not a directory\)|File exists"):
        files.write_whole(tmp_path / "file" / "a.txt", b"")


def test_sweeping_takes_leftovers_only(tmp_path):
    (tmp_path / "deep").mkdir()
    leftover = tmp_path / "deep" / f".a.txt.123{files.TEMPORARY}"
    leftover.write_bytes(b"half")
    files.write_whole(tmp_path / "deep" / "a.txt", b"whole")
    files.sweep(tmp_path)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["a.txt"]


def test_appended_lines_come_back(tmp_path):
    path = tmp_path / "deep" / "a.jsonl"
    assert files.read_appended(path) == []
    with files.open_for_append(path) as append:
        append({"a": "\u2028 é"})
        assert files.read_appended(path) == [{"a": "\u2028 é"}]
        append([1])
    with files.open_for_append(path) as append:
        append(None)
    assert files.read_appended(path) == [{"a": "\u2028 é"}, [1], None]


def test_reading_changes_nothing_while_a_line_is_being_written(tmp_path):
    path = tmp_path / "a.jsonl"
    with files.open_for_append(path) as append:
        append(1)
    half = path.read_bytes() + b'{"session": 9, "per'
    path.write_bytes(half)
    assert files.read_appended(path) == [1]
    assert path.read_bytes() == half
    with files.open_for_append(path) as append:
        append(2)
    assert path.read_bytes() == b"1\n2\n"


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"a"\n3\n')
    with pytest.raises(RunError, match=r"a\.jsonl, line 2, is damaged; delete that line"):
        files.read_appended(path)


def test_a_file_of_lines_that_cannot_be_used(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(RunError, match="cannot be read"):
        files.read_appended(tmp_path / "a")
    with pytest.raises(RunError, match="cannot be written"), files.open_for_append(tmp_path / "a"):
        pass


def test_a_full_disk_is_said_when_a_line_is_appended(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with files.open_for_append(tmp_path / "a.jsonl") as append:
        monkeypatch.setattr(files.json, "dumps", full)
        with pytest.raises(RunError, match=r"a\.jsonl: cannot be written, the disk is full"):
            append(1)


def test_lines_that_are_not_one_record_each_are_damage(tmp_path):
    path = tmp_path / "lines.jsonl.gz"
    for content in (b"1,2\n", b"1\n\n2\n", b"\n", b"[\n]\n"):
        path.write_bytes(gzip.compress(content))
        with pytest.raises(RunError, match="cannot be read"):
            files.read_lines(path)
    for content, records in ((b"{}\n{}", [{}, {}]), (b"", [])):
        path.write_bytes(gzip.compress(content))
        assert files.read_lines(path) == records


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_is_not_to_be_replaced_stays(tmp_path, monkeypatch, has_links):
    def link(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if not has_links:
        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "a"
    files.write_whole(path, b"first", replaces=False)
    with pytest.raises(FileExistsError):
        files.write_whole(path, b"second", replaces=False)
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a"]


def test_an_episode_beyond_the_limit_says_how_to_allow_it_and_not_to_delete_it(tmp_path, monkeypatch):
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(files.pack_lines([{"text": "x" * 3_000_000}]))
    monkeypatch.setattr(opening, "MAX_EPISODE", 1 << 20)
    with pytest.raises(RunError, match=r"more than the 1,048,576 bytes.*LLM_COOP_MAX_EPISODE_MIB") as raised:
        files.read_lines(path)
    assert "delete" not in str(raised.value)
    monkeypatch.setenv("LLM_COOP_MAX_EPISODE_MIB", "4")
    assert len(files.read_lines(path)) == 1
    for value in ("much", "-1", "1e3", "9" * 12):
        monkeypatch.setenv("LLM_COOP_MAX_EPISODE_MIB", value)
        with pytest.raises(SettingsError, match="must be a number of MiB"):
            files.read_lines(path)


def test_a_file_of_very_many_gzip_members_is_refused_at_once(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(gzip.compress(b"") * 500_000)
    began = time.process_time()
    with pytest.raises(RunError, match="more than 1,000 parts"):
        files.read_lines(path)
    assert time.process_time() - began < 5
