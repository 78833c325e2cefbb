import asyncio
import random

import pytest
from journals import described, found, in_journal, many, nothing, record
from llm_tools import key, question, reply

from llm_coop_envs.policies.llm.asking.replay import ReplayChat
from llm_coop_envs.policies.llm.chat import ChatError, NotInJournal
from llm_coop_envs.policies.llm.journal import Answers, JournalError, salvage
from llm_coop_envs.policies.llm.journal import frames as journal_frames
from llm_coop_envs.policies.llm.journal.records import read_part


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_end_is_moved_aside_and_reported(tmp_path, seed):
    in_journal(tmp_path, many(3))
    path = tmp_path / "journal" / "main.jsonl.zst"
    whole = path.read_bytes()
    in_journal(tmp_path, many(1, first=3))
    longer = path.read_bytes()
    cut = random.Random(seed).randrange(len(whole) + 1, len(longer))
    path.write_bytes(longer[:cut])
    before = read_part(path, Answers(tmp_path))
    journal, _ = in_journal(tmp_path, many(1, first=4))
    if before.torn is not None:
        (aside,) = (tmp_path / "journal").glob("*.torn-*")
        assert aside.read_bytes() == longer[before.torn.start : cut]
        assert "cut short" in journal.notes[0]
        assert aside.name in journal.notes[0]
    assert [found(tmp_path, n).text for n in (0, 1, 2, 4)] == list("0124")
    assert not read_part(path, Answers(tmp_path)).gaps
    again, _ = in_journal(tmp_path, nothing)
    assert not any("cut short" in note for note in again.notes)


def test_a_torn_end_does_not_hinder_a_replay(tmp_path):
    in_journal(tmp_path, many(3))
    path = tmp_path / "journal" / "main.jsonl.zst"
    path.write_bytes(path.read_bytes() + b"\x28\xb5\x2f\xfd\x04")
    before = path.read_bytes()
    chat = ReplayChat(tmp_path)
    assert "cut short (5 bytes)" in chat.notes[0]
    assert asyncio.run(chat.ask(key(2), question("question 2"))).text == "2"
    assert path.read_bytes() == before


def damaged(folder):
    """A journal of ten answers in ten commits, the fifth of them spoilt."""

    async def use(journal):
        for number in range(10):
            asked = question(f"question {number}")
            await journal.record_answer(key(number), asked, asked.digest(), reply(f"{number}"), tokens=1, usd=0)

    in_journal(folder, use)
    path = folder / "journal" / "main.jsonl.zst"
    with path.open("rb") as file:
        frames = list(journal_frames.read_frames(file, ".jsonl.zst"))
    raw = bytearray(path.read_bytes())
    middle = (frames[5].start + frames[5].end) // 2
    raw[middle : middle + 20] = b"x" * 20
    path.write_bytes(raw)
    return path, frames[5]


def test_other_damage_is_named_with_what_can_be_saved(tmp_path):
    path, frame = damaged(tmp_path)
    for use in (lambda: in_journal(tmp_path, nothing), lambda: ReplayChat(tmp_path)):
        with pytest.raises(JournalError) as raised:
            use()
        said = str(raised.value)
        assert str(path) in said
        assert f"bytes {frame.start} to {frame.end}" in said
        assert "9 answers" in said
        assert "--salvage" in said


def test_salvage_keeps_what_can_be_read_and_the_damaged_file(tmp_path):
    path, _ = damaged(tmp_path)
    broken = path.read_bytes()
    (said,) = salvage(tmp_path)
    assert "with 9 answers" in said
    (aside,) = (tmp_path / "journal").glob("*.damaged-*")
    assert aside.read_bytes() == broken
    lost = []
    for number in range(10):
        try:
            assert found(tmp_path, number).text == str(number)
        except NotInJournal:
            lost.append(number)
    assert len(lost) == 1
    assert salvage(tmp_path) == []
    in_journal(tmp_path, many(1, first=lost[0]))
    assert found(tmp_path, lost[0]).text == str(lost[0])


def test_what_a_journal_holds_in_words(tmp_path):
    async def use(journal):
        await record(journal, 1, reply(cost=0.25))
        await record(journal, 2)
        asked = question("question 3")
        await journal.record_attempt(key(3), asked.digest(), tokens=100, usd=0.5)
        await journal.record_failure(
            key(3), asked, asked.digest(), ChatError("x", kind="timeout", maybe_paid=True), final=False
        )

    in_journal(tmp_path, use)
    path = tmp_path / "journal" / "main.jsonl.zst"
    assert described(tmp_path) == [
        f"{path}: 2 answers (2 by reported; 0 from a cache) in 3 attempts, 20 + 10 tokens, $0.2500 and 1 answers of "
        "unknown price",
        f"{path}: failed attempts: 1 timeout",
        f"{path}: 1 attempts without an answer may be on the bill ($0.5000)",
    ]
    path.write_bytes(path.read_bytes() + b"torn")
    assert "cut short (4 bytes); the next run moves it aside" in described(tmp_path)[-1]
    damaged(tmp_path / "other")
    assert "is damaged at bytes" in described(tmp_path / "other")[-1]


def test_a_line_that_is_none_is_damage(tmp_path):
    in_journal(tmp_path, many(1))
    path = tmp_path / "journal" / "main.jsonl.zst"
    pack = journal_frames.packer(".jsonl.zst")
    path.write_bytes(path.read_bytes() + pack(b'{"type":"answer"}\n') + pack(b'{"type":"mystery","key":[]}\n'))
    with pytest.raises(JournalError, match="holds an invalid line"):
        in_journal(tmp_path, nothing)
