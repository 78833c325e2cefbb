"""Read one recorded episode of a run in order to show it."""

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
    """A recorded episode.

    Attributes:
        title: a title with study, condition, seed and players.
        condition: the condition's name.
        seed: the environment's seed.
        events: the recorded events.
        others: the number of other finished episodes of the run.
    """

    title: str
    condition: str
    seed: int
    events: list[Event]
    others: int

    @property
    def others_note(self) -> str:
        """A half-sentence on the run's other episodes; empty if there are none."""
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
    finished = run.finished()
    if not finished:
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    name, number = _choose_episode(run, finished, condition, seed)
    header, events = run.read_events(name, number)
    kinds: dict[str, int] = {}
    for policy in header["policies"].values():
        kinds[policy] = kinds.get(policy, 0) + 1
    players = ", ".join(f"{count} {policy.partition('/')[2] or policy}" for policy, count in kinds.items())
    title = f"{run.manifest['study']}: {name}, seed {number} ({players})"
    return Recording(title=title, condition=name, seed=number, events=events, others=len(finished) - 1)


def _choose_episode(
    run: Run, finished: set[tuple[str, int]], condition: str | None, seed: int | None
) -> tuple[str, int]:
    conditions = [candidate for candidate in run.conditions if any(name == candidate.name for name, _ in finished)]
    if condition is None:
        chosen = conditions[0]
    else:
        by_name = {candidate.name: candidate for candidate in run.conditions}
        if condition not in by_name:
            raise RunError(f"{run.folder}: has no condition '{condition}'; {suggestion(condition, by_name)}")
        chosen = by_name[condition]
    seeds = [candidate for candidate in chosen.seeds if (chosen.name, candidate) in finished]
    if seed is None and seeds:
        return chosen.name, seeds[0]
    if seed not in seeds:
        seed_list = ", ".join(map(str, seeds[:8])) + (", ..." if len(seeds) > 8 else "") if seeds else "none"
        lacking = "no finished episode" if seed is None else f"no finished episode with seed {seed}"
        raise RunError(f"{run.folder}: condition '{chosen.name}' has {lacking}; finished seeds: {seed_list}")
    return chosen.name, seed
