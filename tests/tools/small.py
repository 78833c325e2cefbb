"""Small studies for tests, and ways to look at run folders."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from warm_command import warm_folder

from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.folder import CHECK, digest_of
from llm_coop_envs.studies.study import parse_study

KBC = """\
name: small
seed: 5
conditions:
  - name: silent
    scenario: kbc
    settings: {talk: false, players: 5}
    policies: poisson
    seeds: [1, 2, 3]
  - name: talking
    scenario: kbc
    settings: {players: 5, exchanges: 2}
    policies: {mix: [{name: announcer, share: 2}, {name: uniform, share: 3}]}
    seeds: [1, 2]
"""

ALL = """\
name: everything
seed: 1
conditions:
  - name: kbc-silent
    scenario: kbc
    settings: {talk: false, players: 5}
    policies: poisson
    seeds: [0, 1]
  - name: kbc-talk
    scenario: kbc
    settings: {players: 5}
    policies: {mix: [{name: announcer, share: 2}, {name: follower, share: 3}]}
    seeds: [0, 1]
  - name: bertrand-silent
    scenario: bertrand
    preset: team_up_linear
    settings: {talk: false, rounds: 30}
    policies: win_continue_lose_reverse
    seeds: [0, 1]
  - name: bertrand-talk
    scenario: bertrand
    preset: team_up_linear
    settings: {rounds: 30, collusion_window: 5}
    policies: price_matching
    seeds: [0, 1]
  - name: evacuation-silent
    scenario: evacuation
    preset: small
    settings: {talk: false, people: 12}
    policies: nearest_exit
    seeds: [0, 1]
  - name: evacuation-talk
    scenario: evacuation
    preset: small
    settings: {people: 12}
    policies: shares
    seeds: [0, 1]
"""


def long_study(episodes):
    return KBC.replace("seeds: [1, 2, 3]", f"episodes: {episodes}").replace("seeds: [1, 2]", f"episodes: {episodes}")


def small_study(text=KBC):
    return parse_study(text, "small.yaml")


def contents(folder):
    """A hash of every result file; the manifest holds times, and reports and leftovers are no results."""
    files = [*folder.rglob("*.jsonl.gz"), *folder.glob("*.parquet"), folder / "study.yaml"]
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def write_manifest(folder, content=None, **changes):
    """Change a manifest as if a run had written it so."""
    path = Path(folder) / "run.json"
    content = json.loads(path.read_text()) if content is None else content
    content = {name: value for name, value in {**content, **changes}.items() if name != CHECK}
    path.write_text(json.dumps({**content, CHECK: digest_of(content)}))


def record_again(folder):
    """Let a manifest say that the episodes that are there now are those that were written."""
    run = open_run(folder)
    episodes = {name: one for name, one in run.manifest["files"].items() if not name.startswith("events/")}
    run.write(files=episodes)
    run.write(files={**episodes, **run.unrecorded_files()})


def llm_coop(*arguments, **options):
    """Run the command in a process of its own, forked from one that has imported what it needs."""
    words = [Path(warm_folder()) / "llm-coop", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **options)


def command(*arguments):
    return [sys.executable, "-m", "llm_coop_envs", *map(str, arguments)]


def events_in(folder):
    return sorted(Path(folder).rglob("*.jsonl.gz"))


def learning_cells(cells=30, sessions=2):
    """A study of Q-learners in so many markets, who learn for a moment only."""
    one = """\
  - name: cell-{k}
    scenario: bertrand
    preset: calvano
    settings: {{rounds: 3, collusion_window: 0, initial_prices: null}}
    policies: {{name: q_learning, options: {{alpha: {alpha}, beta: {beta}, window: 50, max_periods: 400}}}}
    episodes: {sessions}
"""
    told = (
        one.format(k=k, alpha=0.05 + 0.05 * (k % 6), beta=f"{2 + k // 6}.0e-3", sessions=sessions) for k in range(cells)
    )
    return "name: cells\nseed: 3\nconditions:\n" + "".join(told)
