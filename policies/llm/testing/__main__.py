"""Run the scripted server: `python -m llm_coop_envs.policies.llm.testing`. It is not a language model."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, digest_answer


async def serve(server: ScriptedServer) -> None:
    """Serve until cancelled; the first line printed is the base URL."""
    async with server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Parse the arguments and serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument(
        "--prompts", action="store_true", help="answer the questions of players whose model is called 'scripted'"
    )
    parser.add_argument("--remember", type=int, default=0, help="so many answers are kept ready, for measuring clients")
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that go wrong")
    parser.add_argument("--seed", type=int, default=0, help="which requests go wrong")
    arguments = parser.parse_args()
    faults = Faults.evenly(arguments.faults, seed=arguments.seed) if arguments.faults else Faults()
    with contextlib.suppress(KeyboardInterrupt):
        server = ScriptedServer(
            scripted_answer if arguments.prompts else digest_answer,
            port=arguments.port,
            latency=arguments.latency,
            faults=faults,
            remember=arguments.remember,
        )
        asyncio.run(serve(server))


if __name__ == "__main__":
    main()
