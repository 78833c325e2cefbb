"""What a command needs is named at once: after one installation it works, or fails for another reason."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from invoking import assert_sentence, invoke
from model_studies import TINY
from small import small_study
from typer.main import get_command

from llm_coop_envs.cli import main as cli
from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.export.export import FORMS
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.util.extras import BROUGHT_BY, need, need_all

ROOT = Path(__file__).parents[2]
KBC = """\
name: small
conditions:
  - {name: kbc, scenario: kbc, settings: {players: 3, session: single}, grid: {talk: [false, true]}, pair: kbc,
     policies: poisson, episodes: 1}
"""
LEARNER = """\
name: learner
conditions:
  - {name: market, scenario: bertrand, preset: calvano, settings: {rounds: 3, initial_prices: null}, episodes: 1,
     policies: {all: {name: q_learning, options: {window: 50, max_periods: 400}}}}
"""
MODEL = ["--base-url", "http://127.0.0.1:9/v1", "--wait", "0", "--timeout", "1"]
#: Each command, as often as it may need something else. {} is a folder with a run and studies in it.
COMMANDS = [
    ["list"],
    ["describe", "kbc"],
    ["play", "kbc", "--terminal"],
    ["play", "kbc", "--terminal", "--others", f"llm:x {{base_url: {MODEL[1]}, wait: 0}}"],
    ["tournament", "poisson", f"llm:x {{base_url: {MODEL[1]}, wait: 0}}", "--scenario", "kbc", "-o", "{}/tournament"],
    ["import", "coopeval", "{}", "-o", "{}/imported"],
    ["run", "{}/kbc.yaml", "-o", "{}/plain"],
    ["run", "{}/kbc.yaml", "--dry"],
    ["run", "{}/kbc.yaml", "--model", "x", *MODEL, "-o", "{}/model"],
    ["run", "{}/kbc.yaml", "--model", "anthropic/x", "-o", "{}/litellm"],
    ["run", "{}/kbc.yaml", "--model", "local:smollm2-135m", "-o", "{}/local"],
    ["run", "{}/kbc.yaml", "--ray", "{}", "-o", "{}/ray"],
    ["run", "{}/learner.yaml", "--seat", "firm_1=llm:x", *MODEL, "-o", "{}/learner"],
    ["bench", "--policy", "random", "--dry"],
    ["branch", "{}/run", "--at", "1", "--arms", "{}/none.yaml", "-o", "{}/branch"],
    ["slurm", "{}/kbc.yaml", "-o", "{}/slurm"],
    ["steer", "pause", "{}/run"],
    ["status", "{}/run"],
    ["report", "{}/run"],
    ["figures", "{}/run", "--embedding", "m", "--base-url", "http://127.0.0.1:9/v1", "--only", "seeds"],
    ["table", "{}/run", "means", "--to", "latex"],
    ["table", "{}/run", "means", "-o", "{}/means.docx"],
    ["compare", "{}/run", "{}/run"],
    ["power", "{}/run"],
    ["cost", "{}/kbc.yaml", "--model", "openai/gpt-4o-mini"],
    ["transcript", "{}/run"],
    ["judge", "{}/run", "--model", "openai/gpt-4o-mini", "--dry"],
    ["journal", "{}/run"],
    *(["export", "{}/run", "--to", form, "-o", f"{{}}/{form}"] for form in (*FORMS, "html")),
    ["verify", "{}/run"],
    ["film", "{}/run", "-o", "{}/film.gif"],
    ["population", "{}/none.yaml"],
    ["train", "--env", "kbc", "--set", "talk=false", "-o", "{}/trained", "--steps", "0"],
    ["evaluate", "sb3:evacuation", "--env", "kbc", "--episodes", "1"],
]
ENDLESS = {"serve-scripted", "view", "watch"}  # they serve, or open a window, until somebody ends them


@pytest.mark.rare
def test_no_command_asks_for_a_second_installation(tmp_path):
    named = get_command(cli.app).commands
    assert {words[0] for words in COMMANDS} | ENDLESS == {name for name, one in named.items() if not one.hidden}
    pytest.importorskip("tomllib")
    run_study(small_study(KBC), tmp_path / "run")
    (tmp_path / "kbc.yaml").write_text(KBC)
    (tmp_path / "learner.yaml").write_text(LEARNER)
    lines = [[word.replace("{}", str(tmp_path)) for word in words] for words in COMMANDS]
    (tmp_path / "commands.json").write_text(json.dumps(lines))
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "tools" / "without_extras.py", tmp_path / "commands.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(COMMANDS)
    twice = [f"{' '.join(words)}: {asked}" for words, asked, _ in found if len(asked) > 1]
    assert not twice, "\n".join(twice)
    broken = [f"{' '.join(words)}: {output}" for words, _, output in found if "ModuleNotFoundError" in output]
    assert not broken, "\n".join(broken)
    asked = {extra for _, extras, _ in found for extra in extras}
    assert {"study", "film", "tables", "export", "study,openai", "study,llm", "study,ray"} <= asked, asked


def missing(what, extra):
    def check():
        raise MissingExtra(what, extra)

    return check


def test_all_that_is_missing_is_one_sentence():
    need_all()
    need_all(lambda: None, lambda: need("json", "reading", "study"))
    with pytest.raises(MissingExtra) as caught:
        need_all(missing("writing", "study"), lambda: None, missing("asking", "openai"), missing("writing", "study"))
    assert str(caught.value) == (
        "writing and asking need the extras 'study' and 'openai': pip install 'llm-coop-envs[study,openai]' "
        "(in a checkout: pip install -e '.[study,openai]')"
    )
    with pytest.raises(MissingExtra, match=r"^a and b needs the extra 'llm': pip install 'llm-coop-envs\[llm\]' \("):
        need_all(missing("a", "openai"), missing("b", "llm"))


def test_extras_that_come_with_others_are_those_of_the_project():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\[", text, re.DOTALL)[1]
    brought = {}
    for name, listed in re.findall(r"^(\w+) = \[(.*?)\]\s*(?:#.*)?$", section, re.MULTILINE):
        if name in ("all", "test", "docs", "dev"):
            continue
        for inner in re.findall(r"llm-coop-envs\[([\w,]+)\]", listed):
            for part in inner.split(","):
                brought.setdefault(part, set()).add(name)
    assert brought == {name: set(others) for name, others in BROUGHT_BY.items()}


@pytest.mark.parametrize("command", [["table"], ["compare", "{}"], ["power"]])
def test_what_compares_is_missed_before_episodes_are_read(command, tmp_path, monkeypatch):
    run_study(small_study(KBC), tmp_path / "run")
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    told = invoke(command[0], tmp_path / "run", *[tmp_path / "run" for _ in command[1:]])
    assert_sentence(told, "comparing episodes needs the extra 'study'")


def test_a_page_without_a_server_names_what_reads_tables(tmp_path, monkeypatch):
    run_study(small_study(KBC), tmp_path / "run")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    told = invoke("export", tmp_path / "run", "--to", "html", "-o", tmp_path / "page.html")
    assert_sentence(told, "reading Parquet tables needs the extra 'study'")


def test_a_run_names_what_writes_and_what_asks(study_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    told = invoke("run", study_file(TINY), "--model", "x", *MODEL, "-o", tmp_path / "run")
    assert_sentence(told, "writing Parquet tables and asking a model need the extras 'study' and 'openai'")
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(sys.modules, "pygame", None)
    told = invoke("play", "kbc", "-o", tmp_path / "game")
    assert_sentence(told, "writing Parquet tables and a window need the extras 'study' and 'render'")
    assert not (tmp_path / "game").exists()
