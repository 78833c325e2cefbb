"""A game with people in it, recorded as a run of one episode."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import LlmCoopError, PlayerLeft, RunError, SettingsError, StudyError
from llm_coop_envs.policies import Policy, play_async
from llm_coop_envs.runs.episode import Played, episode_randomness
from llm_coop_envs.runs.folder import Run, make_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.tables import write_tables
from llm_coop_envs.storage.folder import COMPLETE, INTERRUPTED
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.studies.players import Recorded, full_name, make_policy
from llm_coop_envs.studies.seating import read_player
from llm_coop_envs.studies.study import MAX_SEED, Condition, Study, assign_seats, make_player, parse_study
from llm_coop_envs.util.interrupts import on_interrupt

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

HUMAN = "human"
CONDITION = "played"


@dataclass(frozen=True, kw_only=True)
class HumanGame:
    """A game to be played: a study of one condition and one seed, and who of its agents are people."""

    study: Study
    seats: tuple[str, ...]

    @property
    def condition(self) -> Condition:
        """What is played."""
        return self.study.conditions[0]

    @property
    def seed(self) -> int:
        """The environment's seed."""
        return self.condition.seeds[0]


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a game went.

    Attributes:
        run: the run folder.
        kept: whether there was anything to keep.
        reason: why it ended.
        left: whether a person left before the end.
        rewards: each person's sum of rewards.
        failure: what broke the game off, if something did.
    """

    run: Run
    kept: bool
    reason: str
    left: bool
    rewards: dict[str, float]
    failure: Exception | None = None


def plan_game(
    scenario: str,
    *,
    seats: int | Sequence[str] = 1,
    others: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> HumanGame:
    """Make a study of a game.

    `seats` is how many people play, from the first seat on, or names their seats; `others` fills the other seats, as
    `llm-coop run --policy` takes it: a scripted policy by default.

    Raises:
        LlmCoopError: something is impossible; the sentence says what.
    """
    if not 0 <= seed <= MAX_SEED:
        raise SettingsError("seed", seed, f"must be between 0 and {MAX_SEED}")
    found = find_scenario(scenario)
    agents = found.environment(preset=preset, **dict(settings or {})).possible_agents
    if isinstance(seats, int):
        if not 1 <= seats <= len(agents):
            raise SettingsError("seats", seats, f"must be between 1 and {len(agents)}, the number of players")
        mine = list(agents[:seats])
    else:
        mine = list(dict.fromkeys(seats))
        unknown = [name for name in mine if name not in agents]
        if unknown or not mine:
            why = f"is not a seat; seats are {agents[0]} to {agents[-1]}"
            raise SettingsError("seat", unknown[0] if unknown else "", why)
    policies: dict[str, Any] = dict.fromkeys(mine, HUMAN)
    if len(mine) < len(agents):
        given = read_player(others or found.opponent)
        try:
            make_player(scenario, full_name(scenario, given.name), given.options)
        except LlmCoopError as error:
            raise StudyError(f"--others {given}: {error}") from error
        policies["all"] = {"name": given.name, "options": dict(given.options)} if given.options else given.name
    condition: dict[str, Any] = {"name": CONDITION, "title": f"{scenario} with people", "scenario": scenario}
    condition |= {} if preset is None else {"preset": preset}
    condition |= {"settings": dict(settings)} if settings else {}
    condition |= {"policies": policies, "seeds": [seed]}
    study: dict[str, Any] = {"name": f"play_{scenario}", "description": "A game with people in it.", "seed": seed}
    text = yaml.safe_dump({**study, "conditions": [condition]}, sort_keys=False, allow_unicode=True)
    return HumanGame(study=parse_study(text, "the game"), seats=tuple(mine))


async def play_game(
    game: HumanGame,
    folder: Path,
    human: Policy,
    *,
    on_step: Callable[[ScenarioEnv], None] | None = None,
    command: str = "",
    notify: Callable[[str], None] = lambda _: None,
) -> Result:
    """Play a game and keep it as a run folder, which reports, figures and films read like any other.

    If a person leaves, or drawing or a policy fails, what was played is kept as an episode that was cut; a game without
    a single settled round is not kept. The folder is empty or new, or one in which this game was begun and not kept.
    `human` decides for the people's seats, `on_step` is called after the start and after every step, and `notify` is
    told what one should know of models that play; `command` is recorded.

    Raises:
        LlmCoopError: the folder cannot be used or written, or a policy failed.
    """
    need_arrow()
    access = ModelAccess()
    endpoints = access.endpoints(game.study)
    if endpoints:
        access.check(endpoints)
    run = make_run(game.study, folder)
    # The event loop's own handler would only make a note of Ctrl-C: this one breaks off what waits for a line.
    with run.lock(), on_interrupt(signal.default_int_handler):
        if run.finished():
            raise RunError(f"{folder}: holds this game already; choose another folder with -o, or another --seed")
        number = run.begin(command=command, workers=1)
        status = INTERRUPTED
        written: list[Path] = []
        try:
            async with access.open(folder, endpoints, notify) if endpoints else contextlib.nullcontext() as chat:
                result = await _play(game, run, human, on_step, chat)
            if result.kept:
                written += [*write_tables(run), run.events_path(game.condition.name, game.seed)]
                status = COMPLETE
        finally:
            written += access.journal(folder) if endpoints else []
            run.end(number, status, files=run.fingerprints(*written), finished=len(run.finished()))
    if result.failure is not None:
        what = str(result.failure) or type(result.failure).__name__
        kept = "what was played is kept there" if result.kept else "no round was settled, so there is nothing to keep"
        raise RunError(f"{folder}: the game broke off ({what}); {kept}") from result.failure
    return result


async def _play(
    game: HumanGame, run: Run, human: Policy, on_step: Callable[[ScenarioEnv], None] | None, chat: Chat | None
) -> Result:
    condition = game.condition
    env = condition.spec.environment(record=True, **condition.settings)
    seating, deciding = episode_randomness(game.study.seed, condition.streams, game.seed).spawn(2)
    players = assign_seats(condition, env.possible_agents, np.random.default_rng(seating))
    made: dict[int, tuple[str, Policy]] = {}
    for player in players.values():
        if player.policy == HUMAN:
            made[id(player)] = HUMAN, human
        elif id(player) not in made:
            made[id(player)] = player.policy, make_policy(condition.scenario, player.policy, player.options, chat)
    totals = np.zeros(len(env.possible_agents))

    def count(played: ScenarioEnv) -> None:
        totals.__iadd__(played.rewards)
        if on_step is not None:
            on_step(played)

    left = ""
    failure: Exception | None = None
    try:
        await play_async(
            env,
            {agent: made[id(player)][1] for agent, player in players.items()},
            seed=game.seed,
            policy_seed=deciding,
            on_step=count,
            name=f"{condition.name}/{game.seed}",
        )
    except PlayerLeft as gone:
        left = str(gone)
    except (KeyboardInterrupt, asyncio.CancelledError):
        # Ctrl-C while everybody thinks ends the event loop, which then cancels what runs in it.
        left = "Ctrl-C was pressed"
    except Exception as error:
        if not env.events:
            raise
        left, failure = f"the game broke off: {error}", error
    events = list(env.events)
    if left:
        last = events[-1]
        reason = left if failure else f"left: {left}"
        events.append(
            {"type": "end", "step": last["step"], "round": last["round"], "reason": reason, "truncated": True}
        )
    kept = any(event["type"] == "round" for event in events)
    if kept:
        policies = {agent: player.policy for agent, player in players.items()}
        answers = [{"policy": name, **one.record()} for name, one in made.values() if isinstance(one, Recorded)]
        run.write_events(condition.name, game.seed, Played(policies=policies, events=events, answers=answers))
    return Result(
        run=run,
        kept=kept,
        reason=events[-1]["reason"],
        left=bool(left),
        rewards={agent: float(totals[env.possible_agents.index(agent)]) for agent in game.seats},
        failure=failure,
    )
