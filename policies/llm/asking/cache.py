"""An optional cache of answers that several runs share.

At temperature 0 identical requests share an answer. At other temperatures an answer is a sample, and the players of a
run must not get each other's samples. There a sample index has to be given, and runs share an answer only for the same
decision (episode, agent, step, call, attempt) and the same sample index.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.util.checks import check_int
from llm_coop_envs.util.fastjson import dumps, loads
from llm_coop_envs.util.paths import StrPath

FILE = "answers.sqlite3"
_TABLE = "CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, request BLOB, reply BLOB) WITHOUT ROWID"


class CacheError(LlmCoopError, RuntimeError):
    """A folder of cached answers cannot be used."""


class Cache:
    """Answers in a folder, shared by the runs and processes of one machine.

    Every method may raise `CacheError`.

    Args:
        folder: the cache's folder; created if missing.
        sample: which sample of each decision this run takes, from 0; `None` shares answers at temperature 0 only.

    Raises:
        CacheError: the folder cannot be used.
        SettingsError: the sample index is negative.
    """

    def __init__(self, folder: StrPath, sample: int | None = None) -> None:
        self.sample = sample
        if sample is not None:
            check_int(self, "sample", 0)
        folder = Path(folder)
        self._path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self._path, timeout=30.0, isolation_level=None)
            # An answer that a crash loses here is still in its run's journal.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise self._error(error) from error

    def get(self, endpoint: Endpoint, key: RequestKey, request: ChatRequest, digest: str) -> ChatReply | None:
        """Look up the shared answer to a request; `None` if there is none or the request must not share one."""
        name = self._name(endpoint, key, request, digest)
        if name is None:
            return None
        try:
            row = self._database.execute("SELECT reply FROM answers WHERE name = ?", (name,)).fetchone()
            return None if row is None else ChatReply.read(loads(row[0]))
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise self._error(error) from error

    def store(self, endpoint: Endpoint, key: RequestKey, request: ChatRequest, digest: str, reply: ChatReply) -> None:
        """Store an answer, if its request may share one. Refusals are not stored."""
        name = self._name(endpoint, key, request, digest)
        if name is None or reply.refusal is not None or reply.finish_reason == "content_filter":
            return
        try:
            self._database.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)",
                (name, dumps(request.plain()), dumps(reply.plain())),
            )
        except sqlite3.Error as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Close the file; may be called any number of times."""
        self._database.close()

    def _name(self, endpoint: Endpoint, key: RequestKey, request: ChatRequest, digest: str) -> str | None:
        """The name under which an answer is stored; `None` if it must not be shared."""
        parts: list[object] = [endpoint.where, endpoint.name, digest]
        if request.temperature != 0:
            if self.sample is None:
                return None
            parts += [key.episode, key.agent, key.step, key.call, key.attempt]
        parts.append(self.sample or 0)
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    def _error(self, error: Exception) -> CacheError:
        return CacheError(f"{self._path}: cannot be used ({error}); delete it, or leave out --cache")
