"""A comparison's folder: every episode is written down as it ends, and an interrupted run goes on where it stopped."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_coop_envs.benchmarks.comparison.arms import Arm
from llm_coop_envs.benchmarks.comparison.playing import Row, market_env, measured
from llm_coop_envs.benchmarks.study.players import make_policy
from llm_coop_envs.core.policy import Seating
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.storage.files import read_appended as read_lines
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.parquet import need_arrow

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

    OpenChat = Callable[[], AbstractAsyncContextManager[Chat]]

PLAN, JOURNAL, RESULT = "comparison.json", "episodes.jsonl", "comparison.parquet"
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """One episode: the arm, the preset, its number."""

    arm: Arm
    preset: str
    number: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from the others."""
        return self.preset, self.arm.name, self.number


def all_tasks(arms: Sequence[Arm]) -> list[Task]:
    """Every episode, arms and markets taking turns so that each is known early."""
    longest = max(arm.episodes for arm in arms)
    return [
        Task(arm, preset, number)
        for number in range(longest)
        for arm in arms
        if number < arm.episodes
        for preset in arm.presets
    ]


def fitted(arm: Arm) -> Arm:
    """The arm in those markets that its policy can play; what is learned belongs to a market.

    Raises:
        LlmCoopError: it can play none of them.
    """
    arm.check()
    fitting: list[str] = []
    refused: LlmCoopError | None = None
    for preset in arm.presets:
        env = market_env(preset, talk=arm.talk, rounds=1)
        policy = make_policy("bertrand", arm.policy, arm.options)
        try:
            Seating(dict.fromkeys(env.possible_agents, policy), env.possible_agents).begin(
                env.metadata["name"], env.settings, env.possible_agents, np.random.SeedSequence(0)
            )
        except LlmCoopError as error:
            refused = error
        else:
            fitting.append(preset)
    if refused is not None and not fitting:
        raise refused
    return replace(arm, presets=tuple(fitting))


def is_comparison(folder: Path) -> bool:
    """Whether a folder holds a comparison."""
    return (folder / PLAN).is_file()


def read_plan(folder: Path) -> dict[str, Any]:
    """What is compared in a folder.

    Raises:
        RunError: it cannot be read.
    """
    try:
        found: dict[str, Any] = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder / PLAN} cannot be read ({error}); run the comparison into a new folder") from error
    return found


def read_rows(folder: Path) -> list[Row]:
    """The finished episodes; see `read_lines`."""
    return read_lines(folder / JOURNAL)


def run_comparison(
    arms: Sequence[Arm],
    folder: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    open_chat: OpenChat | None = None,
    report: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Play everything that a folder does not hold yet.

    Args:
        arms: who plays; arms that a folder holds besides are kept.
        folder: where; made if it is not there.
        seed: of the run.
        workers: processes for players that ask no model.
        open_chat: opens what answers the questions of players that ask one.
        report: told how many episodes are there, and of how many.

    Returns:
        The rows of these arms, in order.

    Raises:
        LlmCoopError: a policy cannot be made, or cannot play; nothing has been started then.
        RunError: the folder holds something else, or cannot be written.
        MissingExtra: the compiler or pyarrow is not installed.
    """
    need_arrow()
    if any(not arm.policy for arm in arms):
        # Imported for its message if the compiler is missing, before anything is played.
        import llm_coop_envs.baselines.q_learning.learn.compiled  # noqa: F401
    for arm in arms:
        arm.check()
    if open_chat is None and any(arm.asks for arm in arms):
        raise RunError("an arm asks a language model, and there is nobody to answer; name a model")
    _check_plan(arms, folder, seed)
    rows = {(row["preset"], row["arm"], row["number"]): row for row in read_rows(folder)}
    tasks = all_tasks(arms)
    missing = [task for task in tasks if task.key not in rows]
    done = len(tasks) - len(missing)
    with (folder / JOURNAL).open("a", encoding="utf-8") as journal:

        def keep(task: Task, row: Row) -> None:
            nonlocal done
            journal.write(json.dumps(row) + "\n")
            journal.flush()
            rows[task.key] = row
            done += 1
            if report is not None:
                report(done, len(tasks))

        if report is not None:
            report(done, len(tasks))
        for task, row in _played([task for task in missing if not task.arm.asks], seed, workers):
            keep(task, row)
        asking = [task for task in missing if task.arm.asks]
        if asking and open_chat is not None:
            asyncio.run(_asked(asking, seed, open_chat, keep))
    found = [rows[task.key] for task in tasks]
    _write_parquet([rows[key] for key in sorted(rows)], folder / RESULT)
    return found


def _played(tasks: Sequence[Task], seed: int, workers: int) -> Iterator[tuple[Task, Row]]:
    """Play in processes; each episode depends on its seed alone, so their number changes nothing."""
    if workers == 1:
        for task in tasks:
            yield task, _play(task, seed)
        return
    left = iter(tasks)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[Row], Task] = {}
        try:
            while True:
                for task in left:
                    running[pool.submit(_play, task, seed)] = task
                    if len(running) > workers:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


def _play(task: Task, seed: int) -> Row:
    return asyncio.run(measured(task.arm, task.preset, task.number, seed))


async def _asked(tasks: Sequence[Task], seed: int, open_chat: OpenChat, keep: Callable[[Task, Row], None]) -> None:
    """Play what asks a model, side by side: conversations wait for answers most of the time."""
    async with open_chat() as chat:

        async def one(task: Task) -> None:
            keep(task, await measured(task.arm, task.preset, task.number, seed, chat))

        await asyncio.gather(*map(one, tasks))


def _check_plan(arms: Sequence[Arm], folder: Path, seed: int) -> None:
    """Make the folder, or see that it holds the same comparison, perhaps of other arms."""
    mine = {arm.name: arm.to_json() for arm in arms}
    known: dict[str, Any] = {}
    if is_comparison(folder):
        plan = read_plan(folder)
        if plan["seed"] != seed:
            raise RunError(
                f"the folder {folder} holds a comparison with seed {plan['seed']}, not {seed}; name another folder"
            )
        known = plan["arms"]
        for name, arm in mine.items():
            if name in known and known[name] != json.loads(json.dumps(arm)):
                raise RunError(f"the folder {folder} holds {name} with other settings; name another folder")
    elif folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"the folder {folder} holds something else; name another folder")
    plan = {"format": FORMAT, "seed": seed, "arms": {**known, **mine}}
    write_whole(folder / PLAN, (json.dumps(plan, indent=1) + "\n").encode())


def _write_parquet(rows: list[Row], path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    unfinished = path.with_suffix(".part")
    parquet.write_table(pyarrow.Table.from_pylist(rows), unfinished, compression="zstd")
    os.replace(unfinished, path)
