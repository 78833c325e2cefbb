"""Drawing a running environment: `Renderer` turns its events into scenes, and scenes into pictures or a window.

A failure to draw never ends an episode: it is warned about once, and play goes on. pygame is imported with the first
picture.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import logger
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.interface.hooks import Event
from llm_coop_envs.render.scenes.base import Said, Scene
from llm_coop_envs.render.scenes.from_events import tracker
from llm_coop_envs.render.scenes.tracking import Tracker

if TYPE_CHECKING:
    from llm_coop_envs.render.screen.window import Window


#: For how many seconds the last scene of an episode stays in its window.
LAST_SCENE = 2.0


class Renderer:
    """Draws one environment.

    Args:
        game: the environment.
        fps: steps per second in a window.
    """

    def __init__(self, game: ArrayEnv, fps: float) -> None:
        self._game = game
        self._fps = fps
        self._tracker: Tracker[Any] | None = None
        self._events: Sequence[Event] = ()
        self._seen = 0
        self._window: Window | None = None
        self._failed = False

    def scene(self) -> Scene:
        """The present scene."""
        game = self._game
        if self._tracker is None or self._events is not game.events or not game.record:
            events = game.events if game.record else []
            self._events = game.events
            if events and events[0]["type"] == "start":
                self._tracker, self._seen = tracker(events[0]), 1
            else:
                # Not recorded from the beginning, so the scene shows what the game still knows of its past.
                opening = {"type": "start", "step": 0, "round": game.round, "seed": None, **game.opening()}
                self._tracker, self._seen = tracker(opening), len(events)
                for event in game.recap():
                    self._tracker.add(event)
                heard = game.conversation.messages
                self._tracker.said = tuple(
                    Said(
                        speaker=message.speaker,
                        text=message.text,
                        round=game.round,
                        hearers=message.hearers,
                        private=message.private,
                    )
                    for message in heard
                )
        following = self._tracker
        for event in game.events[self._seen :]:
            following.add(event)
        self._seen = len(game.events)
        following.step = game.cycles
        scene: Scene = following.scene()
        return scene

    def frame(self) -> NDArray[np.uint8]:
        """The present scene as an (height, width, 3) array."""
        from llm_coop_envs.render.screen.draw import error_frame, frame

        try:
            return frame(self.scene())
        except LlmCoopError:
            raise
        except Exception as error:
            self._warn(error)
            return error_frame(
                f"This picture could not be drawn ({type(error).__name__}: {error}); the episode goes on."
            )

    def png(self) -> bytes:
        """The present scene as the content of a PNG file."""
        import pygame

        frame, file = self.frame(), io.BytesIO()
        height, width, _ = frame.shape
        pygame.image.save(pygame.image.frombytes(frame.tobytes(), (width, height), "RGB"), file, "frame.png")
        return file.getvalue()

    def show(self) -> None:
        """Show the present scene in the window, which the first call opens.

        Raises:
            WindowError: there is no display.
        """
        from llm_coop_envs.render.screen.window import Window

        if self._failed:
            return
        if self._window is None:
            self._window = Window(title=self._game.name, fps=self._fps)
        try:
            self._window.show(self.scene())
        except LlmCoopError:
            raise
        except Exception as error:
            self._warn(error)
            self.close()
            self._failed = True

    def close(self) -> None:
        """Close the window, if there is one."""
        window, self._window = self._window, None
        if window is not None:
            if self._game.over:
                window.linger(LAST_SCENE)
            window.close()

    def _warn(self, error: Exception) -> None:
        if not self._failed:
            logger.warn(f"drawing failed ({type(error).__name__}: {error}); the episode goes on without pictures")
        self._failed = True
