"""One recorded episode of a run, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.runs.remaining import count_of
from llm_coop_envs.util.checks import suggestion


@dataclass(frozen=True, kw_only=True)
class Recording:
    """An episode.

    Attributes:
        title: what is shown: condition, seed and who played.
        condition: the condition's name.
        seed: the environment's seed.
        events: what happened.
        others: how many more episodes the run has.
    """

    title: str
    condition: str
    seed: int
    events: list[Event]
    others: int

    @property
    def more(self) -> str:
        """What to say about the run's other episodes; empty if there are none."""
        if not self.others:
            return ""
        return f"; {count_of(self.others, 'more episode')} can be named after the run folder"


def read_recording(folder: Path, condition: str | None = None, seed: int | None = None) -> Recording:
    """Read an episode of a run.

    Args:
        folder: the run folder.
        condition: the condition's name; the first that has finished episodes by default.
        seed: the seed; the condition's first finished one by default.

    Raises:
        RunError: there is no such run or episode, or it is damaged.
    """
    run = open_run(folder)
    there = run.finished()
    if not there:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    name, number = _chosen(run, there, condition, seed)
    header, events = run.read_events(name, number)
    kinds: dict[str, int] = {}
    for policy in header["policies"].values():
        kinds[policy] = kinds.get(policy, 0) + 1
    who = ", ".join(f"{count} {policy.partition('/')[2] or policy}" for policy, count in kinds.items())
    title = f"{run.manifest['study']}: {name}, seed {number} ({who})"
    return Recording(title=title, condition=name, seed=number, events=events, others=len(there) - 1)


def _chosen(run: Run, there: set[tuple[str, int]], condition: str | None, seed: int | None) -> tuple[str, int]:
    conditions = [one for one in run.conditions if any(name == one.name for name, _ in there)]
    if condition is None:
        found = conditions[0]
    else:
        by_name = {one.name: one for one in run.conditions}
        if condition not in by_name:
            raise RunError(f"{run.folder}: has no condition '{condition}'; {suggestion(condition, by_name)}")
        found = by_name[condition]
    seeds = [one for one in found.seeds if (found.name, one) in there]
    if seed is None and seeds:
        return found.name, seeds[0]
    if seed not in seeds:
        told = ", ".join(map(str, seeds[:8])) + (", ..." if len(seeds) > 8 else "") if seeds else "none"
        wanted = "no finished episode" if seed is None else f"no finished episode with seed {seed}"
        raise RunError(f"{run.folder}: condition '{found.name}' has {wanted}; finished seeds: {told}")
    return found.name, seed
