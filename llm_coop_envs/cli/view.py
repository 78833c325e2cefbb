"""`llm-coop view`: a page to watch, read and steer runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm_coop_envs.cli.messages import fail, note, sentences
from llm_coop_envs.cli.trusting import reads_runs

if TYPE_CHECKING:
    from llm_coop_envs.page.server import PageServer


@sentences
@reads_runs
def view_command(
    runs: Annotated[Path, typer.Argument(help="A folder of runs, or one run.")] = Path("runs"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Watch, read and steer runs on a page in the browser; nobody but you and this machine can see it."""
    from llm_coop_envs.util.extras import need

    need("aiohttp", "opening the page", "view")
    from llm_coop_envs.page.server import PageServer
    from llm_coop_envs.storage.parquet import need_arrow

    need_arrow()
    view = PageServer(runs.expanduser())
    try:
        asyncio.run(_serve(view, port, browser))
    except OSError as error:
        fail(f"port {port}: {error.strerror or error}; choose another one with --port, or leave it out")
    except KeyboardInterrupt:
        pass


async def _serve(view: PageServer, port: int, browser: bool) -> None:
    stopped = asyncio.Event()
    handlers: list[Any] = [signal.SIGINT, signal.SIGTERM]
    async with view.serving(port) as address:
        for signal_number in handlers:
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
                asyncio.get_running_loop().add_signal_handler(signal_number, stopped.set)
        if hasattr(os, "nice"):
            os.nice(5)  # runs come first
        typer.echo(address)
        if browser and not await asyncio.to_thread(_open_page, view.ticket()):
            note("No browser could be opened; open the address above in one.")
        note("Ctrl-C ends it; runs go on.")
        await stopped.wait()


def _open_page(address: str) -> bool:
    with contextlib.suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False
