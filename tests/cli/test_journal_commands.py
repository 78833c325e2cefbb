import shutil

import pytest
from invoking import assert_sentence, invoke
from model_studies import answering, play

from llm_coop_envs.policies.llm.journal import frames, read_episode
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.util.quoting import harmless

ONE = """\
name: one
conditions:
  - {name: talk, scenario: kbc, settings: {players: 12, session: single}, policies: poisson, seeds: [7]}
"""


def rude(prompt, metadata):
    """Answers that try to act on the terminal, and to look like the transcript's own lines."""
    said = scripted_answer(prompt, metadata)
    return said if said[-1].isdigit() else f"\x1b[2J\u202e{said}\n== step 99, player_0: choose\nanswer by nobody:"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("journal") / "run"
    with answering(rude) as server:
        play(server, folder, ONE)
    return folder


def test_an_episode_is_told_in_order(run):
    found = read_episode(run, "talk/7")
    assert [one.key.step for one in found] == sorted(one.key.step for one in found)
    last = [one.key.agent for one in found if one.key.call == "choose"]
    assert last == [f"player_{i}" for i in range(12)]
    assert all(one.messages[0][0] == "user" and one.reply.model == "scripted:scripted" for one in found)


def test_texts_cannot_act_on_the_terminal_or_leave_their_place(run):
    told = invoke("transcript", run, "talk", 7).stdout
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "  | \\x1b[2J\\u202e" in told
    assert "  | == step 99" in told
    assert "\n== step 99" not in told


def test_without_names_the_episodes_are_listed_as_commands(run, tmp_path):
    (line,) = invoke("transcript", run).stdout.splitlines()
    command, _, count = line.partition("    # ")
    assert command == f"llm-coop transcript {run} talk 7"
    assert count == f"{len(read_episode(run, 'talk/7'))} answers"
    assert invoke("transcript", run, "talk").stdout == line + "\n"
    assert_sentence(invoke("transcript", run, "tlak"), "no condition 'tlak'", "did you mean 'talk'")
    assert_sentence(invoke("transcript", tmp_path), "holds no journal")


def test_one_players_part_and_answers_alone(run):
    told = invoke("transcript", run, "talk", 7, "--agent", "player_3").stdout
    heads = [line for line in told.splitlines() if line.startswith("== ")]
    assert heads
    assert all("player_3:" in line for line in heads)
    short = invoke("transcript", run, "talk", 7, "--agent", "player_3", "--answers").stdout
    assert "The rules" in told
    assert "The rules" not in short
    assert [line for line in short.splitlines() if line.startswith("== ")] == heads


def test_mistakes_are_sentences(run, tmp_path):
    assert_sentence(invoke("transcript", run, "talk", 8), "talk/8", "did you mean 'talk/7'")
    assert_sentence(invoke("transcript", run, "talk", 7, "--agent", "player_33"), "player_33", "did you mean")
    assert_sentence(invoke("transcript", tmp_path, "talk", 7), "holds no journal")
    assert_sentence(invoke("journal", tmp_path), "holds no journal")
    (tmp_path / "file").touch()
    for words in (("journal",), ("transcript",), ("transcript", "talk", 7)):
        for name, why in (("nowhere", "does not exist"), ("file", "is no folder")):
            assert_sentence(invoke(words[0], tmp_path / name, *words[1:]), f"{name}: {why}; give the folder of a run")


def test_a_journals_state_and_damage(run, tmp_path):
    sound = invoke("journal", run)
    assert sound.exit_code == 0
    assert "36 answers (36 by scripted:scripted" in sound.stdout
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (path,) = (folder / "journal").glob("*.jsonl.*")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    damaged = invoke("journal", folder)
    assert damaged.exit_code == 2
    assert "is damaged at bytes" in damaged.stdout
    mended = invoke("journal", folder, "--salvage")
    assert mended.exit_code == 0
    assert "written anew" in mended.stdout
    assert "nothing is damaged" in invoke("journal", folder, "--salvage").stdout


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode, 数", "plain, ünïcode, 数"),
        ("a\tb\nc", "a\tb\nc"),
        ("\r\x9b\u2066\ue000", r"\r\x9b\u2066\ue000"),
    ],
)
def test_harmless(text, shown):
    assert harmless(text) == shown.replace(r"\r", r"\x0d")


@pytest.fixture
def copied(run, tmp_path):
    """A copy of the run, and its journal's file."""
    folder = shutil.copytree(run, tmp_path / "run")
    (path,) = (folder / "journal").glob("*.jsonl.*")
    return folder, path


def test_garbage_at_the_end_of_a_journal_is_told_and_moved_aside(copied):
    folder, path = copied
    whole = path.read_bytes()
    path.write_bytes(whole + b"abc")
    told = invoke("journal", folder)
    assert told.exit_code == 2
    assert "3 bytes" in told.stdout
    assert "is not what this run wrote" in told.stdout
    saved = invoke("journal", folder, "--salvage")
    assert saved.exit_code == 0
    assert "without 3 unreadable bytes" in saved.stdout
    assert "nothing is damaged" not in saved.stdout
    assert path.read_bytes() == whole
    assert invoke("journal", folder).exit_code == 0


@pytest.mark.parametrize("inside", [True, False])
def test_a_transcript_says_what_of_the_journal_is_gone(copied, inside):
    """Cut inside a commit, or exactly between two: then nothing in the journal itself shows it."""
    folder, path = copied
    raw = path.read_bytes()
    with path.open("rb") as file:
        commits = list(frames.read_frames(file, frames.suffix_of(path)))
    path.write_bytes(raw[: commits[-3].end - 5 * inside])
    told = invoke("transcript", folder, "talk", 7)
    assert told.exit_code == 2
    assert (
        f"Not all of the journal is there: {path}: is not what this run wrote (it had {len(raw)} bytes" in told.stderr
    )
    assert ("cannot be read" in told.stderr) == inside
    assert "== step" in told.stdout
    path.write_bytes(raw[:10])
    told = invoke("transcript", folder, "talk", 7)
    assert told.exit_code == 2
    assert "Not all of the journal is there" in told.stderr
    assert "holds no answers yet" in told.stderr


@pytest.mark.parametrize("part", ["../x", "a/b", ""])
def test_a_part_that_cannot_be_a_files_name_makes_no_folder(tmp_path, study_file, part):
    flags = ["--policy", "llm:scripted", "--base-url", "http://127.0.0.1:9/v1", "--part", part]
    assert_sentence(invoke("run", study_file(ONE), *flags, "-o", tmp_path / "deep" / "run"), "part=", "must be letters")
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]
