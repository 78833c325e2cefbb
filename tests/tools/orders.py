"""Runs in a thread of their own, which are looked at and steered meanwhile."""

import contextlib
import threading
import time

from llm_coop_envs.runs.control import order


@contextlib.contextmanager
def in_background(work):
    """Run something in a thread; what it returned or raised is there after the block."""
    found = {}

    def run():
        try:
            found["value"] = work()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        thread.join(60)
    assert not thread.is_alive()


def until(found, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def status(folder):
    return order(folder, {"do": "status"}).get("main")
