"""`llm-coop watch`: replay a recorded episode in a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import note, sentences
from llm_coop_envs.cli.trusting import reads_runs


@sentences
@reads_runs
def watch_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    condition: Annotated[
        str | None, typer.Argument(help="Which condition. (default: the first)", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Argument(help="Which seed. (default: the first)", show_default=False)] = None,
    fps: Annotated[float, typer.Option("--fps", help="Pictures per second at speed 1.")] = 12.0,
    per: Annotated[str, typer.Option("--per", help="A picture per step or per round.")] = "step",
    scale: Annotated[float, typer.Option("--scale", help="Draw everything this many times larger.")] = 1.0,
    pictures: Annotated[
        int | None,
        typer.Option("--pictures", min=1, help="End after this many pictures, for tests.", show_default=False),
    ] = None,
) -> None:
    """Replay a recorded episode, forwards and backwards, at any speed, without playing it again."""
    from llm_coop_envs.errors import WindowError
    from llm_coop_envs.render.film import Film
    from llm_coop_envs.render.scenes.from_events import frames
    from llm_coop_envs.render.screen.canvas import View
    from llm_coop_envs.render.screen.replay_window import ReplayWindow
    from llm_coop_envs.runs.recorded import read_recording

    film = Film(fps=fps, per=per, scale=scale)
    recording = read_recording(run.expanduser(), condition, seed)
    scenes = frames(recording.events, per=film.per)
    note(f"{recording.title}{recording.others_note}.")
    window = ReplayWindow(scenes, title=recording.title, fps=film.fps, view=View(scale=film.scale, colour="target"))
    try:
        window.run(pictures)
    except WindowError as error:
        cure = f"make a film instead: llm-coop film {run} {recording.condition} {recording.seed} -o episode.mp4"
        raise WindowError(f"{str(error).split(';')[0]}; {cure}, or set SDL_VIDEODRIVER=dummy") from error
