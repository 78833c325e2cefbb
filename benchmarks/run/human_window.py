"""A game with people in a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from llm_coop_envs.benchmarks.run.human_game import Game, Result, play_game
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import WindowError
from llm_coop_envs.policies.human.window import WindowHuman
from llm_coop_envs.render.scenes.base import AnyScene, EvacuationScene
from llm_coop_envs.render.scenes.from_events import tracker
from llm_coop_envs.render.scenes.tracking import Tracker
from llm_coop_envs.render.screen.canvas import View
from llm_coop_envs.render.screen.seat_window import SeatWindow


async def play_in_window(
    game: Game, choose: Callable[[], Path], *, command: str = "", notify: Callable[[str], None] = lambda _: None
) -> tuple[Path, Result]:
    """Play a game in a window; see `play_game`.

    Args:
        game: the game.
        choose: gives the run folder, once it is sure that there is a window.
        command: how it was started, for the record.
        notify: is told what one should know of models that play.

    Returns:
        The run folder, and how the game went.

    Raises:
        WindowError: there is no display.
        LlmCoopError: as `play_game`.
    """
    env = game.condition.spec.environment(record=True, **game.condition.settings)
    env.begin(seed=game.seed)
    mine = [env.possible_agents.index(name) for name in game.seats]
    # The environment's own beginning, so that the window opens before a folder is made.
    first = _Follower(mine).scene(env)
    window = SeatWindow(
        title=f"{game.condition.scenario}: {', '.join(game.seats)}", view=View(selected=mine[0], colour="target")
    )
    try:
        window.open(first)
    except WindowError as error:
        reason = str(error).split(";")[0]
        raise WindowError(f"{reason}; play in the terminal with --terminal") from error
    folder = choose()
    human = WindowHuman(window)
    follower = _Follower(mine)
    try:
        result = await play_game(
            game,
            folder,
            human,
            on_step=lambda played: window.look(follower.scene(played)),
            command=command,
            notify=notify,
        )
        await human.close()
    finally:
        window.close()
    return folder, result


class _Follower:
    """Turns a running game's events into scenes that hold what a player in the room can know.

    Of the others that is where they are; not what they said far away, where they head for, or who they are.
    """

    def __init__(self, mine: Sequence[int]) -> None:
        self._mine = frozenset(mine)
        self._seen = 0
        self._tracker: Tracker[AnyScene] | None = None

    def scene(self, env: ScenarioEnv) -> AnyScene:
        """The scene of the moment."""
        if self._tracker is None:
            self._tracker = tracker(env.events[0])
            self._seen = 1
        for event in env.events[self._seen :]:
            self._tracker.add(event)
        self._seen = len(env.events)
        scene = self._tracker.scene()
        if isinstance(scene, EvacuationScene):
            others = np.array([i not in self._mine for i in range(len(scene.agents))])
            return replace(
                scene,
                said=tuple(one for one in scene.said if any(one.speaker == i or one.heard_by(i) for i in self._mine)),
                headings=np.where(others, -1, scene.headings),
                chosen=np.where(others, -1, scene.chosen),
                planners=scene.planners & ~others,
                personas=tuple((None, None) if others[i] else own for i, own in enumerate(scene.personas)),
            )
        return scene
