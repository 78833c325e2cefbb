"""How a run shows itself: conditions, players, finished episodes and means of the headline measures."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.storage.parquet import read_rows
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.opening import explain_damage
from llm_coop_envs.util.showing import Summary

_HEADINGS = ("condition", "scenario", "players", "episodes", "means")


def summarise_run(
    folder: Path,
    manifest: Mapping[str, Any],
    conditions: Sequence[Condition],
    find_finished: Callable[[], set[tuple[str, int]]],
    more: Sequence[str] = (),
) -> Summary:
    """A run with a row for each of its conditions; of a damaged one, a sentence.

    Args:
        folder: the run folder.
        manifest: the run's manifest.
        conditions: the run's conditions.
        find_finished: returns the finished episodes, as (condition, seed).
        more: sentences that follow on its description.
    """
    try:
        with explain_damage(folder, "'llm-coop verify' says more"):
            finished, rows = find_finished(), _read_episode_rows(folder)
            total = sum(len(condition.seeds) for condition in conditions)
            return Summary(
                title=f"{manifest['study']}: {len(finished)} of {total} episodes, in {folder}",
                facts=(manifest["description"], *more),
                head=_HEADINGS,
                rows=[_cells(condition, finished, rows) for condition in conditions],
                many="conditions",
            )
    except (OSError, LlmCoopError) as error:
        return Summary(title=f"A run that cannot be shown: {error}", facts=more)


def _cells(condition: Condition, finished: set[tuple[str, int]], rows: Sequence[Row]) -> list[str]:
    played = sum((condition.name, seed) in finished for seed in condition.seeds)
    own = [row for row in rows if row["condition"] == condition.name]
    means = [
        f"{measure} {statistics.fmean(values):.4g}"
        for measure in condition.spec.measured.headline
        if (values := [row[measure] for row in own if row.get(measure) is not None])
    ]
    players = ", ".join(condition.policies)
    return [condition.name, condition.scenario, players, f"{played} of {len(condition.seeds)}", ", ".join(means)]


def _read_episode_rows(folder: Path) -> list[Row]:
    """The rows of the table of episodes; none if it is missing, damaged, or pyarrow is not installed."""
    path = folder / "episodes.parquet"
    with contextlib.suppress(RunError):
        if path.is_file() and find_spec("pyarrow"):
            return read_rows(path)
    return []
