"""Folders made by attackers do nothing but be read, or refused with a sentence."""

import csv
import io
import resource
import shutil
import signal
import sys

import attackers
import pytest
from invoking import assert_sentence, invoke
from small import parse_study

from llm_coop_envs.runs.runner import run_study

STUDY = """\
name: theirs
seed: 1
conditions:
  - {name: talk, scenario: kbc, settings: {players: 4, exchanges: 1}, policies: announcer, seeds: [0]}
"""
SECONDS = 60
COMMANDS = (
    *(("verify", "RUN"), ("verify", "RUN", "--again"), ("report", "RUN", "--partial"), ("run", "RUN")),
    *(("export", "RUN", "--to", "parquet"), ("transcript", "RUN"), ("compare", "RUN", "RUN"), ("cost", "STUDY")),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "run"
    run_study(parse_study(STUDY, "theirs.yaml"), folder, command="llm-coop run theirs.yaml")
    return folder


@pytest.fixture
def theirs(sound, tmp_path, monkeypatch):
    """A copy of the run in `runs/theirs` of the working directory; whoever waits for ever is ended."""
    folder = tmp_path / "runs" / "theirs"
    shutil.copytree(sound, folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def end(*_):
        raise AssertionError(f"not done after {SECONDS} s")

    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    yield folder
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("runs", "evil", "antigravity")]:
        del sys.modules[name]


def command_for(words, folder):
    places = {"RUN": folder, "STUDY": folder / "study.yaml"}
    return [places.get(word, word) for word in words]


def assert_harmless(theirs, result):
    """The command ended in order, said so in words, and ran nothing of the folder."""
    assert result.exit_code in (0, 2)
    assert "Traceback" not in result.stderr + result.stdout
    assert not (theirs.parents[1] / attackers.CANARY).exists()
    assert not {"runs.theirs.evil", "evil", "antigravity"} & set(sys.modules)
    assert str(theirs.parents[1]) not in sys.path


@pytest.mark.parametrize("attack", [*attackers.IMPORTING, *attackers.LOADING, *attackers.DAMAGED])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_reads_or_refuses(theirs, attack, words):
    attack(theirs)
    assert_harmless(theirs, invoke(*command_for(words, theirs)))
    assert not (theirs.parents[1] / "escaped").exists()


@pytest.mark.parametrize("attack", [one for one in attackers.IMPORTING if one is not attackers.a_policy_beside_a_model])
def test_verify_says_what_it_left_out_and_checks_the_rest(theirs, attack):
    attack(theirs)
    result = invoke("verify", theirs, "--again")
    assert "would have been imported" in result.stderr
    assert "--trust-policies" in result.stderr
    assert "1 of 1 episodes are this run's own, 0 of them were played again" in result.stdout


@pytest.mark.parametrize("attack", [*attackers.IMPORTING, *attackers.LOADING])
def test_who_goes_on_with_a_run_is_told_what_it_would_load(theirs, attack):
    attack(theirs)
    shutil.rmtree(theirs / "events")
    assert_sentence(invoke("run", theirs), "would have been", "--trust-p")


def test_what_is_trusted_on_this_command_line_is_imported(theirs):
    attackers.a_policy_in_the_folder(theirs)
    invoke("verify", theirs, "--again", "--trust-policies", "runs.theirs.evil")
    assert (theirs.parents[1] / attackers.CANARY).exists()


def test_trust_in_one_module_is_none_in_another(theirs):
    attackers.a_policy_in_the_folder(theirs)
    invoke("verify", theirs, "--again", "--trust-policies", "runs.theirs.evi", "--trust-policies", "evil")
    assert not (theirs.parents[1] / attackers.CANARY).exists()


@pytest.mark.parametrize("attack", [attackers.a_wording_with_an_escape, attackers.a_pack_with_an_escape])
def test_a_template_that_is_trusted_still_reaches_no_code(theirs, attack):
    attack(theirs)
    result = invoke("verify", theirs, "--again", "--trust-pack", theirs)
    assert_harmless(theirs, result)
    assert "subclasses" not in result.stdout
    assert "would have been" not in result.stderr


def test_a_bomb_takes_little_memory(theirs):
    attackers.a_bomb(theirs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = invoke("verify", theirs)
    assert "more than the 536,870,912 bytes" in result.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000  # kilobytes


def test_a_model_that_no_condition_has_is_a_fault(theirs):
    attackers.a_forged_model(theirs)
    result = invoke("verify", theirs)
    assert result.exit_code == 2
    assert "list llm:gpt-9, which no condition has" in result.stderr
    assert "policies in run.json are not those of its conditions" in result.stderr


@pytest.mark.parametrize("words", [("report", "RUN"), ("export", "RUN", "--to", "parquet")], ids=" ".join)
def test_nothing_is_written_through_a_link(theirs, words):
    attackers.a_report_that_is_a_link(theirs)
    assert_sentence(invoke(*command_for(words, theirs)), "leads out of the run folder")
    assert not list((theirs.parents[1] / "outside").iterdir())


def test_no_table_holds_a_formula(theirs):
    attackers.formulas(theirs)
    for words in (("report", "RUN"), ("export", "RUN", "--to", "otree"), ("export", "RUN", "--to", "hf")):
        assert invoke(*command_for(words, theirs)).exit_code == 0
    texts = [path.read_text(encoding="utf-8") for path in theirs.rglob("*.csv")]
    cells = [cell for text in texts for row in csv.reader(io.StringIO(text)) for cell in row]
    assert '\'=cmd|"/C calc"!A0' in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t"))]
    negative = [cell for cell in cells if cell.startswith(("+", "-"))]
    assert all(float(cell) <= 0 for cell in negative)


def test_a_link_to_another_file_is_not_read(theirs):
    attackers.events_that_are_links(theirs)
    assert "leads out of its run folder" in invoke("verify", theirs).stderr
