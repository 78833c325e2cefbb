"""Help, lists and descriptions: in groups, short by default, and whole words in a narrow terminal."""

import os
import subprocess

import pytest
from invoking import assert_sentence, invoke
from small import command, small_study
from typer.main import get_command

from llm_coop_envs.cli import main as cli
from llm_coop_envs.cli.describe import SECTIONS as PARTS
from llm_coop_envs.cli.layout import definitions, wrap
from llm_coop_envs.cli.list import SECTIONS
from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.families import comparisons
from llm_coop_envs.studies.study import load_study, shipped_studies

GROUPS = ["Start", "Run", "Watch", "Results", "Models", "Data", "Make"]


def help_of():
    """The words of each help."""
    app = get_command(cli.app)
    named = [(name,) for name, one in app.commands.items() if not one.hidden]
    named += [(name, inner) for name, one in app.commands.items() for inner in getattr(one, "commands", ())]
    return [("--help",), *((*words, "--help") for words in named)]


TOLD = [
    *help_of(),
    ("list",),
    ("list", "--all"),
    *((("describe", name, *more)) for name in scenarios() for more in ((), ("--all",))),
    ("describe", "team_up"),
]


@pytest.mark.parametrize("words", TOLD, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 60])
def test_words_are_not_broken(words, columns, monkeypatch):
    monkeypatch.setattr("llm_coop_envs.cli.layout._WIDEST", 10_000)
    monkeypatch.setenv("COLUMNS", "10000")
    whole = invoke(*words).stdout
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = invoke(*words).stdout
    assert narrow.split() == whole.split()
    long_lines = [line for line in narrow.splitlines() if len(line) > columns]
    # A word that fits in no line stays whole, alone on its line but for a name.
    assert all(max(map(len, line.split())) > columns - 30 for line in long_lines), long_lines
    if any(len(line) > columns for line in whole.splitlines()):
        assert len(narrow.splitlines()) > len(whole.splitlines())


def test_commands_are_in_groups():
    lines = invoke("--help").stdout.splitlines()
    assert [line for line in lines if line in GROUPS] == GROUPS
    members = [name for group in cli.COMMANDS.values() for name in group]
    assert len(set(members)) == len(members)
    visible = {name for name, one in get_command(cli.app).commands.items() if not one.hidden}
    assert set(members) == visible
    assert "--install-completion" in "\n".join(lines)
    assert len(lines) < 80


def test_options_are_in_groups_with_their_kind():
    told = invoke("run", "--help").stdout
    assert "\nLanguage models: what they may cost, and where answers come from\n  --budget N " in told
    assert "\nOptions\n  -o, --out PATH " in told
    assert "\nArguments\n  study " in told
    assert "<" not in told


def test_short_unless_more_is_asked_for():
    for words in (("list",), *(("describe", name) for name in scenarios())):
        short = invoke(*words).stdout.splitlines()
        assert len(short) <= 45
        assert len(invoke(*words, "--all").stdout.splitlines()) > 4 * len(short)


@pytest.fixture(scope="module")
def words_of_the_whole_list():
    return set(invoke("list", "--all").stdout.split())


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_of_the_list_is_had_alone(section, words_of_the_whole_list):
    alone = invoke("list", section).stdout
    assert alone.splitlines()[0].lower() == section
    assert set(alone.split()) <= words_of_the_whole_list


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_each_part_of_a_description_is_had_alone(scenario):
    whole = invoke("describe", scenario, "--all").stdout
    parts = [invoke("describe", scenario, part).stdout for part in PARTS]
    assert "\n".join(parts).split() == whole.split()


@pytest.mark.parametrize("name", list(shipped_studies()))
def test_a_study_is_described_by_its_name_or_its_file(name):
    study = load_study(name)
    told = invoke("describe", name).stdout
    assert told.startswith(f"{name}: {len(study.conditions)} conditions, ")
    words = " ".join(told.split())
    assert " ".join(study.description.split()) in words
    for condition in study.conditions:
        assert f"{condition.name} {condition.scenario} " in words
    for reference, compared in comparisons(study.conditions):
        covered = study.primary is None or study.primary.covers(compared.name)
        assert (f"{compared.name} against {reference.name}" in words) == covered
    assert invoke("describe", shipped_studies()[name]).stdout.split("Play it")[0] == told.split("Play it")[0]


def test_parts_of_a_study_are_had_alone_and_what_is_no_study_is_told(tmp_path):
    alone = invoke("describe", "team_up", "comparisons").stdout
    assert alone.splitlines()[0] == "Comparisons"
    assert set(alone.split()) < set(invoke("describe", "team_up").stdout.split())
    assert_sentence(invoke("describe", "team_up", "settings"), "settings: is no section", "conditions")
    (tmp_path / "broken.yaml").write_text("name: x")
    assert_sentence(invoke("describe", tmp_path / "broken.yaml"), "broken.yaml", "conditions")
    run_study(small_study(), tmp_path / "run", limit=1)
    assert_sentence(invoke("describe", tmp_path / "run"), "is a run folder", "llm-coop status")
    assert_sentence(invoke("describe", "nosuch.yaml"), "nosuch.yaml: there is no such file")
    assert_sentence(invoke("describe", tmp_path / "nosuch"), "nosuch: there is no such file")
    assert_sentence(invoke("describe", "bertrnd"), "there is no scenario 'bertrnd'", "did you mean 'bertrand'?")


def test_a_filter_leaves_what_holds_the_word():
    told = invoke("list", "--filter", "GRIM").stdout
    assert told.splitlines()[0] == "Policies"
    assert "bertrand/grim_trigger" in told
    assert "tit_for_tat" not in told
    assert invoke("list", "GRIM").stdout == told
    described = invoke("describe", "bertrand", "settings", "--filter", "noise").stdout
    assert "observation_noise" in described
    assert "grid_points" not in described
    assert_sentence(invoke("list", "--filter", "nosuchword"), "--filter 'nosuchword'", "occurs nowhere")
    assert_sentence(invoke("list", "studys"), "studys: is no section", "did you mean 'studies'?")
    assert_sentence(invoke("describe", "kbc", "setting"), "setting: is no section", "settings")


def complete(*words, shell="bash"):
    """What a shell offers after some words, of which the last is incomplete."""
    line = " ".join(("llm-coop", *words))
    asked = {"_LLM_COOP_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    asked |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    code = "import sys; sys.argv[0] = 'llm-coop'; from llm_coop_envs.cli.main import main; main()"
    run = [*command()[:1], "-c", code]
    done = subprocess.run(run, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_names(shell):
    assert "describe" in complete("desc", shell=shell)
    assert "team_up" in complete("run", "team", shell=shell)


def test_commands_options_and_names_are_completed():
    shell = "bash"
    assert "--base-url" in complete("run", "--base", shell=shell)
    assert "bertrand" in complete("describe", "ber", shell=shell)
    assert "parquet" in complete("export", "x", "--to", "par", shell=shell)


@pytest.mark.parametrize(("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish")])
def test_completion_is_installed(tmp_path, shell, file):
    code = f"import sys; sys.argv = ['llm-coop', '--install-completion', '{shell}']"
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    run = [*command()[:1], "-c", f"{code}; from llm_coop_envs.cli.main import main; main()"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).exists()
    assert any("LLM_COOP_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_a_word_longer_than_a_line_stays_whole():
    assert wrap("see http://127.0.0.1:8000/v1 now", 10) == "see\nhttp://127.0.0.1:8000/v1\nnow"
    assert wrap("gpt-4o-mini and gpt-4o-mini", 16) == "gpt-4o-mini and\ngpt-4o-mini"
    told = definitions([("a", "one two"), ("a_name_that_is_longer_than_its_column", "four")], 40)
    assert told.splitlines()[1:] == ["  a_name_that_is_longer_than_its_column", " " * 28 + "four"]
