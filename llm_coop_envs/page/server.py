"""The page's server: on this machine alone, for who knows the token, for pages of its own origin.

What is refused: hosts other than 127.0.0.1 and localhost (DNS rebinding), requests that another site made
(`Sec-Fetch-Site`, `Origin`), anything without the token. Names in requests are looked up (`known_runs`), never joined
to paths. The page itself may load nothing from elsewhere (content security policy).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.page.agents import integer
from llm_coop_envs.page.answers import RunAnswers
from llm_coop_envs.page.episode_table import list_episodes
from llm_coop_envs.page.episodes import Episodes, Indexing
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.page.labels import check_labels, write_labels
from llm_coop_envs.page.written_report import find_file, report_address
from llm_coop_envs.runs.control import order
from llm_coop_envs.util.keys import scrub
from llm_coop_envs.util.opening import read_file

STATIC = Path(__file__).with_name("static")
TICK_SECONDS = 1.0
QUIET_SECONDS = 5.0
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_ORDERS = ("pause", "resume", "stop", "limit")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

#: A report may have been written by somebody else: nothing in it runs or loads, and it has no window but its own.
_REPORT_POLICY = (
    "sandbox allow-same-origin allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Questions:
    """What the page may ask, by name: functions of the query that return plain data."""

    def __init__(self, known_runs: KnownRuns, episodes: Episodes) -> None:
        self.known = known_runs
        self.episodes = episodes
        self.answers = RunAnswers()

    def answer(self, name: str, query: Mapping[str, str]) -> Any:
        """The answer to a question.

        Raises:
            LlmCoopError: there is no such question, or no answer.
            Indexing: it is being read.
        """
        known_runs, episodes = self.known, self.episodes
        run = query.get("run", "")
        if name == "runs":
            return self.runs()
        if name == "run":
            detail = known_runs.detail(run)
            return {**detail, "report": report_address(run, known_runs.run(run).folder)}
        if name == "episodes":
            return list_episodes(known_runs, episodes, query)
        if name == "answers":
            return self.answers.cards(known_runs.run(run))
        if name == "versus":
            return self.answers.versus(known_runs.run(run), known_runs.run(query.get("other", "")))
        if name == "call":
            return episodes.call(run, integer(query, "number"))
        address = run, query.get("condition", ""), integer(query, "seed")
        if name == "episode":
            return episodes.summarise(*address)
        if name == "course":
            return episodes.course(*address)
        if name == "frames":
            return episodes.frames(*address, integer(query, "first", 0), min(integer(query, "most", 100), 2000))
        if name == "agents":
            return episodes.agents(*address, query)
        if name == "story":
            return episodes.story(*address, integer(query, "number"))
        if name == "sight":
            return episodes.sight(*address, integer(query, "place"), integer(query, "number"))
        raise RunError(f"{name!r}: the page cannot be asked that")

    def runs(self) -> list[dict[str, Any]]:
        """All runs, each with how far what is read of it for the first time has been read."""
        runs = self.known.runs()
        for run in runs:
            with contextlib.suppress(LlmCoopError):
                run["reading"] = {} if "problem" in run else self.episodes.reading(self.known.run(run["run"]))
        return runs


# What is no request at all (an address of 20,000 characters, say) is answered with 400, and not told with a traceback.
_SILENT = logging.getLogger(f"{__name__}.requests")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class PageServer:
    """The server.

    Args:
        folder: a run, or a folder of runs.

    Attributes:
        token: what a request must know.
    """

    def __init__(self, folder: Path) -> None:
        known_runs = KnownRuns(folder)
        self.questions = Questions(known_runs, Episodes(known_runs))
        self.token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()
        self._port = 0
        self._runs = ""  # nobody looked yet
        self._ticking: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._watching = 0
        self._files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str]:
        """Serve as long as the block lasts.

        Yields:
            The page's address, with the token.

        Raises:
            OSError: the port cannot be used.
        """
        app = web.Application(middlewares=[self._guarded], client_max_size=1 << 16)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/{file:[a-z0-9.-]+}", self._file),
                web.get("/api/live", self._live),
                web.get("/api/{name:[a-z]+}", self._answer),
                web.get("/report/{key:[0-9a-f]{16}}/{file:[A-Za-z0-9_./-]+}", self._report),
                web.post("/api/control", self._control),
                web.post("/api/notes", self._notes),
            ]
        )
        runner = web.AppRunner(app, access_log=None, logger=_SILENT, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            self._port = runner.addresses[0][1]
            yield f"http://127.0.0.1:{self._port}/?token={self.token}"
        finally:
            if self._ticking is not None:
                self._ticking.cancel()
            await runner.cleanup()
            self.questions.episodes.close()

    def ticket(self) -> str:
        """An address that opens the page once: others on this machine see what a browser is started with."""
        ticket = secrets.token_urlsafe(32)
        self._tickets.add(ticket)
        return f"http://127.0.0.1:{self._port}/?ticket={ticket}"

    @property
    def _cookie(self) -> str:
        return f"llm-coop-{self._port}"  # cookies do not tell ports apart

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            response = await handler(request)
        except _Refused as refused:
            if request.path == "/":  # who opened a kept address is told in words
                response = web.Response(text=str(refused), status=403)
            else:
                response = web.json_response({"error": str(refused)}, status=403)
        except web.HTTPException as error:
            response = web.json_response({"error": error.reason}, status=error.status)
        except Indexing as reading:
            response = web.json_response({"reading": str(reading)}, status=202)
        except LlmCoopError as error:
            response = web.json_response({"error": scrub(str(error))}, status=409)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            # A mistake of ours, or a file that changed under our hands: the rest goes on.
            traceback.print_exc(file=sys.stderr)
            response = web.json_response({"error": scrub(f"{type(error).__name__}: {error}")}, status=500)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def _check(self, request: web.Request) -> None:
        """Refuse whoever is not this server's own page.

        Raises:
            _Refused: it is somebody else.
        """
        hosts = {f"127.0.0.1:{self._port}", f"localhost:{self._port}"}
        if request.headers.get("Host") not in hosts:
            raise _Refused("this page is served to 127.0.0.1 alone")
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            raise _Refused("another site asked")
        site = request.headers.get("Sec-Fetch-Site", "none")
        if site != "same-origin" and not (site == "none" and request.method == "GET"):
            raise _Refused("another site asked")
        if request.method == "POST" and origin is None:
            raise _Refused("a page of this server must ask")
        if request.path == "/" and ("token" in request.query or "ticket" in request.query):
            return
        token = request.cookies.get(self._cookie) or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not _same(token, self.token):
            raise _Refused("the token is missing; open the address that 'llm-coop view' printed")

    async def _page(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if "token" in query or "ticket" in query:
            ticket = next((issued for issued in self._tickets if _same(query.get("ticket", ""), issued)), None)
            if ticket is None and not _same(query.get("token", ""), self.token):
                raise _Refused("the token is another one; open the address that 'llm-coop view' printed")
            self._tickets.discard(ticket or "")
            # Without the token in the address it gets into no history, picture or link.
            response = web.Response(status=303, headers={"Location": "/"})
            response.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict", path="/")
            return response
        return self._static_file("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return self._static_file(request.match_info["file"])

    def _static_file(self, name: str) -> web.Response:
        if name not in self._files:
            raise web.HTTPNotFound(reason="there is no such file")
        return web.Response(body=self._files[name], content_type=_TYPES[Path(name).suffix], charset="utf-8")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        answer = await asyncio.to_thread(self.questions.answer, request.match_info["name"], request.query)
        return web.Response(text=json.dumps(answer), content_type="application/json")

    async def _report(self, request: web.Request) -> web.StreamResponse:
        """A file of a run's report, looked up among those that are there."""
        path = await asyncio.to_thread(
            find_file, self.questions.known, request.match_info["key"], request.match_info["file"]
        )
        if path is None:
            raise web.HTTPNotFound(reason="there is no such report (any more); write it with 'llm-coop report'")
        content = await asyncio.to_thread(read_file, path)
        if path.suffix == ".html":
            headers = {"Content-Security-Policy": _REPORT_POLICY}
            return web.Response(body=content, content_type="text/html", charset="utf-8", headers=headers)
        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)

    async def _notes(self, request: web.Request) -> web.StreamResponse:
        """Keep the tags and the note that a person gave a run."""
        try:
            body = await request.json()
            name, labels = str(body["run"]), check_labels(body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(f"those are no notes ({error}); give run, tags and note") from error
        return web.json_response(await asyncio.to_thread(write_labels, self._folder_of(name), labels))

    def _folder_of(self, name: str) -> Path:
        folder = self.questions.known.folders().get(name)
        if folder is None:
            raise RunError(f"{name}: there is no such run (any more)")
        return folder

    async def _control(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
            what = {"do": body["do"], "most": body.get("most")}
            if what["do"] not in _ORDERS:
                raise KeyError(what["do"])
            name = str(body["run"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(f"that is no order ({error}); there are {', '.join(_ORDERS)}") from error
        answers = await asyncio.to_thread(order, self._folder_of(name), what)
        if not answers:
            raise RunError(f"{name}: nobody plays it now on this machine")
        return web.json_response({"parts": len(answers)})

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: all runs, whenever something changed."""
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        self._watching += 1
        sent = ""
        try:
            while True:
                if self._runs != sent:
                    sent = self._runs
                    await response.write(f"event: runs\ndata: {sent}\n\n".encode())
                with contextlib.suppress(asyncio.TimeoutError):
                    async with self._changed:
                        await asyncio.wait_for(self._changed.wait(), QUIET_SECONDS)
                        continue
                await response.write(b": still here\n\n")
        except (ConnectionError, RuntimeError):
            return response
        finally:
            self._watching -= 1

    async def _tick(self) -> None:
        """Look what the runs do, as long as somebody watches."""
        while True:
            if self._watching:
                try:
                    runs = json.dumps(await asyncio.to_thread(self.questions.runs))
                except Exception as error:  # the folder is gone, say: the next look may find it
                    runs = json.dumps([{"run": "", "state": "unreadable", "problem": scrub(str(error))}])
                if runs != self._runs:
                    self._runs = runs
                    async with self._changed:
                        self._changed.notify_all()
            await asyncio.sleep(TICK_SECONDS)


class _Refused(Exception):
    """A request is none of the page's own."""


def _same(candidate: str, secret: str) -> bool:
    return hmac.compare_digest(candidate.encode("utf-8", "replace"), secret.encode())
