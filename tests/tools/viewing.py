"""A page's server in a thread, for tests."""

import asyncio
import contextlib
import http.client
import json
import threading

from llm_coop_envs.page.server import PageServer

READY = "!document.body.innerText.includes('Loading') && !document.body.innerText.includes('Looking for')"


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


class Asking:
    """Asks a server as a browser, or somebody else, would."""

    def __init__(self, view, address):
        self.view = view
        self.host = address.split("/")[2]

    def send(self, path, method="GET", body=None, token=True, **headers):
        talk = http.client.HTTPConnection(self.host, timeout=30)
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if token:
            headers["Cookie"] = f"llm-coop-{self.host.split(':')[1]}={self.view.token if token is True else token}"
        talk.request(method, path, body=body, headers=headers)
        answer = talk.getresponse()
        found = answer.status, dict(answer.getheaders()), b"" if path == "/api/live" else answer.read()
        talk.close()
        return found

    def get(self, question, **more):
        status, _, body = self.send(f"/api/{question}", **more)
        return status, json.loads(body)

    def order(self, content, **more):
        headers = {"Origin": f"http://{self.host}", "Sec_Fetch_Site": "same-origin", **more}
        status, _, body = self.send("/api/control", "POST", json.dumps(content), **headers)
        return status, json.loads(body)


@contextlib.contextmanager
def looked_at(browser, folder):
    """A page's server, which the browser has left, and asks nothing of, when it ends."""
    with viewed(folder) as found:
        yield found
        browser.open("about:blank")


def opened(browser, page, route):
    browser.open(f"{page}#/{route}")
    browser.until(f"location.hash === {json.dumps('#/' + route)}")
    browser.until(f"document.querySelector('h1') && {READY}")


def usable(browser):
    """Nothing sticks out sideways, and axe finds nothing serious."""
    browser.until("document.documentElement.scrollWidth <= innerWidth")  # charts follow a new width a moment later
    assert browser.faults() == []
