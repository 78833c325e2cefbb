"""The snippets of README and docs run as they stand, in order, in an empty folder; what cannot says why in the page.

A fenced block of `bash` or `python` with `<!-- not run: REASON -->` above it is not run. All command lines, indented
ones included, must be ones that the program knows.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from warm_command import warm_folder

from llm_coop_envs.cli.main import app
from llm_coop_envs.studies.study import parse_study

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Its blocks are pieces of `examples/fishery`, compared and run by `tests/examples/test_fishery.py`.
ELSEWHERE = {"adding_a_scenario.md"}
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^ *(?:[A-Z_]+=\S+ )?llm-coop (?P<line>[a-z-]+.*)$", re.M)
# One process for a page, so that a block can use what earlier ones left behind.
DRIVER = """\
import json, subprocess, sys
names = {"__name__": "__main__"}
for number, (kind, code) in enumerate(json.load(sys.stdin), 1):
    print(f"--- block {number}", flush=True)
    if kind == "bash":
        subprocess.run(["bash", "-e", "-c", code], check=True, stdin=subprocess.DEVNULL)
    else:
        exec(compile(code, f"block {number}", "exec"), names)
"""


def blocks(path):
    return [one.groupdict() for one in BLOCK.finditer(path.read_text()) if one["kind"] in ("bash", "python")]


def to_run(path):
    found = [] if path.name in ELSEWHERE else blocks(path)
    return [[one["kind"], one["code"]] for one in found if not one["why"]]


def command_lines():
    for path in PAGES:
        for found in COMMAND.finditer(path.read_text()):
            line = found["line"].replace("\\\n", " ")
            yield pytest.param(line, id=f"{path.stem}: {line[:60]}")


def test_snippets_are_found():
    assert len(to_run(ROOT / "README.md")) >= 3
    assert len(list(command_lines())) > 60
    assert any(one["why"] for path in PAGES for one in blocks(path))


@pytest.mark.parametrize("line", list(command_lines()))
def test_commands_are_ones_that_the_program_knows(line):
    words = shlex.split(line, comments=True)
    for shell in ("|", "&", ">"):
        words = words[: words.index(shell)] if shell in words else words
    group = typer.main.get_command(app)
    name, command, rest = group.resolve_command(group.make_context("llm-coop", words), words)
    command.make_context(name, rest)  # refuses options that are not there


# They take a processor for 5 to 15 seconds each; `.ci/run` runs them too.
RARE = {"first_study", "mechanisms", "paper", "populations", "scorecard", "shipped_studies", "start", "studies"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.rare] * (path.stem in RARE)) for path in PAGES if to_run(path)],
    ids=lambda path: path.stem,
)
def test_snippets_run(path, tmp_path):
    paths = os.pathsep.join([warm_folder(), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DRIVER],
        input=json.dumps(to_run(path)),
        cwd=tmp_path,
        env={**os.environ, "PATH": paths, "SDL_VIDEODRIVER": "dummy", "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_the_headline_loop_prints_what_stands_below_it(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, output = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    assert len([line for line in code.splitlines() if line]) <= 10
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == output


def test_the_study_that_agents_read_of_is_one():
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    study = parse_study(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1], "study.yaml")
    assert [(condition.settings["talk"], len(condition.seeds)) for condition in study.conditions] == [
        (False, 8),
        (True, 8),
    ]
