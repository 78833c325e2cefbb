"""Scenes and pictures of the fishery."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.tracking import Event, Tracker
from llm_coop_envs.render.screen.canvas import BLUE, Canvas, Rect
from llm_coop_envs.render.screen.chart import Chart
from llm_coop_envs.render.screen.page import Picture, draw_page
from llm_coop_envs.render.screen.talk import draw_talk


@dataclass(frozen=True, kw_only=True, eq=False)
class FisheryScene(Scene):
    """A moment of the fishery.

    Attributes:
        capacity: the largest stock, in tons.
        seasons: how many seasons there are.
        stock: the stock before each season so far and after the last one.
        catches: (seasons so far, fishers) the catch of each fisher in each season, in tons.
    """

    capacity: float
    seasons: int
    stock: tuple[float, ...]
    catches: tuple[tuple[float, ...], ...]


class FisheryTracker(Tracker[FisheryScene]):
    """Follows the fishery season by season."""

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        self._stock: tuple[float, ...] = (self.settings["capacity"],)
        self._catches: tuple[tuple[float, ...], ...] = ()

    def scene(self) -> FisheryScene:
        """The present scene."""
        rules = self.settings
        fixed = {"capacity": rules["capacity"], "seasons": rules["seasons"]}
        return FisheryScene(**self.common(), **fixed, stock=self._stock, catches=self._catches)

    def _settle(self, event: Event) -> None:
        self._stock = (*self._stock[:-1], event["stock"], event["left"])
        self._catches = (*self._catches, tuple(event["catches"]))


def draw(scene: FisheryScene, canvas: Canvas) -> None:
    """Draw the stock and the catches over the seasons, and the talk."""
    px = canvas.px
    state = f"season {scene.round} of {scene.seasons} · {scene.state()}"
    main, inside = draw_page(canvas, title="Fishery", state=state, right=f"{scene.stock[-1]:.1f} tons left")
    main = main.inflate(-px(28), -px(20))
    top, bottom = (Rect(main.left, y, main.width, main.height // 2 - px(8)) for y in (main.top, main.centery + px(8)))
    axis: dict[str, Any] = {"x_range": (0, scene.seasons), "x_label": "season"}
    stock = Chart(canvas, top, title="Tons of fish", y_range=(0, scene.capacity), **axis)
    stock.curve(np.arange(len(scene.stock), dtype=np.float64), np.array(scene.stock), BLUE)
    catches = np.array(scene.catches).reshape(-1, len(scene.agents))
    landed = Chart(canvas, bottom, title="Tons landed by each", y_range=(0, catches.max(initial=1.0)), **axis)
    landed.players(np.arange(1, len(catches) + 1, dtype=np.float64), catches)
    draw_talk(canvas, inside, scene, title="Said", empty="Nobody has spoken.")


PICTURE = Picture(draw=draw)
