"""What a picture of the fishery shows, and how it is drawn."""

from dataclasses import dataclass

from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.tracking import Event, Tracker
from llm_coop_envs.render.screen.canvas import BLUE, PANEL, PAPER, Canvas, Rect, series
from llm_coop_envs.render.screen.chart import Chart, Curve
from llm_coop_envs.render.screen.draw import Picture
from llm_coop_envs.render.screen.talk import draw_talk


@dataclass(frozen=True, kw_only=True, eq=False)
class FisheryScene(Scene):
    """A moment of the fishery.

    Attributes:
        capacity: the largest stock, in tons.
        seasons: how many seasons there are.
        stock: the stock before each season so far and after the last one.
        catches: everybody's catch in each season so far.
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
        """The scene of the moment."""
        rules = self.settings
        known = {"capacity": rules["capacity"], "seasons": rules["seasons"]}
        return FisheryScene(**self.common(), **known, stock=self._stock, catches=self._catches)

    def _settle(self, event: Event) -> None:
        self._stock = (*self._stock[:-1], event["stock"], event["left"])
        self._catches = (*self._catches, tuple(event["catches"]))


def draw(scene: FisheryScene, canvas: Canvas) -> None:
    """Draw the stock and the catches over the seasons, and the talk."""
    canvas.surface.fill(PAPER)
    px, area = canvas.px, canvas.rect
    title = f"Fishery, season {scene.round} of {scene.seasons}" + (f": {scene.reason}" if scene.reason else "")
    canvas.text((px(14), px(10)), title, size=16, bold=True)
    wide, high = area.width * 2 // 3 - px(28), (area.height - px(60)) // 2
    most = max((catch for season in scene.catches for catch in season), default=1.0)
    for row, (name, top) in enumerate((("Tons of fish", scene.capacity), ("Tons landed by each", most))):
        place = Rect(px(14), px(44) + row * high, wide, high - px(12))
        chart = Chart(canvas, place, title=name, x_range=(0, scene.seasons), y_range=(0, top), x_label="season")
        if row == 0:
            chart.curve(Curve(x=range(len(scene.stock)), y=scene.stock, colour=BLUE))
            continue
        for who in range(len(scene.agents)):
            landed = [season[who] for season in scene.catches]
            chart.curve(Curve(x=range(1, len(landed) + 1), y=landed, colour=series(who), sign="disc"))
    panel = Rect(wide + px(28), px(44), area.width - wide - px(28), area.height - px(44))
    canvas.box(panel, PANEL)
    inside = panel.inflate(-px(24), -px(16))
    draw_talk(canvas, inside, scene.said, scene.agents, title="Said", colour_of=series, empty="Nobody has spoken.")


PICTURE = Picture(draw=draw, size=(1000, 640))
