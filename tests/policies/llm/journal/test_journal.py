import asyncio
import json
import os
import random
import subprocess
import sys
import threading

import pytest
from journals import asked_first, found, in_journal, lines, many, nothing, record
from llm_tools import ENVIRONMENT, key, question, reply

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.policies.llm.asking.replay import ReplayChat
from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, NotInJournal, Usage
from llm_coop_envs.policies.llm.journal import Answers, Journal, JournalError, read_run, records
from llm_coop_envs.policies.llm.journal import frames as journal_frames
from llm_coop_envs.policies.llm.journal.records import FORMAT, read_part

FULL = reply(
    "näin 🙂\n\u2028",
    usage=Usage(10, 5, reasoning_tokens=3, cached_tokens=2, estimated=True),
    cost=0.001,
    refusal="no",
    reasoning="hm",
    latency=0.123456,
)


@pytest.mark.parametrize("kept", [reply(), FULL, ChatReply("", Usage(0, 0), "length", "m", 0.0)])
def test_an_answer_comes_back_as_it_was(tmp_path, kept):
    in_journal(tmp_path, lambda journal: record(journal, 1, kept))
    assert found(tmp_path, 1) == kept


def test_an_answer_is_found_in_the_session_that_wrote_it(tmp_path):
    async def use(journal):
        await record(journal, 1)
        return journal.answers.find(*asked_first())

    assert in_journal(tmp_path, use)[1] == reply("1")


def test_usual_tools_read_a_journal(tmp_path):
    in_journal(tmp_path, lambda journal: record(journal, 1, FULL))
    opened, sent, answer = lines(tmp_path / "journal" / "main.jsonl.zst")
    assert (opened["type"], opened["format"], opened["part"]) == ("opened", 1, "main")
    assert "llm-coop-envs" in opened["versions"]
    assert sent["type"] == "sent"
    assert sent["key"] == ["kbc/1", "player_1", 0, "choose", 0]
    assert (sent["tokens"], sent["usd"]) == (100, 0.5)
    assert answer["request"] == question("question 1").plain()
    assert answer["hash"] == sent["hash"] == question("question 1").digest()
    assert answer["reply"]["text"] == FULL.text
    assert (answer["tokens"], answer["usd"]) == (15, 0.25)


def test_many_answers_share_a_commit_and_a_sync(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), real(descriptor)))
    in_journal(tmp_path, many(500))
    assert len(synced) < 100
    for number in range(500):
        assert found(tmp_path, number) if number % 100 == 0 else True


def test_an_answer_is_on_the_disk_before_it_is_used(tmp_path):
    async def use(journal):
        await record(journal, 1)
        # The file as another process would see it now, without closing anything.
        assert len(read_part(journal.path, answers := Answers(tmp_path)).models) == 1
        assert answers.find(*asked_first()) == reply("1")

    in_journal(tmp_path, use)


def test_an_answer_is_not_seen_before_it_is_on_the_disk(tmp_path, monkeypatch):
    """Neither who asked nor who asks the same again gets it while the disk is still at work."""
    may_sync, syncing = threading.Event(), threading.Event()
    real = os.fsync

    def slow(descriptor):
        syncing.set()
        assert may_sync.wait(20)
        real(descriptor)

    async def use(journal):
        monkeypatch.setattr(os, "fsync", slow)
        asked, failing = question("question 1"), question("question 2")
        long = ChatError("too long", kind="context_too_long")
        waiting = [
            asyncio.ensure_future(journal.record_answer(key(1), asked, asked.digest(), reply(), tokens=1, usd=0)),
            asyncio.ensure_future(journal.record_failure(key(2), failing, failing.digest(), long, final=True)),
        ]
        await asyncio.to_thread(syncing.wait, 20)
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in waiting)
        assert journal.answers.find(*asked_first()) is None
        assert journal.answers.find(key(2), failing, failing.digest()) is None
        may_sync.set()
        await asyncio.gather(*waiting)
        assert journal.answers.find(*asked_first()) == reply()
        with pytest.raises(ChatError, match="too long"):
            journal.answers.find(key(2), failing, failing.digest())

    in_journal(tmp_path, use)


GROWTH = """
from pathlib import Path
from llm_coop_envs.policies.llm.chat import ChatReply, RequestKey, Usage
from llm_coop_envs.policies.llm.journal import Answers
from llm_coop_envs.util.fastjson import dumps

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

answers = Answers(Path())
for number in range(22_000):
    if number == 2_000:
        before = resident()
    reply = ChatReply(f"{number} " * 300, Usage(1, 1), "stop", "m", 0.5)
    answers.add(RequestKey(f"kbc/{number}", "player_1", number, "choose"), f"{number:064}", dumps(reply.plain()))
print(resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_does_not_grow_with_the_answers():
    grown = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert int(grown.stdout) < 20_000 * 300  # they are 2 kB each


def test_a_new_question_is_not_looked_up_in_the_file(tmp_path, monkeypatch):
    async def use(journal):
        await many(3)(journal)
        monkeypatch.setattr(journal.answers, "_execute", None)
        assert journal.answers.find(*asked_first()) == reply("1")
        new = question("question 9")
        assert journal.answers.find(key(9), new, new.digest()) is None

    in_journal(tmp_path, use)


def test_questions_that_share_a_mark_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_BLOOM_BITS", 8)
    monkeypatch.setattr(records, "_FLUSH_AT", 4)
    in_journal(tmp_path, many(50))
    in_journal(tmp_path, many(50, first=40))
    assert [found(tmp_path, number).text for number in range(90)] == [f"{number}" for number in range(90)]
    assert read_run(tmp_path)[0].double == 10
    with pytest.raises(NotInJournal):
        found(tmp_path, 90)


def test_no_room_for_temporary_files_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_FLUSH_AT", 1)

    async def use(journal):
        await record(journal, 0)
        journal.answers._table.close()  # as far as the journal can tell, like a full disk
        with pytest.raises(JournalError, match="temporary file"):
            await record(journal, 1)

    in_journal(tmp_path, use)
    assert found(tmp_path, 1).text == "1"


def test_a_slow_disk_delays_answers_and_not_questions(tmp_path, monkeypatch):
    may_sync = threading.Event()
    real = os.fsync

    def slow(descriptor):
        assert may_sync.wait(20)
        real(descriptor)

    async def use(journal):
        monkeypatch.setattr(os, "fsync", slow)
        asked = question("question 1")
        answered = asyncio.ensure_future(journal.record_answer(key(1), asked, asked.digest(), reply(), tokens=1, usd=0))
        for number in range(2, 5):
            await journal.record_attempt(key(number), "hash", tokens=1, usd=0)
        assert not answered.done()
        assert read_part(journal.path, Answers(tmp_path)).calls == 3
        may_sync.set()
        await answered

    in_journal(tmp_path, use)


def test_a_disk_that_cannot_sync_stops_everything_with_a_sentence(tmp_path, monkeypatch):
    async def use(journal):
        def broken(descriptor):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(JournalError, match="Input/output error"):
            await record(journal, 1)
        monkeypatch.undo()
        with pytest.raises(JournalError, match="Input/output error"):
            await record(journal, 2)

    in_journal(tmp_path, use)


def test_order_does_not_matter(tmp_path):
    order = list(range(50))
    random.Random(1).shuffle(order)

    async def use(journal):
        for number in order:
            await record(journal, number)

    in_journal(tmp_path, use)
    chat = ReplayChat(tmp_path)
    for number in range(50):
        assert asyncio.run(chat.ask(key(number), question(f"question {number}"))).text == str(number)


def test_a_journal_is_continued(tmp_path):
    one, _ = in_journal(tmp_path, many(3))
    two, _ = in_journal(tmp_path, many(3, first=3))
    assert one.run == two.run
    assert (two.report.answers, two.report.calls, two.report.tokens, two.report.usd) == (3, 3, 45, 0.75)
    assert not two.notes
    assert [found(tmp_path, n).text for n in range(6)] == list("012345")


def test_what_a_run_used_is_read_from_it(tmp_path):
    async def use(journal):
        await record(journal, 1, reply(cost=0.25))
        asked = question("question 2")
        for error in (ChatError("busy", kind="rate_limit"), ChatError("late", kind="timeout", maybe_paid=True)):
            await journal.record_attempt(key(2), asked.digest(), tokens=100, usd=0.5)
            await journal.record_failure(key(2), asked, asked.digest(), error, final=False)
        await record(journal, 2)
        await journal.record_attempt(key(3), "unanswered", tokens=1000, usd=5.0)  # as a killed session leaves it
        shared = question("question 4")
        await journal.record_answer(key(4), shared, shared.digest(), reply(cost=0.0), tokens=0, usd=0.0, source="cache")

    in_journal(tmp_path, use)
    (report,) = read_run(tmp_path)
    assert (report.calls, report.answers, report.cached) == (5, 3, 1)
    assert report.errors == {"rate_limit": 1, "timeout": 1}
    assert (report.lost, report.lost_usd) == (2, 5.5)
    assert (report.tokens, report.usd) == (15 + 15 + 100 + 1000, 0.25 + 0.25 + 0.5 + 5.0)
    assert (report.prompt_tokens, report.completion_tokens) == (20, 10)
    assert (report.cost, report.unpriced) == (0.25, 1)
    assert report.models == {"reported": 3}
    again, _ = in_journal(tmp_path, nothing)
    assert (
        "2 attempts of earlier sessions brought no answer and may have been paid for ($5.5000 at most)"
        in again.notes[0]
    )


def test_an_error_that_the_policy_was_told_is_told_again(tmp_path):
    async def use(journal):
        asked = question("question 1")
        error = ChatError("there answered 400: too long", kind="context_too_long", status=400)
        await journal.record_attempt(key(1), asked.digest(), tokens=1, usd=0)
        await journal.record_failure(key(1), asked, asked.digest(), error, final=True)

    in_journal(tmp_path, use)
    with pytest.raises(ChatError, match="answered 400: too long") as raised:
        found(tmp_path, 1)
    assert raised.value.kind == "context_too_long"


def test_an_attempt_that_failed_is_no_answer(tmp_path):
    async def use(journal):
        asked = question("question 1")
        await journal.record_attempt(key(1), asked.digest(), tokens=1, usd=0)
        await journal.record_failure(key(1), asked, asked.digest(), ChatError("oh", kind="auth"), final=False)

    in_journal(tmp_path, use)
    with pytest.raises(NotInJournal):
        found(tmp_path, 1)


def test_the_first_of_two_answers_counts(tmp_path):
    async def use(journal):
        await record(journal, 1, reply("first"))
        await record(journal, 1, reply("second"))

    in_journal(tmp_path, use)
    assert found(tmp_path, 1).text == "first"
    assert read_run(tmp_path)[0].double == 1


def test_a_newer_format_is_not_guessed_at(tmp_path):
    path = tmp_path / "journal" / "main.jsonl.zst"
    path.parent.mkdir()
    path.write_bytes(journal_frames.packer(".jsonl.zst")(b'{"type":"opened","format":2,"run":"x"}\n'))
    with pytest.raises(JournalError, match="format 2, this version of llm-coop-envs reads 1"):
        in_journal(tmp_path, nothing)


def test_an_empty_file_is_a_session_killed_at_its_birth(tmp_path):
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "main.jsonl.zst").touch()
    in_journal(tmp_path, many(1))
    assert found(tmp_path, 0).text == "0"


def test_without_zstandard_everything_works_in_gzip(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_frames, "zstandard", None)
    in_journal(tmp_path, many(20))
    assert (tmp_path / "journal" / "main.jsonl.gz").is_file()
    assert found(tmp_path, 7).text == "7"
    monkeypatch.undo()
    # Installed later: the part goes on as it began.
    in_journal(tmp_path, many(1, first=20))
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["main.jsonl.gz"]
    assert found(tmp_path, 20).text == "20"


def test_parts_are_written_side_by_side_and_read_together(tmp_path):
    async def go():
        one, two = Journal(tmp_path, "a"), Journal(tmp_path, "b")
        await asyncio.gather(record(one, 1), record(two, 2))
        await asyncio.gather(one.close(), two.close())
        return one, two

    one, two = asyncio.run(go())
    assert one.run != two.run
    assert [found(tmp_path, n).text for n in (1, 2)] == ["1", "2"]
    third, _ = in_journal(tmp_path, nothing, part="c")
    assert third.answers.find(*asked_first()) == reply("1")
    assert third.report.calls == 0


def test_two_writers_of_one_part_are_refused(tmp_path):
    async def use(journal):
        with pytest.raises(JournalError, match=rf"process {os.getpid()} on .* is writing it"):
            Journal(tmp_path)

    in_journal(tmp_path, use)
    in_journal(tmp_path, nothing)
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["main.jsonl.zst"]


@pytest.mark.parametrize("part", ["", "../x", "a b", "-a", "x" * 101, "a.b"])
def test_a_parts_name_is_a_plain_name(tmp_path, part):
    with pytest.raises(SettingsError, match="part"):
        Journal(tmp_path, part)


def test_a_full_disk_stops_everything_with_a_sentence(tmp_path, monkeypatch):
    async def use(journal):
        await record(journal, 1)

        def full(descriptor, data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        results = await asyncio.gather(*[record(journal, n) for n in range(2, 6)], return_exceptions=True)
        assert all(isinstance(r, JournalError) and "No space left on device" in str(r) for r in results)
        monkeypatch.undo()
        with pytest.raises(JournalError, match="No space left"):
            await record(journal, 9)

    in_journal(tmp_path, use)
    assert found(tmp_path, 1).text == "1"
    in_journal(tmp_path, many(1, first=2))
    assert found(tmp_path, 2).text == "2"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "journal").write_text("in the way")
    with pytest.raises(RunError, match="cannot be written"):
        Journal(tmp_path)


def test_a_closed_journal_takes_nothing(tmp_path):
    async def go():
        journal = Journal(tmp_path)
        await journal.close()
        await journal.close()
        with pytest.raises(JournalError, match="is closed"):
            await record(journal, 1)

    asyncio.run(go())


def test_closing_writes_what_nobody_waits_for(tmp_path):
    async def use(journal):
        asked = question("question 1")
        await journal.record_failure(key(1), asked, asked.digest(), ChatError("oh", kind="server"), final=False)

    in_journal(tmp_path, use)
    assert read_run(tmp_path)[0].errors == {"server": 1}


def test_nothing_of_this_machine_is_in_a_journal(tmp_path):
    import socket

    in_journal(tmp_path, many(2))
    told = json.dumps(lines(tmp_path / "journal" / "main.jsonl.zst"))
    assert socket.gethostname() not in told
    assert str(tmp_path) not in told
    assert FORMAT == 1
