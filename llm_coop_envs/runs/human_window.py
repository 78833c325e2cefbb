"""Play a game with people in a window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import WindowError
from llm_coop_envs.policies.human.window import WindowHuman
from llm_coop_envs.render.screen.canvas import View
from llm_coop_envs.render.screen.player_window import PlayerWindow
from llm_coop_envs.runs.human_game import GameResult, HumanGame, play_game


async def play_in_window(
    game: HumanGame, choose: Callable[[], Path], *, command: str = "", notify: Callable[[str], None] = lambda _: None
) -> tuple[Path, GameResult]:
    """Play a game in a window, otherwise as `play_game`; returns the run folder too.

    The folder is chosen once the window is open, so that none is made in vain.

    Raises:
        WindowError: there is no display.
        LlmCoopError: as `play_game`.
    """
    env = game.condition.spec.environment(record=True, **game.condition.settings)
    env.begin(seed=game.seed)
    mine = [env.possible_agents.index(name) for name in game.seats]
    title = f"{game.condition.scenario}: {', '.join(game.seats)}"
    window = PlayerWindow(title=title, players=mine, view=View(selected=mine[0], colour="target"))
    try:
        # The window opens on the game's first scene before a folder is made.
        window.look(env.scene())
    except WindowError as error:
        reason = str(error).split(";")[0]
        raise WindowError(f"{reason}; play in the terminal with --terminal") from error
    folder = choose()
    human = WindowHuman(window)
    played = env

    def look(game: ScenarioEnv) -> None:
        nonlocal played
        played = game
        window.look(game.scene())

    try:
        result = await play_game(
            game,
            folder,
            human,
            on_step=look,
            command=command,
            notify=notify,
        )
        if not result.person_left:
            window.end(played.scene(), "The game is over.")
        await human.close()
    finally:
        window.close()
    return folder, result
