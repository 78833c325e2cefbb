"""The documentation's page on what language models did in games that others recorded.

    llm-coop import coopeval CoopEval/data/main_study -o runs/coopeval            # the records: see the page
    llm-coop import emergent_collusion emergent_collusion/logs -o runs/emergent
    python -m llm_coop_envs.benchmarks.doc_pages.evidence record runs/coopeval runs/emergent    # into evidence.json
    python -m llm_coop_envs.benchmarks.doc_pages.evidence > docs/evidence.md

A test compares the page with what this prints.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, table
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures.synthetic_worlds import RULE
from llm_coop_envs.policies import kinds
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.runs.tables import EpisodeTables, read_episodes
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.statistics.comparison import Comparison, cluster_means, holm
from llm_coop_envs.statistics.intervals import Interval, mean_interval, share_interval
from llm_coop_envs.util.references import load
from llm_coop_envs.version import __version__

RECORD = Path(__file__).with_name("evidence.json")
PROSE = Path(__file__).with_name("evidence.md")
MEASURE = "cooperative"
_OF_ONE = "prisoner's dilemma"

Cell = list[float | None]


def record(folder: Path) -> dict[str, Any]:
    """Summarise an imported run of dilemmas that was verified.

    Raises:
        RunError: it is no imported run, or `llm-coop verify` finds a fault.
    """
    run = _open(folder)
    episodes: dict[str, list[EpisodeTables]] = {}
    for episode in read_episodes(run):
        if MEASURE in episode.metrics:
            episodes.setdefault(episode.condition.title, []).append(episode)
    return {
        **_mark(run),
        "shares": {title: _share(own) for title, own in episodes.items()},
        "differences": _differences(run, episodes),
        "models": _models({title: own for title, own in episodes.items() if title.startswith(_OF_ONE)}),
    }


def record_market(folder: Path) -> dict[str, Any]:
    """Summarise an imported run of a market that was verified; the unit is the game.

    Raises:
        RunError: as for `record`.
    """
    run = _open(folder)
    values: dict[str, list[float | None]] = {}
    flags: dict[str, list[bool]] = {}
    for episode in read_episodes(run):
        worlds = load(episode.condition.spec.synthetic_worlds)
        markups = [row["markup"] for row in episode.rounds]
        rows = {"mark-up": episode.metrics["markup"], "in the first two rounds": _mean(markups[:2])}
        rows |= {"in the last two rounds": _mean(markups[-2:]), "efficiency": episode.metrics["efficiency"]}
        for name, value in rows.items():
            values.setdefault(name, []).append(value)
        for name in ("level", worlds.rule):
            flags.setdefault(name, []).append(worlds.detectors[name].score(episode.metrics) >= RULE)
    return {
        **_mark(run),
        "measures": {name: _ends(mean_interval(own)) for name, own in values.items()},
        "flagged": {name: _ends(mean_interval(own)) for name, own in flags.items()},
    }


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def _ends(interval: Interval | None) -> Cell:
    assert interval is not None, "some game has a value"
    return [interval.mean, interval.low, interval.high, interval.n]


def _open(folder: Path) -> Run:
    """An imported run without faults."""
    run = open_run(folder)
    if "imported" not in run.manifest:
        raise RunError(f"{folder}: was not imported; 'llm-coop import' makes such runs")
    faults = verify_run(folder).faults
    if faults:
        raise RunError(f"{folder}: {faults[0]}")
    return run


def _mark(run: Run) -> dict[str, Any]:
    """What was imported, when, and how far our rules agree."""
    mark = {name: run.manifest["imported"][name] for name in ("format", "by", "of", "commit")}
    return {
        **mark,
        "files": len(run.manifest["imported"]["files"]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "version": __version__,
        "plays": _plays(run),
    }


def split(title: str) -> tuple[str, str]:
    """The game and the institution that an arm's title names."""
    game, _, mechanism = title.partition(", ")
    return game, mechanism


def _plays(run: Run) -> dict[str, list[int]]:
    """By institution: plays whose pay is recorded, and in how many our rules pay alike, alone and with contracts."""
    sums: dict[str, list[int]] = {}
    for condition in run.conditions:
        counts = run.manifest["imported"]["plays"][condition.name]
        before = sums.get(split(condition.title)[1], [0, 0, 0])
        sums[split(condition.title)[1]] = [a + b for a, b in zip(before, counts, strict=True)]
    return sums


def _interval(values: Mapping[Any, float], cluster: Mapping[Any, str]) -> Cell:
    """The mean of clusters with the ends of its interval, and their number."""
    means = [*cluster_means(values, cluster).values()]
    interval = share_interval(means)
    return [interval.mean, interval.low, interval.high, len(means)]


def _share(episodes: Sequence[EpisodeTables]) -> Cell:
    return _interval({e.seed: e.metrics[MEASURE] for e in episodes}, episodes[0].condition.cluster)


def _differences(run: Run, episodes: Mapping[str, Sequence[EpisodeTables]]) -> dict[str, Cell]:
    """By arm that is compared: the difference to its reference, its interval, adjusted p, and without any one model."""
    tests: dict[str, Comparison] = {}
    ranges: dict[str, tuple[float, float]] = {}
    for condition in run.conditions:
        first = next(other for other in run.conditions if other.pair == condition.pair)
        if not condition.pair or first is condition or condition.title not in episodes:
            continue
        arms = [{e.seed: e for e in episodes[arm.title]} for arm in (first, condition)]
        tests[condition.title] = _compare(arms)
        models = sorted({name for e in arms[1].values() for name in e.policies.values()})
        without = [
            _compare([{s: e for s, e in arm.items() if model not in e.policies.values()} for arm in arms])
            for model in models
        ]
        means = [math.fsum(test.differences) / len(test.differences) for test in without]
        ranges[condition.title] = min(means), max(means)
    adjusted = dict(zip(tests, holm([test.p or 1.0 for test in tests.values()]), strict=True))
    cells: dict[str, Cell] = {}
    for title, test in tests.items():
        assert test.interval is not None, "there are pairs"
        ends = (test.interval.mean, test.interval.low, test.interval.high)
        cells[title] = [*ends, adjusted[title], *ranges[title], len(test.first)]
    return cells


def _compare(arms: Sequence[Mapping[int, EpisodeTables]]) -> Comparison:
    shared = [seed for seed in arms[0] if seed in arms[1]]
    first, second = (
        cluster_means({seed: arm[seed].metrics[MEASURE] for seed in shared}, arm[shared[0]].condition.cluster)
        for arm in arms
    )
    return Comparison.by_key(MEASURE, first, second)


def _models(episodes: Mapping[str, Sequence[EpisodeTables]]) -> dict[str, dict[str, Cell]]:
    """By model and arm, the share of its own choices that were cooperative; whom it meets is the unit."""
    cells: dict[str, dict[str, Cell]] = {}
    for title, own in episodes.items():
        choices: dict[str, dict[int, list[bool]]] = {}
        for episode in own:
            for event in episode.by_type["choice"]:
                by_seed = choices.setdefault(kinds.parse(episode.policies[event["agent"]])[1], {})
                by_seed.setdefault(episode.seed, []).append(event["choice"] == 0)
        for model, by_seed in choices.items():
            values = {seed: sum(gains) / len(gains) for seed, gains in by_seed.items()}
            cells.setdefault(model, {})[title] = _interval(values, own[0].condition.cluster)
    return cells


def page() -> str:
    """Return the page as Markdown: the prose, with the recorded results."""
    both: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    recorded, market = both["dilemmas"], both["market"]
    shares, differences = recorded["shares"], recorded["differences"]
    mechanisms = list(dict.fromkeys(split(title)[1] for title in shares))
    games = list(dict.fromkeys(split(title)[0] for title in shares))
    compared = [name for name in mechanisms if any(split(title)[1] == name for title in differences)]
    plays = {**recorded["plays"], "all": [sum(counts) for counts in zip(*recorded["plays"].values(), strict=True)]}
    decimals = {"efficiency": 2}
    market_rows = [[name, *_numbers(cell, 1, decimals.get(name, 1))] for name, cell in market["measures"].items()]
    market_rows += [[f"flagged by '{name}', %", *_numbers(cell, 100, 0)] for name, cell in market["flagged"].items()]
    parts = {
        "MARKET": table(["measure", "mean", "95 % interval"], market_rows),
        "market_commit": market["commit"],
        "GAMES": str(market["measures"]["efficiency"][3]),
        "ROUNDS": f"{math.fsum(counts[2] for counts in market['plays'].values()):,.0f}",
        "MISSED": str(sum(counts[0] - counts[2] for counts in market["plays"].values())),
        **{name: str(recorded[name]) for name in ("by", "of", "commit", "date", "version", "files")},
        "tests": str(len(differences)),
        "PLAYS": table(
            ["institution", "plays", "paid as recorded by our rules", "with what contracts pay"],
            [[name, *(f"{count:,}" for count in counts)] for name, counts in plays.items()],
        ),
        "SHARES": table(
            ["game", *map(_short, mechanisms)],
            [[game, *(_percent(shares[f"{game}, {name}"]) for name in mechanisms)] for game in games],
        ),
        "DIFFERENCES": table(
            ["game", *compared],
            [[game, *(_points(differences.get(f"{game}, {name}")) for name in compared)] for game in games],
        ),
        "MODELS": table(
            ["model", *map(_short, mechanisms)],
            [
                [model, *(_percent(cells[f"{_OF_ONE}, {name}"]) for name in mechanisms)]
                for model, cells in sorted(recorded["models"].items())
            ],
        ),
    }
    return fill_template(PROSE, parts)


def _short(mechanism: str) -> str:
    return mechanism.replace("reputation, first order", "rep. 1").replace("reputation, higher order", "rep. 2")


def _percent(cell: Sequence[float]) -> str:
    """A share with its interval: `10 (4…21)`."""
    mean, low, high = (f"{100 * value:.0f}" for value in cell[:3])
    return f"{mean} ({low}…{high})"


def _numbers(cell: Sequence[float], factor: float, decimals: int) -> list[str]:
    """A mean, and the ends of its interval."""
    mean, low, high = (f"{factor * value:.{decimals}f}" for value in cell[:3])
    return [mean, f"{low}…{high}"]


def _points(cell: Sequence[float] | None) -> str:
    """A difference in points with its interval and its range without one model: `+75 (60…89) 70…80`."""
    if cell is None:
        return ""
    mean, low, high, p, least, highest, _ = cell
    star = "\\*" if p <= 0.05 else ""
    ends, ranges = (f"{100 * a:.0f}…{100 * b:.0f}" for a, b in ((low, high), (least, highest)))
    return f"{100 * mean:+.0f}{star} ({ends}) {ranges}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        both = {"dilemmas": record(Path(sys.argv[2])), "market": record_market(Path(sys.argv[3]))}
        RECORD.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")
    else:
        print(page(), end="")
