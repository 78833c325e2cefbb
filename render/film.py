"""Films from pictures: MP4 or GIF, written by ffmpeg."""

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

#: The limits of a film's sides in pixels; video players and ffmpeg refuse larger ones.
SMALLEST, LARGEST = 64, 8192


@dataclass(frozen=True, kw_only=True)
class Film:
    """The settings of a film.

    Attributes:
        fps: pictures per second.
        per: a picture for each `"step"`, or for each `"round"`.
        width: the width in pixels.
        height: the height in pixels.
        scale: the factor on all lengths in the picture, which keeps its size.
        colour: in rooms, the meaning of people's colours: `"persona"` or `"target"`.
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
    """The format of a film by the ending of its file: `".mp4"` or `".gif"`.

    Raises:
        SettingsError: the file has another ending.
    """
    form = path.suffix.lower()
    if form not in (".mp4", ".gif"):
        raise SettingsError("out", str(path), "must end in .mp4 or .gif")
    return form


def need_ffmpeg() -> Any:
    """Import the library that brings ffmpeg.

    Raises:
        MissingExtra: it is not installed.
    """
    return need("imageio_ffmpeg", "making films", "film")


def write_film(pictures: Iterable[Pixels], path: Path, form: str, film: Film) -> int:
    """Write pictures as a film.

    Args:
        pictures: (height, width, 3), all of one size; sides are cut to even numbers, as the format wants.
        path: the file; its ending need not be that of the format.
        form: `".mp4"` or `".gif"`.
        film: pictures per second, and how long the last one stays.

    Returns:
        How many pictures were written, without the repetitions of the last one.

    Raises:
        SceneError: there were no pictures, or ffmpeg failed.
        MissingExtra: the extra `film` is not installed.
    """
    library = need_ffmpeg()
    # An unwritable path is noticed here rather than by ffmpeg, whose messages are long.
    path.touch()
    remaining = iter(pictures)
    first = next(remaining, None)
    if first is None:
        raise SceneError("there is nothing to film")
    height, width = (side - side % 2 for side in first.shape[:2])
    if form == ".gif":
        # The palette is chosen from the whole film in one pass: ffmpeg keeps the pictures, which are small, meanwhile.
        palette = "[0:v]split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
        options = {"codec": "gif", "pix_fmt_out": "pal8", "output_params": ["-filter_complex", palette, "-f", "gif"]}
    else:
        encoding = ["-f", "mp4", "-movflags", "+faststart", "-preset", "medium", "-crf", "20", "-threads", "1"]
        # The same pictures give the same bytes.
        no_metadata = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
        options = {"codec": "libx264", "pix_fmt_out": "yuv420p", "output_params": [*encoding, *no_metadata]}
    writer = library.write_frames(
        str(path), (width, height), fps=film.fps, quality=None, macro_block_size=1, ffmpeg_log_level="error", **options
    )
    count, last = 0, first
    try:
        writer.send(None)
        for picture in itertools.chain([first], remaining):
            last = np.ascontiguousarray(picture[:height, :width])
            writer.send(last)
            count += 1
        for _ in range(round(film.hold * film.fps)):
            writer.send(last)
        writer.close()
    except (OSError, RuntimeError) as error:
        writer.close()
        # The last line of ffmpeg's output.
        reason = str(error).strip().rpartition("\n")[2].strip() or type(error).__name__
        raise SceneError(f"the film could not be written ({reason})") from error
    return count
