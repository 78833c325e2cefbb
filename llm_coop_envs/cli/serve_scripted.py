"""`llm-coop serve-scripted`: a server that answers by script, for trying everything without a model."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm_coop_envs.cli.messages import fail, finite, note, sentences

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.testing.server import ScriptedServer

HANG = 2.0  # seconds of silence where a fault is a time-out; a real one would make trying things out tedious


@sentences
def serve_scripted_command(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    latency: Annotated[
        float, typer.Option("--latency", min=0, help="Seconds before each answer.", callback=finite)
    ] = 0.0,
    faults: Annotated[
        float, typer.Option("--faults", min=0, max=1, help="The share of requests that go wrong, in every way.")
    ] = 0.0,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="A kind of fault, such as rate_limit or half_body; may be given several times. (default: all that a "
            "client can repair by asking again)",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which requests go wrong.")] = 0,
    at_once: Annotated[
        int | None,
        typer.Option("--at-once", min=1, help="More requests than this are refused (429).", show_default=False),
    ] = None,
) -> None:
    """Serve scripted answers in OpenAI's format, on this machine. This is NOT a language model.

    It answers players whose model's name begins with 'scripted': their requests carry the question as data, and the
    answer is any legal one. Nothing that was played with it says anything about a model.
    Answers are streamed where a request asks for it. Ctrl-C ends it.
    """
    from llm_coop_envs.policies.llm.testing.faults import TRANSPORT, Faults
    from llm_coop_envs.util.extras import need

    need("aiohttp", "serving scripted answers", "openai")
    from llm_coop_envs.policies.llm.testing.answers import scripted_answer
    from llm_coop_envs.policies.llm.testing.server import ScriptedServer

    chosen = Faults.evenly(faults, tuple(kinds) if kinds else TRANSPORT, seed=seed, hang=HANG) if faults else Faults()
    server = ScriptedServer(scripted_answer, faults=chosen, latency=latency, at_once=at_once, host=host, port=port)
    try:
        asyncio.run(_serve(server))
    except OSError as error:
        fail(f"{host}, port {port}: {error.strerror or error}; choose another one with --port")
    except KeyboardInterrupt:
        pass
    note(f"Stopped after {sum(server.answered.values())} answers to {sum(server.asked.values())} requests.")


async def _serve(server: ScriptedServer) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    handlers: list[Any] = [signal.SIGINT, signal.SIGTERM]
    async with server:
        for signal_number in handlers:
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
                loop.add_signal_handler(signal_number, stopped.set)
        typer.echo(server.base_url)
        note("Scripted answers, no language model. In another terminal, for example:")
        note(f"  llm-coop run team_up --policy llm --model scripted --base-url {server.base_url}")
        note("Ctrl-C ends it.")
        await stopped.wait()
