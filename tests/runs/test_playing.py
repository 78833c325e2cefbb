import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from small import command, llm_coop

from llm_coop_envs.errors import LlmCoopError, PlayerLeft, RunError
from llm_coop_envs.policies import ScriptedPolicy
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.figures import draw_figures
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.human_game import plan_game, play_game
from llm_coop_envs.storage.lock import lock_folder

ROUNDS = ("--set", "players=3", "--terminal")


class Person(ScriptedPolicy):
    """Somebody who names 10 and leaves when told."""

    def __init__(self, leave_after=None):
        self.left = leave_after

    def decide(self, request):
        if self.left == 0:
            raise PlayerLeft("enough")
        if self.left is not None:
            self.left -= 1
        return {"choice": 10, "message": "ten"}


def played(folder, person, scenario="kbc", **options):
    return asyncio.run(play_game(plan_game(scenario, **options), folder, person))


def test_a_game_is_a_run_like_any_other(tmp_path):
    folder = tmp_path / "game"
    result = played(folder, Person(), settings={"players": 3}, others="announcer {number: 15}", seed=4)
    assert (result.is_recorded, result.person_left, result.reason) == (True, False, "all decisions made")
    run = open_run(folder)
    assert run.complete
    assert run.manifest["policies"] == {"human": "human", "kbc/announcer": "scripted"}
    header, events = run.read_events("played", 4)
    assert header["policies"] == {"player_0": "human", "player_1": "kbc/announcer", "player_2": "kbc/announcer"}
    assert next(e["choices"] for e in events if e["type"] == "round") == [10, 15, 15]
    assert result.rewards == {"player_0": 400.0}
    assert "human" in write_report(folder).read_text(encoding="utf-8")
    outcome = draw_figures(folder, formats=("png",), only=["kbc-choices"])
    assert "human and scripted" in (outcome.folder / "captions.md").read_text() or outcome.drawn
    with pytest.raises(RunError, match="holds this game already"):
        played(folder, Person(), settings={"players": 3}, others="announcer {number: 15}", seed=4)


def test_two_games_do_not_share_a_folder(tmp_path):
    (tmp_path / "game").mkdir()
    with lock_folder(tmp_path / "game"), pytest.raises(RunError, match="another process is writing this run"):
        played(tmp_path / "game", Person(), settings={"players": 3})
    assert not open_run(tmp_path / "game").finished()


@pytest.mark.parametrize("scenario", ["kbc", "bertrand", "evacuation"])
def test_whoever_leaves_keeps_what_was_played(tmp_path, scenario):
    settings = {"kbc": {"players": 3}, "bertrand": {"rounds": 20}, "evacuation": {"people": 8, "talk": False}}[scenario]
    preset = {"evacuation": "small"}.get(scenario)
    others = {"bertrand": "best_reply"}.get(scenario)
    folder = tmp_path / "game"
    options = {"settings": settings, "preset": preset, "others": others}
    result = played(folder, Person(leave_after=5), scenario, **options)
    assert (result.is_recorded, result.person_left, result.reason) == (True, True, "left: enough")
    _, events = open_run(folder).read_events("played", 0)
    assert events[-1] | {"step": 0, "round": 0} == {
        "type": "end",
        "step": 0,
        "round": 0,
        "reason": "left: enough",
        "truncated": True,
    }
    assert write_report(folder).is_file()
    assert draw_figures(folder, formats=("png",)).drawn


def test_ctrl_c_while_others_think_keeps_what_was_played(tmp_path):
    class Thinker(Person):
        async def act(self, requests):
            if any(request.info["slots"].turns for request in requests):
                waiting.set()
                await asyncio.sleep(600)
            return await super().act(requests)

    waiting = asyncio.Event()

    async def broken_off():
        game = plan_game("kbc", settings={"players": 3})
        task = asyncio.create_task(play_game(game, tmp_path / "game", Thinker()))
        await waiting.wait()
        task.cancel()
        return await task

    result = asyncio.run(broken_off())
    assert (result.is_recorded, result.person_left) == (True, True)
    assert open_run(tmp_path / "game").complete


def test_a_failure_to_draw_does_not_lose_the_game(tmp_path):
    def look(env):
        if env.round == 2:
            raise RuntimeError("no colours left")

    game = plan_game("kbc", settings={"players": 3})
    with pytest.raises(RunError, match=r"broke off \(no colours left\); what was played is kept"):
        asyncio.run(play_game(game, tmp_path / "game", Person(), on_step=look))
    run = open_run(tmp_path / "game")
    assert run.complete
    assert run.read_events("played", 0)[1][-1]["reason"] == "the game broke off: no colours left"


def test_without_a_round_nothing_is_kept_and_the_folder_can_be_used_again(tmp_path):
    folder = tmp_path / "game"
    assert not played(folder, Person(leave_after=0), settings={"players": 3}).is_recorded
    assert not open_run(folder).finished()
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert played(folder, Person(), settings={"players": 3}).is_recorded


def test_people_can_take_any_seats(tmp_path):
    game = plan_game("bertrand", seats=["firm_1"], settings={"talk": False, "rounds": 2})
    assert game.seats == ("firm_1",)
    assert plan_game("kbc", seats=2, settings={"players": 2}).seats == ("player_0", "player_1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"seats": 25}, "between 1 and 24"),
        ({"seats": ["player_99"]}, "seats are player_0 to player_23"),
        ({"others": "nobody"}, "there is no such policy"),
        ({"preset": "nothing"}, "preset"),
        ({"settings": {"playres": 3}}, "did you mean 'players'"),
        ({"others": "human:me"}, "write 'human'"),
        ({"others": "poisson {tau: -1}"}, "^--others poisson.*: tau=-1: must be a number above 0"),
        ({"seed": 2**64}, "^seed=18446744073709551616: must be between 0 and"),
    ],
)
def test_impossible_games_are_sentences(options, why):
    with pytest.raises(LlmCoopError, match=why) as told:
        plan_game("kbc", **options)
    assert "line" not in str(told.value).replace("(lines", "")  # the player wrote no file


def test_lines_from_a_pipe(tmp_path):
    lines = "33\nhello\n22\n\nmore\n20\n\n18\n"
    found = llm_coop("play", "kbc", *ROUNDS, "-o", tmp_path / "game", input=lines)
    assert found.returncode == 0, found.stderr
    assert "'more' is no number" in found.stdout
    assert "The game has ended: all decisions made." in found.stdout
    _, events = open_run(tmp_path / "game").read_events("played", 0)
    mine = [event for event in events if event.get("agent") == "player_0" and event["type"] == "choice"]
    assert [event["choice"] for event in mine] == [33, 22, 20, 18]


def test_the_end_of_the_input_keeps_what_was_played(tmp_path):
    found = llm_coop("play", "kbc", *ROUNDS, "-o", tmp_path / "game", input="33\nhello\n")
    assert found.returncode == 0, found.stderr
    assert "left: the input has ended" in found.stdout
    _, events = open_run(tmp_path / "game").read_events("played", 0)
    assert sum(event["type"] == "round" for event in events) == 1


def test_at_a_real_terminal_ctrl_c_keeps_what_was_played(tmp_path):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    with subprocess.Popen(
        command("play", "kbc", *ROUNDS, "-o", tmp_path / "game"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen = ""

        def wait_for(text):
            nonlocal seen
            end = time.monotonic() + 120
            while text not in seen and time.monotonic() < end:
                if select.select([ours], [], [], 1)[0]:
                    try:
                        seen += os.read(ours, 65536).decode(errors="replace")
                    except OSError:  # the other side has closed it
                        break
            assert text in seen, seen

        wait_for("0 to 100 > ")
        os.write(ours, b"33\n")
        wait_for("or nothing > ")
        os.write(ours, "שלום 🙂\n".encode())
        wait_for("Now name your number: a whole number from")
        seen = seen[-60:]
        wait_for("0 to 100 > ")
        # Python cannot hear a signal between showing a prompt and waiting for the line: press again, as people do.
        for _ in range(5):
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            if select.select([ours], [], [], 10)[0]:
                break
        wait_for("Ctrl-C was pressed")
        wait_for("Next: llm-coop report")
        assert process.wait(timeout=60) == 0
    os.close(ours)
    _, events = open_run(tmp_path / "game").read_events("played", 0)
    assert [event["text"] for event in events if event.get("agent") == "player_0" and event["type"] == "message"] == [
        "שלום 🙂"
    ]
    assert events[-1]["reason"] == "left: Ctrl-C was pressed"


def test_bad_settings_on_the_command_line():
    found = llm_coop("play", "kbc", "--set", "players", "--terminal")
    assert found.returncode == 2
    assert "must be name=value" in found.stderr
