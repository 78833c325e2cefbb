"""From pictures to a film: MP4 or GIF, written by ffmpeg, whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SceneError, SettingsError
from llm_coop_envs.util.checks import check_choice, check_int, check_number
from llm_coop_envs.util.extras import need

Pixels = NDArray[np.uint8]

#: Sides of films; more is refused, because players and ffmpeg do.
SMALLEST, LARGEST = 64, 8192


@dataclass(frozen=True, kw_only=True)
class Film:
    """How a film is made.

    Attributes:
        fps: pictures per second.
        per: a picture for each `"step"`, or for each `"round"`.
        width: of the picture, in pixels.
        height: likewise.
        scale: how much larger everything in it is drawn; the picture keeps its size.
        colour: in rooms, what people's colours mean: `"persona"` or `"target"`.
        hold: for how many seconds the last picture stays.
    """

    fps: float = 12.0
    per: str = "step"
    width: int = 1000
    height: int = 680
    scale: float = 1.0
    colour: str = "target"
    hold: float = 1.5

    def __post_init__(self) -> None:
        """Check the fields."""
        check_number(self, "fps", 0.0, 240.0, above=True)
        check_choice(self, "per", ("step", "round"))
        check_int(self, "width", SMALLEST, LARGEST)
        check_int(self, "height", SMALLEST, LARGEST)
        check_number(self, "scale", 0.25, 8.0)
        check_choice(self, "colour", ("persona", "target"))
        check_number(self, "hold", 0.0, 60.0)


def form_of(path: Path) -> str:
    """A film's format, by its file's ending.

    Raises:
        SettingsError: it is none.
    """
    form = path.suffix.lower()
    if form not in (".mp4", ".gif"):
        raise SettingsError("out", str(path), "must end in .mp4 or .gif")
    return form


def need_ffmpeg() -> Any:
    """The library that brings ffmpeg.

    Raises:
        MissingExtra: it is not installed.
    """
    return need("imageio_ffmpeg", "making films", "film")


def write_film(pictures: Iterable[Pixels], path: Path, form: str, film: Film) -> int:
    """Write pictures as a film.

    Args:
        pictures: (height, width, 3), all of one size; sides are cut to even numbers, as the format wants.
        path: where; the file's name need not end as its format does.
        form: `".mp4"` or `".gif"`.
        film: pictures per second, and how long the last one stays.

    Returns:
        How many pictures were written, the last one's repetitions not counted.

    Raises:
        SceneError: there were no pictures, or ffmpeg failed.
        MissingExtra: the extra `film` is not installed.
    """
    library = need_ffmpeg()
    # Known before ffmpeg is asked, whose messages are long.
    path.touch()
    rest = iter(pictures)
    first = next(rest, None)
    if first is None:
        raise SceneError("there is nothing to film")
    height, width = (side - side % 2 for side in first.shape[:2])
    if form == ".gif":
        # Colours chosen from the whole film; one pass, because ffmpeg keeps the small pictures while it looks at them.
        choose = "[0:v]split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
        options = {"codec": "gif", "pix_fmt_out": "pal8", "output_params": ["-filter_complex", choose, "-f", "gif"]}
    else:
        same = ["-f", "mp4", "-movflags", "+faststart", "-preset", "medium", "-crf", "20", "-threads", "1"]
        quiet = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
        options = {"codec": "libx264", "pix_fmt_out": "yuv420p", "output_params": [*same, *quiet]}
    writer = library.write_frames(
        str(path), (width, height), fps=film.fps, quality=None, macro_block_size=1, ffmpeg_log_level="error", **options
    )
    count, last = 0, first
    try:
        writer.send(None)
        for picture in itertools.chain([first], rest):
            last = np.ascontiguousarray(picture[:height, :width])
            writer.send(last)
            count += 1
        for _ in range(round(film.hold * film.fps)):
            writer.send(last)
        writer.close()
    except (OSError, RuntimeError) as error:
        writer.close()
        # The last line that ffmpeg said.
        reason = str(error).strip().rpartition("\n")[2].strip() or type(error).__name__
        raise SceneError(f"the film could not be written ({reason})") from error
    return count
