"""A page's server in a thread, for tests."""

import asyncio
import contextlib
import threading

from llm_coop_envs.page.server import PageServer


@contextlib.contextmanager
def viewed(folder):
    """Serve a folder of runs; yields the server and the page's address."""
    view = PageServer(folder)
    found, begun = {}, threading.Event()

    async def serve():
        over = asyncio.Event()
        found["over"] = asyncio.get_running_loop(), over
        async with view.serving() as address:
            found["address"] = address
            begun.set()
            await over.wait()

    def run():
        try:
            asyncio.run(serve())
        finally:
            begun.set()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait(30)
    try:
        yield view, found["address"]
    finally:
        loop, over = found["over"]
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
