"""`llm-coop film`: a recorded episode as a film."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.cli.messages import note, sentences
from llm_coop_envs.cli.trusting import reads_runs


@sentences
@reads_runs
def film_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    condition: Annotated[
        str | None, typer.Argument(help="Which condition. (default: the first)", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Argument(help="Which seed. (default: the first)", show_default=False)] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The film: a name that ends in .mp4 or .gif.")] = Path(
        "film.mp4"
    ),
    fps: Annotated[float, typer.Option("--fps", help="Pictures per second.")] = 12.0,
    per: Annotated[
        str | None,
        typer.Option("--per", help="A picture per step or per round. (default: what suits the scenario)"),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="WIDTHxHEIGHT in pixels. (default: the scene's)", show_default=False)
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Draw everything this many times larger.")] = 1.0,
    colour: Annotated[str, typer.Option("--colour", help="What people's colours mean: target or persona.")] = "target",
) -> None:
    """Film a recorded episode, without playing it again."""
    from llm_coop_envs.render.film import Film, form_of, need_ffmpeg, write_film

    out = out.expanduser()
    form = form_of(out)
    need_ffmpeg()  # before pygame, which the same extra brings
    from llm_coop_envs.core.registry import scenario_of
    from llm_coop_envs.render.scenes.from_events import frames
    from llm_coop_envs.render.screen.canvas import View
    from llm_coop_envs.render.screen.draw import frame, picture_of
    from llm_coop_envs.runs.progress import counting
    from llm_coop_envs.runs.recorded import read_recording
    from llm_coop_envs.storage.files import atomic_path

    Film(fps=fps, per=per or "step", scale=scale, colour=colour)
    recording = read_recording(run.expanduser(), condition, seed)
    scenes = frames(recording.events, per=per or scenario_of(recording.events[0]["scenario"]).film)
    width, height = picture_of(scenes[0]).size if size is None else _size(size)
    film = Film(fps=fps, width=width, height=height, scale=scale, colour=colour, per=per or "step")
    view = View(
        size=(round(film.width / film.scale), round(film.height / film.scale)), scale=film.scale, colour=film.colour
    )

    def pictures() -> Iterator[Any]:
        for number, scene in enumerate(scenes, 1):
            count(number)
            yield frame(scene, view)

    with counting("pictures", len(scenes)) as count, atomic_path(out) as part:
        drawn = write_film(pictures(), part, form, film)
    note(f"Filmed {recording.title}{recording.others_note}.")
    typer.echo(f"Film: {out} ({drawn} pictures, {drawn / film.fps + film.hold:.0f} s)")


def _size(size: str) -> tuple[int, int]:
    from llm_coop_envs.errors import SettingsError

    width, cross, height = size.lower().partition("x")
    if not (cross and width.isascii() and width.isdigit() and height.isascii() and height.isdigit()):
        raise SettingsError("size", size, "must be WIDTHxHEIGHT, such as 1280x720")
    return int(width), int(height)
