import asyncio
import socket

import pytest
from llm_tools import key, question, reply

from llm_coop_envs.policies.llm.asking.replay import ReplayChat
from llm_coop_envs.policies.llm.chat import ChatMessage, NotInJournal
from llm_coop_envs.policies.llm.journal import Journal, JournalError


@pytest.fixture
def recorded(tmp_path):
    async def go():
        journal = Journal(tmp_path)
        asked = question("You have 5 coins.\nWhich number?\nThink.", temperature=0.7)
        await journal.record_answer(key(1), asked, asked.digest(), reply("1"), tokens=1, usd=0)
        await journal.close()

    asyncio.run(go())
    return tmp_path


def ask(folder, number=1, text="You have 5 coins.\nWhich number?\nThink.", **fields):
    request = question(text, **{"temperature": 0.7, **fields})
    return asyncio.run(ReplayChat(folder).ask(key(number), request))


def test_a_replay_needs_no_network(recorded, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a replay opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert ask(recorded).text == "1"


def test_a_replay_changes_nothing(recorded):
    def state():
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in recorded.rglob("*") if path.is_file()}

    before = state()
    ask(recorded)
    assert state() == before


def test_what_is_not_there_is_named(recorded):
    with pytest.raises(NotInJournal, match=r"no answer for \(kbc/1, player_2, step 0, choose\)"):
        ask(recorded, number=2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"temperature": 0.5}, "temperature was 0.7, is now 0.5"),
        ({"seed": 3}, "seed was None, is now 3"),
        (
            {"text": "You have 6 coins.\nWhich number?\nThink."},
            "message 2, line 1 was 'You have 5 coins.', is now 'You have 6",
        ),
        ({"text": "You have 5 coins.\nWhich number?"}, "message 2, line 3 was 'Think.', is now ''"),
        ({"messages": (ChatMessage("user", "x"),)}, "it had 2 messages, has now 1"),
        (
            {"messages": (ChatMessage("user", "You are player one."), ChatMessage("user", "x"))},
            "message 1 was the system's, is now the user's",
        ),
    ],
)
def test_another_question_is_named_with_the_difference(recorded, change, said):
    with pytest.raises(NotInJournal, match=r"under \(kbc/1, player_1, step 0, choose\)") as raised:
        ask(recorded, **change)
    assert said in str(raised.value)
    assert "begin a new run folder" in str(raised.value)


def test_a_difference_far_into_a_line_is_shown_there(tmp_path):
    async def go():
        journal = Journal(tmp_path)
        asked = question("x" * 500 + "A" + "y" * 500)
        await journal.record_answer(key(1), asked, asked.digest(), reply("1"), tokens=1, usd=0)
        await journal.close()

    asyncio.run(go())
    with pytest.raises(NotInJournal, match=r"…x+Ay+….*…x+By+…") as raised:
        ask(tmp_path, text="x" * 500 + "B" + "y" * 500, temperature=None)
    assert len(str(raised.value)) < 600


def test_a_run_without_a_journal(tmp_path):
    with pytest.raises(JournalError, match="holds no journal; give"):
        ReplayChat(tmp_path)


def test_replays_are_counted(recorded):
    async def go():
        chat = ReplayChat(recorded)
        for _ in range(3):
            await chat.ask(key(1), question("You have 5 coins.\nWhich number?\nThink.", temperature=0.7))
        return chat.counters

    assert asyncio.run(go()).replayed == 3
