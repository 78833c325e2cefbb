"""Write a journal: every answer is on the disk before it is used.

Nothing that was written is ever changed. A commit that was cut short is moved aside when the part is next opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import platform
import re
import secrets
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.journal.frames import (
    FOLDER,
    JournalError,
    default_suffix,
    journal_files,
    packer,
    suffix_of,
)
from llm_coop_envs.policies.llm.journal.group_commit import GroupCommit
from llm_coop_envs.policies.llm.journal.lock import open_part
from llm_coop_envs.policies.llm.journal.records import FORMAT, Answers, PartReport, read_part, read_run
from llm_coop_envs.policies.llm.journal.repair import cut_back
from llm_coop_envs.storage.lease import HEARTBEAT
from llm_coop_envs.storage.machine import HERE, Machine
from llm_coop_envs.util.fastjson import dumps
from llm_coop_envs.util.paths import StrPath

MAIN = "main"  # the part of a process that plays a run alone
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LIBRARIES = ("openai", "litellm", "aiohttp")


class Journal:
    """One part of a run's journal, open for writing. It finds the answers of all parts.

    Args:
        folder: the run's folder.
        part: the part's name.
        machine: where this process runs.

    Attributes:
        answers: all answers of the run.
        path: this part's file.
        part: this part's name.
        run: this part's random name.
        report: this part's content when it was opened.
        others: the content of the other parts at that time, by name.
        notes: sentences about repairs and anything odd.

    Raises:
        JournalError: another process writes this part, or a file is damaged or cannot be written.
        SettingsError: the part's name cannot be a file's name.
    """

    def __init__(self, folder: StrPath, part: str = MAIN, machine: Machine = HERE) -> None:
        check_part(part)
        folder = Path(folder)
        self.answers = Answers(folder)
        self.part = part
        self.machine = machine
        self.others: dict[str, PartReport] = {}
        self.notes: list[str] = []
        self._heart: asyncio.Task[None] | None = None
        self._closed = False
        own = (path for path in journal_files(folder, machine) if path.name.split(".", 1)[0] == part)
        self.path = next(own, folder / FOLDER / f"{part}{default_suffix()}")
        with contextlib.ExitStack() as opened:
            descriptor, self._lock = opened.enter_context(open_part(self.path, machine))
            self.report = self._read(folder, descriptor)
            self.run = self.report.run or secrets.token_hex(8)
            pack = packer(suffix_of(self.path))
            self._commits = GroupCommit(self.path, descriptor, pack, self._lock.holds, machine)
            opened.callback(self._commits.close)
            self._commits.write_now(dumps(opening_line(self.run, part)) + b"\n")
            self._opened = opened.pop_all()

    async def record_attempt(self, key: RequestKey, digest: str, *, tokens: int, usd: float) -> None:
        """Record that an attempt is about to be sent, with the most it may use.

        Returns when the record survives the death of this process, without waiting for the disk.
        """
        await self._commits.append(self._line("sent", key, digest, {"tokens": tokens, "usd": usd}), sync=False)

    async def record_answer(
        self,
        key: RequestKey,
        request: ChatRequest,
        digest: str,
        reply: ChatReply,
        *,
        tokens: int,
        usd: float,
        source: str | None = None,
        form: str | None = None,
        claim: int = 0,
    ) -> None:
        """Record an answer and wait until it is on the disk.

        Args:
            key: the decision.
            request: the question.
            digest: the question's hash.
            reply: the answer.
            tokens: tokens counted against the budget.
            usd: US dollars counted against the budget.
            source: `"cache"` if no model was asked, `"part"` if another part of the run asked it.
            form: the form in which an answer of a JSON schema was requested.
            claim: the number of this part's claim on the episode; 0 where none was ever disputed.
        """
        fields: dict[str, Any] = {"tokens": tokens, "usd": usd}
        if source is not None:
            fields["from"] = source
        if form is not None:
            fields["form"] = form
        if claim:
            fields["claim"] = claim
        packed = dumps(reply.plain())
        await self._commits.append(self._line("answer", key, digest, fields, packed, request), sync=True)
        self.answers.add(key, digest, packed, claim)

    async def record_failure(
        self, key: RequestKey, request: ChatRequest, digest: str, error: ChatError, *, final: bool
    ) -> None:
        """Record a failed attempt; if the policy gets the error (`final`), wait until the record is on the disk."""
        failure = {"kind": error.kind, "status": error.status, "maybe_paid": error.maybe_paid, "message": str(error)}
        if not final:
            self._commits.add(self._line("failed", key, digest, {"error": failure}))
            return
        line = self._line("failed", key, digest, {"error": failure, "final": True}, request=request)
        await self._commits.append(line, sync=True)
        self.answers.add(key, digest, dumps(str(error)))

    async def close(self) -> None:
        """Write what is pending and release the part; may be called any number of times."""
        if self._closed:
            return
        self._closed = True
        if self._heart is not None:
            self._heart.cancel()
        with self._opened:
            await self._commits.flush()

    def _read(self, folder: Path, descriptor: int) -> PartReport:
        """Read all parts; move aside a commit of this part that was cut short. No answer in it was ever used."""
        reports = read_run(folder, self.answers, self.machine)
        if all(report.path != self.path for report in reports):  # made on another machine, and shown late
            reports.append(read_part(self.path, self.answers, self.machine))
        for report in reports:
            if report.damage is not None:
                raise JournalError(report.damage)
            self._make_durable(report.path)
            if report.path != self.path:
                self.others[report.path.name.split(".", 1)[0]] = report
        self.answers.forget_refusals()
        own = next(report for report in reports if report.path == self.path)
        if own.torn is not None:
            aside = cut_back(self.path, descriptor, own.torn, self.machine)
            self.notes.append(
                f"{self.path}: the last commit was cut short ({own.torn.size} bytes); it was moved to {aside.name}, "
                "and what it held is asked again"
            )
        if own.lost:
            self.notes.append(
                f"{self.path}: {own.lost} attempts of earlier sessions brought no answer and may have been paid for "
                f"(${own.lost_usd:.4f} at most)"
            )
        if self._lock.took_over is not None:
            self.notes.append(f"{self.path}: was taken over: {self._lock.took_over}")
        return own

    def _make_durable(self, path: Path) -> None:
        """Put what was read on the disk: a session that was killed may not have, and it is about to be used."""
        with contextlib.suppress(OSError):  # a part of another user, say
            descriptor = self.machine.open(path)
            try:
                self.machine.sync(descriptor)
            finally:
                self.machine.close(descriptor)

    def _line(
        self,
        kind: str,
        key: RequestKey,
        digest: str,
        fields: dict[str, Any],
        reply: bytes | None = None,
        request: ChatRequest | None = None,
    ) -> bytes:
        """Make a line, with an answer as JSON and its question; the first one starts the heartbeat."""
        if self._closed:
            raise JournalError(f"{self.path}: is closed")
        if self._heart is None:
            self._heart = asyncio.get_running_loop().create_task(self._beats())
        line = dumps({"type": kind, "key": [*key], "hash": digest, "time": _now(), **fields})
        if request is None:
            return line + b"\n"
        if reply is None:
            return b'%b,"request":%b}\n' % (line[:-1], request.packed())
        return b'%b,"reply":%b,"request":%b}\n' % (line[:-1], reply, request.packed())

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            with contextlib.suppress(OSError):
                if not self._lock.beat():
                    self._commits.fail(f"{self.path}: another process took this part over; end this run")


def check_part(part: str) -> None:
    """Check that a part's name can be a file's name.

    Raises:
        SettingsError: it cannot.
    """
    if not PART.fullmatch(part):
        raise SettingsError("part", part, "must be letters, digits, '-' and '_', at most 100")


def opening_line(run: str, part: str) -> dict[str, Any]:
    """Make the line with which a session begins."""
    return {"type": "opened", "format": FORMAT, "run": run, "part": part, "time": _now(), "versions": _versions()}


@functools.cache
def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"llm-coop-envs": None, "python": platform.python_version()}
    for name in ("llm-coop-envs", *_LIBRARIES):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _now() -> float:
    return round(time.time(), 3)
