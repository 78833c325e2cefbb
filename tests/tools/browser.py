"""A headless Chromium that tests look at pages with, over its DevTools protocol."""

import asyncio
import base64
import contextlib
import importlib.util
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

FRONT = Path(__file__).parents[2] / "llm_coop_envs" / "page" / "front"
CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


class Browser:
    """One tab."""

    def __init__(self, folder):
        import aiohttp

        profile = folder / "profile"
        profile.mkdir(parents=True)
        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self.events = []
        port = _until(lambda: _port(profile), "chromium does not start", 60)

        async def connect():
            self._session = aiohttp.ClientSession()
            async with self._session.get(f"http://127.0.0.1:{port}/json") as answer:
                targets = await answer.json()
            page = next(one for one in targets if one["type"] == "page")
            self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

        self._loop.run_until_complete(connect())
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """A method of the protocol; events that come meanwhile are kept."""
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), 60))

    async def _call(self, method, parameters):
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            found = json.loads((await self._socket.receive()).data)
            if found.get("id") == number:
                assert "error" not in found, found["error"]
                return found["result"]
            self.events.append(found)

    def run(self, script):
        """The value of a script in the page; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, address):
        """Go to an address; one that differs behind # alone changes the page that is there."""
        self.call("Page.navigate", url=address)

    def until(self, script, seconds=20):
        """Wait until a script is true of the page."""

        def look():
            with contextlib.suppress(AssertionError):  # it was on its way to another page
                return self.run(f"!!({script})")

        _until(look, lambda: f"{script}\n{self.text()[:800]}", seconds)

    def text(self):
        """What the page shows."""
        return self.run("document.body.innerText")

    def shows(self, text, seconds=20):
        """Wait until the page shows a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def press(self, key, shift=False):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 * shift, **more)

    def click(self, text, what="button, a, summary"):
        """Click the first thing that is called so."""
        found = f"[...document.querySelectorAll({json.dumps(what)})]"
        self.tap(f"{found}.find(e => e.innerText.trim() === {json.dumps(text)})")

    def tap(self, script):
        """Click what a script finds, as soon as it does."""
        click = "new MouseEvent('click', {bubbles: true, cancelable: true})"
        self.until(f"(found => found && (found.dispatchEvent({click}), true))({script})")

    def fill(self, label, value):
        """Write into the field with a label, or choose from it."""
        self.until(f"""(() => {{
            const labels = [...document.querySelectorAll('label')];
            const field = labels.find(e => e.innerText.startsWith({json.dumps(label)}))?.querySelector("input, select");
            if (!field) return false;
            field.value = {json.dumps(str(value))};
            if (field.value !== {json.dumps(str(value))}) return false;  // no such option yet
            field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", {{bubbles: true}}));
            return true;
        }})()""")

    def size(self, width, height=900, dark=False):
        """Another screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def picture(self, path):
        """Take a picture of the screen."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def asked(self):
        """The addresses that were asked for."""
        self.run("1")
        return [
            one["params"]["request"]["url"] for one in self.events if one.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """What the browser logged as errors, and what the page threw."""
        self.run("1")
        found = [one["params"]["entry"] for one in self.events if one.get("method") == "Log.entryAdded"]
        thrown = [one["params"] for one in self.events if one.get("method") == "Runtime.exceptionThrown"]
        return [one for one in found if one["level"] == "error"] + thrown

    def faults(self):
        """What axe finds that keeps people out: the name of each serious or critical fault, with the first place."""
        library = FRONT / "node_modules" / "axe-core" / "axe.min.js"
        if not library.is_file():
            found = importlib.util.find_spec("axe_core_python")
            if found is None:
                pytest.skip("axe-core is not installed")
            library = Path(found.submodule_search_locations[0]) / "axe.min.js"
        self.run(library.read_text(encoding="utf-8") + ";1")
        found = self.run("axe.run().then(found => found.violations)")
        assert self.run("axe.version")
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        return [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in serious]

    def close(self):
        """End the browser."""
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        self._loop.run_until_complete(self._session.close())
        self._loop.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _port(profile):
    with contextlib.suppress(OSError, IndexError):
        return (profile / "DevToolsActivePort").read_text().splitlines()[0]


def _until(look, why, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(why() if callable(why) else why)
