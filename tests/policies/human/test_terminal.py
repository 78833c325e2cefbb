import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import PlayerLeft, SettingsError
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.policies.human import player
from llm_coop_envs.policies.human.terminal import Terminal, TerminalHuman, abbreviate_list, make_visible


def typing(*lines):
    """A terminal at which these lines are typed, and what it shows."""
    rest, seen = iter(lines), []

    def read(prompt):
        seen.append(prompt)
        line = next(rest, None)
        if line is None:
            raise EOFError
        if isinstance(line, BaseException):
            raise line
        seen.append(f"<{line}>")
        return line

    return Terminal(read=read, write=seen.append, width=200), seen


def contest(terminal, **settings):
    env = kbc_v0.parallel_env(players=3, record=True, **settings)
    human = TerminalHuman(terminal)
    seats = {"player_0": human, "player_1": scripted.make("kbc/announcer"), "player_2": scripted.make("kbc/poisson")}
    play(env, seats, seed=1)
    return env.events


def test_a_person_is_a_policy_like_any_other():
    terminal, seen = typing("33", "I take 20", "20", "", "nonsense", "21", "x", "22")
    events = contest(terminal)
    mine = [event for event in events if event.get("agent") == "player_0"]
    assert [event["choice"] for event in mine if event["type"] == "choice"] == [33, 20, 21, 22]
    assert [event["text"] for event in mine if event["type"] == "message"] == ["I take 20", "x"]
    assert not any(event["flags"] for event in mine)
    told = "\n".join(seen)
    assert "is no number" in told
    assert told.count("You are player_0 in a contest of 3 players") == 1
    assert told.count("Now name your number: ") == 4


def test_everything_again():
    terminal, seen = typing("33", "", "?", "20", "", "21", "", "22")
    contest(terminal)
    assert sum("You are player_0 in a contest of 3 players" in line for line in seen) == 2


@pytest.mark.parametrize(
    ("last", "why"),
    [("/quit", "/quit was typed"), (EOFError(), "input has ended"), (KeyboardInterrupt(), "Ctrl-C was pressed")],
)
def test_leaving(last, why):
    terminal, _ = typing("33", last)
    with pytest.raises(PlayerLeft, match=why):
        contest(terminal)


def test_unreadable_bytes_are_asked_again():
    bad = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    terminal, seen = typing(bad, "33", "", "20", "", "21", "", "22")
    assert len(contest(terminal)) > 10
    assert any("no readable text" in line for line in seen)


def test_what_others_say_cannot_command_the_terminal():
    evil = "\x1b[2J\x1b]0;title\x07 \x9b31m \u202eabc\u2028 \x7f \ud800 ok\tthere\n"
    text = make_visible(evil)
    assert "\x1b" not in text
    assert text == "\u241b[2J\u241b]0;title\u2407 \\u009b31m \\u202eabc\\u2028 \u2421 \\ud800 ok\tthere\n"
    terminal, seen = typing("1")
    terminal.say(evil)
    terminal.ask(evil)
    assert not any(set("\x1b\x07\x9b\x7f\u202e\ud800") & set(line) for line in seen)


def test_long_lines_are_wrapped():
    seen = []
    Terminal(write=seen.append, width=30).say("- " + "word " * 20)
    assert len(seen) > 3
    assert max(map(len, seen)) <= 30
    assert seen[1].startswith("  word")


def test_a_list_that_has_grown_is_shown_from_where_it_grew():
    old = "Said so far:\na: 1\nb: 2"
    assert abbreviate_list(old + "\na: 1", [old]) == "Said so far:\n...\na: 1"
    assert abbreviate_list("Other:\nx", [old]) == "Other:\nx"


def test_several_seats_at_one_terminal():
    env = kbc_v0.parallel_env(players=2, talk=False, session="single", record=True)
    terminal, seen = typing("10", "20")
    play(env, TerminalHuman(terminal), seed=1)
    assert [event["choice"] for event in env.events if event["type"] == "choice"] == [10, 20]
    assert "--- player_1 ---" in seen


def test_in_studies_a_person_has_no_options():
    assert player.LABEL == "human"
    assert isinstance(player.make("kbc", "", {}), TerminalHuman)
    with pytest.raises(SettingsError, match="write 'human'"):
        player.check("kbc", "me", {})
    with pytest.raises(SettingsError, match="is no option"):
        player.check("kbc", "", {"speed": 1})


def test_others_are_asked_before_everything_waits():
    """Questions to models go out before the loop stands still for a person."""
    order = []

    class Other(TerminalHuman):
        async def act(self, requests):
            order.append("other")
            return [{"choice": 1} for _ in requests]

    def read(prompt):
        order.append("person")
        return "1"

    env = kbc_v0.parallel_env(players=2, talk=False, session="single")
    quiet = Terminal(read=read, write=lambda _: None)
    play(env, {"player_0": TerminalHuman(quiet), "player_1": Other(quiet)}, seed=1)
    assert order == ["other", "person"]
