"""Nothing that takes longer is silent, in a terminal or in a log."""

import time

import pytest

from llm_coop_envs.runs import progress
from llm_coop_envs.runs.progress import counting, waiting, working
from llm_coop_envs.runs.remaining import count_of, format_clock
from llm_coop_envs.util import pace


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.05)


def test_two_seconds_of_silence_are_the_most():
    assert progress.FIRST_SECONDS <= 2


def test_a_log_is_told_what_takes_long(quick, capsys):
    with working("Reading [a] file") as tell:
        time.sleep(0.1)
        tell("Drawing")
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Reading [a] file ..."
    assert lines[-1] == "Drawing ..."


def test_what_is_done_at_once_says_nothing(capsys):
    with working("Reading"):
        pass
    assert capsys.readouterr().err == ""


def test_what_is_counted_has_a_remaining_time(quick, capsys, monkeypatch):
    monkeypatch.setattr(pace, "SURE_SECONDS", 0.1)
    with counting("steps", 1000) as count:
        count(0)
        time.sleep(0.2)
        count(200)
        time.sleep(0.2)
    assert "200 of 1,000 steps, about 1 s left (" in capsys.readouterr().err


def test_nothing_is_said_while_a_person_is_asked(quick, capsys):
    def think(prompt):
        time.sleep(0.2)
        return prompt

    with waiting("The game goes on") as marked:
        assert marked(think)("number > ") == "number > "
        asked = capsys.readouterr().err
        time.sleep(0.2)
    assert asked == ""
    assert "The game goes on ..." in capsys.readouterr().err


def test_words():
    assert (format_clock(59.6), format_clock(3725)) == ("1:00", "1:02:05")
    assert (count_of(1, "more episode"), count_of(0, "episode")) == ("1 more episode", "0 episodes")
