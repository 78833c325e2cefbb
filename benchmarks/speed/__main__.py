"""Measure this checkout beside the last recorded commit, and record both: `make speed`.

    python -m llm_coop_envs.benchmarks.speed [--only steps import] [--against COMMIT]

The other commit is checked out into a folder of its own. This checkout's programs measure both, in turns and with the
same libraries, and what counts is the ratio of each pair. A figure that is more than 20 % slower in every single pair
is a slowdown, and the exit code is 1: chance alone does that once in 2 ** repeats.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.speed.figures import GROUPS
from llm_coop_envs.benchmarks.speed.harness import append_record, arguments, machine, read_history, spread, write
from llm_coop_envs.version import PACKAGE_FOLDER

HERE = PACKAGE_FOLDER.parent
SLOWER = 1.2
_PACKAGES = ("llm-coop-envs", "pettingzoo", "gymnasium", "numpy", "numba", "jinja2", "orjson", "aiohttp", "mpe2")
# The programs are this checkout's, what they measure may be another's. Where this checkout is installed for editing,
# its packages must not stand in for those that the other one lacks.
_PROGRAM = (
    "import runpy, sys; sys.meta_path[:] = [one for one in sys.meta_path if '__editable___llm_coop' not in repr(one)]; "
    "import llm_coop_envs.benchmarks.speed as room; room.__path__[:] = [sys.argv.pop(1)]; "
    "runpy.run_module('llm_coop_envs.benchmarks.speed.figures', run_name='__main__', alter_sys=True)"
)


def measure(checkout: Path, group: str) -> dict[str, float]:
    """One group's figures of a checkout, measured once; none if the checkout lacks what they need."""
    command = [sys.executable, "-c", _PROGRAM, str(Path(__file__).parent), group]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    run = subprocess.run(command, cwd=checkout, env=environment, text=True, capture_output=True, check=False)
    if run.returncode:
        reason = run.stderr.strip().splitlines()[-1] if run.stderr.strip() else f"exit code {run.returncode}"
        print(f"{group} cannot be measured in {checkout.name}: {reason}", file=sys.stderr, flush=True)
        return {}
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def compare(before: Path | None, groups: Sequence[str], repeats: int) -> dict[str, Any]:
    """Measure this checkout and another in turns; each figure's values, and the ratios of pairs, by name."""
    record: dict[str, Any] = {}
    checkouts = {"now": HERE} if before is None else {"now": HERE, "before": before}
    for group in groups:
        values: dict[str, dict[str, list[float]]] = {}
        for turn in range(repeats):
            order = list(checkouts) if turn % 2 else list(reversed(checkouts))
            for name in order:
                for figure, value in measure(checkouts[name], group).items():
                    values.setdefault(figure, {}).setdefault(name, []).append(value)
        for figure, by_checkout in values.items():
            entry: dict[str, Any] = {name: spread(numbers) for name, numbers in by_checkout.items()}
            if len(by_checkout) == 2 and len({len(numbers) for numbers in by_checkout.values()}) == 1:
                pairs = zip(by_checkout["now"], by_checkout["before"], strict=True)
                entry["ratio"] = spread([ours / theirs for ours, theirs in pairs])
            record[figure] = {"group": group, **entry}
            ratio = f"{entry['ratio']['median']:6.2f}" if "ratio" in entry else ""
            cost = entry.get("now", {}).get("median", float("nan"))
            print(f"{figure:62} {cost:10.2f} {GROUPS[group].unit:17} {ratio}".rstrip(), flush=True)
    return record


def slowdowns(figures: Mapping[str, Any]) -> list[str]:
    """The figures of ours that are slower beyond the spread: each pair says so."""
    return [
        name
        for name, figure in figures.items()
        if not name.startswith("peer:") and figure.get("ratio", {"min": 0.0})["min"] > SLOWER
    ]


@contextmanager
def checked_out(commit: str | None) -> Iterator[Path | None]:
    """A commit's files in a folder of their own; `None` without a commit."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / commit[:12]
        _git("worktree", "add", "--quiet", "--detach", str(checkout), commit)
        try:
            yield checkout
        finally:
            _git("worktree", "remove", "--force", str(checkout))


def last_recorded(history: Sequence[Mapping[str, Any]]) -> str | None:
    """The newest recorded commit that is in this repository: a record may be of one that was rebased since."""
    names = (record[key] for record in reversed(history) for key in ("commit", "against"))
    return next((commit for name in names if name and (commit := _commit(name))), None)


def _commit(name: str) -> str | None:
    """A commit's full name; `None` if there is none of that name."""
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        return None


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Measure, print, and record; exit code 1 if something became slower."""
    parser = arguments("what this checkout costs, beside the last recorded commit", 5)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="measure these groups alone")
    parser.add_argument("--against", metavar="COMMIT", help="compare with this commit instead")
    options = parser.parse_args()
    commit = _commit(options.against) if options.against else last_recorded(read_history())
    if options.against and commit is None:
        parser.error(f"--against {options.against}: there is no such commit in this repository")
    if commit is None:
        print("No recorded commit is in this repository: measured alone. --against names another.", file=sys.stderr)
    with checked_out(commit) as before:
        figures = compare(before, options.only, options.repeats)
    record = {
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "against": commit,
        "date": time.strftime("%Y-%m-%d"),
        "repeats": options.repeats,
        "machine": machine(*_PACKAGES),
        "figures": figures,
    }
    write(record, options.json)
    append_record(record)
    slower = slowdowns(figures)
    for name in slower:
        ratio = figures[name]["ratio"]
        print(f"slower: {name}, {ratio['median']:.2f} times ({ratio['min']:.2f} to {ratio['max']:.2f})")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
