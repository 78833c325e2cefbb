"""What asking models costs here and in another checkout: `python -m llm_coop_envs.benchmarks.speed.paired FOLDER`.

Both are measured in turns by this checkout's program, so that a slow moment of the machine hits both alike, and what
counts is the ratio of each pair.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.speed.harness import arguments, machine, row, spread, write
from llm_coop_envs.benchmarks.speed.llm import PACKAGES, PARTS
from llm_coop_envs.version import PACKAGE_FOLDER

HERE = PACKAGE_FOLDER.parent
_PROGRAM = (
    "import runpy, sys; import llm_coop_envs.benchmarks.speed as room; room.__path__[:] = [sys.argv.pop(1)]; "
    "runpy.run_module('llm_coop_envs.benchmarks.speed.llm', run_name='__main__', alter_sys=True)"
)


def measure(checkout: Path, part: str) -> dict[str, float]:
    """The figures of one part, measured once with the code of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = [sys.executable, "-c", _PROGRAM, str(Path(__file__).parent), "--only", part, "--repeats", "1"]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        subprocess.run([*command, "--json", str(record)], cwd=checkout, env=environment, check=True, text=True)
        recorded = json.loads(record.read_text(encoding="utf-8"))
    return {
        name: figure["median"] if isinstance(figure, dict) else figure
        for name, figure in recorded.items()
        if name not in ("machine", "targets")
    }


def main() -> None:
    """Measure both, print the ratios, and write the record."""
    parser = arguments(__doc__ or "", 5)
    parser.add_argument("folder", type=Path, help="the other checkout")
    parser.add_argument("--only", choices=PARTS, default=PARTS[0], help="what is measured")
    options = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {}

    for turn in range(options.repeats):
        both = [("there", options.folder.resolve()), ("here", HERE)]
        for name, checkout in both if turn % 2 else reversed(both):
            for figure, value in measure(checkout, options.only).items():
                figures.setdefault(figure, {}).setdefault(name, []).append(value)
    record: dict[str, Any] = {"machine": machine(*PACKAGES)}
    for figure, by_checkout in figures.items():
        ratios = [own / other for own, other in zip(by_checkout["here"], by_checkout["there"], strict=True)]
        record[figure] = {**{name: spread(values) for name, values in by_checkout.items()}, "ratio": spread(ratios)}
        for name, values in record[figure].items():
            print(row(f"{figure}, {name}", values, 50, 2), flush=True)
    write(record, options.json)


if __name__ == "__main__":
    main()
