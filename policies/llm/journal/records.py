"""What a journal's lines say: every answer by the decision it belongs to, what was used, and what is damaged.

The lines of a part, by `type`:

    opened   a session began: `format`, `run` (a random name of this part), `versions`
    sent     an attempt is about to be sent: `key`, `hash`, `tokens` and `usd` at most
    failed   an attempt brought no answer: `error`; with `final` and `request`, the policy was told so
    answer   an answer: `request`, `reply`, and the `tokens` and `usd` that were counted; `from` names a cache,
             `form` how an answer of a JSON schema was asked for

`key` is [episode, agent, step, call, attempt], `hash` is `ChatRequest.digest()`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest, NotInJournal, RequestKey
from llm_coop_envs.policies.llm.journal.frames import Gap, JournalError, journal_files, read_commits
from llm_coop_envs.policies.llm.journal.questions import difference
from llm_coop_envs.policies.llm.totals import AnswerTotals
from llm_coop_envs.storage.fastjson import dumps, loads

FORMAT = 1
# In the table of answers an error is a JSON text, an answer an object.
_IS_ERROR = "substr(answers.found, 1, 1) = x'22'"
_TOGETHER = 256  # answers are put into the table at the same time
_MARKS = 1 << 23

_Pending = dict[tuple[Any, ...], list[tuple[int, float]]]


@dataclass(kw_only=True)
class PartReport(AnswerTotals):
    """What reading one part found.

    `answers` and `models` include answers from a cache, the other sums do not.

    Attributes:
        run: the part's random name; `None` if nothing could be read.
        cached: answers from a cache.
        errors: failed attempts by kind.
        calls: attempts that were sent.
        tokens: tokens counted against a budget: at most for attempts without an answer.
        usd: US dollars, likewise.
        lost: attempts that may have been paid for and brought no answer.
        lost_usd: US dollars for them at most.
        forms: by model, the last form in which an answer of a JSON schema was asked for.
        double: answers to a decision that another answer came first for.
    """

    path: Path
    run: str | None = None
    cached: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    lost: int = 0
    lost_usd: float = 0.0
    forms: dict[str, str] = field(default_factory=dict)
    double: int = 0
    gaps: list[Gap] = field(default_factory=list)

    @property
    def torn(self) -> Gap | None:
        """The commit that was cut short at the end, if there is one."""
        return self.gaps[-1] if self.gaps and self.gaps[-1].tail else None

    @property
    def damage(self) -> str | None:
        """What could not be read although something readable follows, and what can be saved; `None` if nothing."""
        gaps = [f"bytes {gap.start} to {gap.end} ({gap.reason})" for gap in self.gaps if not gap.tail]
        if not gaps:
            return None
        return (
            f"{self.path}: is damaged at {', '.join(gaps)}; {self.answers} answers before and after can be read. "
            "Restore the file from a copy, or keep the readable answers and ask the others again: "
            "llm-coop journal --salvage RUN"
        )

    def lose(self, tokens: int, usd: float) -> None:
        """Count an attempt that may have been paid for and brought no answer."""
        self.lost += 1
        self.lost_usd += usd
        self.tokens += tokens
        self.usd += usd


class Answers:
    """Every recorded answer of a run, whichever part holds it; and every error that a policy was told.

    They lie in a temporary file of SQLite's: in memory each would take a kilobyte or two, for as long as the run lasts.
    Only the latest are in memory, until there are enough of them to be worth a look at the file; and a megabyte of
    marks, because most questions are new and need not be looked up.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest: dict[RequestKey, tuple[str, bytes]] = {}
        self._marks = bytearray(_MARKS // 8)
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._execute("PRAGMA journal_mode=OFF")  # nothing is ever rolled back
        self._execute("PRAGMA locking_mode=EXCLUSIVE")
        # Answers are appended, and only the index, a few bytes each, is in the order of what they are looked up by.
        self._execute("CREATE TABLE answers (mark INTEGER, key BLOB, digest TEXT, found BLOB)")
        self._execute("CREATE INDEX places ON answers (mark)")

    def __del__(self) -> None:
        """Let go of the file."""
        self._table.close()

    def find(self, key: RequestKey, request: ChatRequest, digest: str) -> ChatReply | None:
        """The recorded answer, or `None` if there is none.

        Raises:
            ChatError: the record is an error that the policy was told.
            NotInJournal: the record answers another question; the message says in what they differ.
            JournalError: the temporary file cannot be used.
        """
        record = self._find_record(key)
        if record is None:
            return None
        if record[0] != digest:
            raise NotInJournal(
                f"{self._folder}: its journal answers another question under ({key}): "
                f"{difference(self._folder, key, request)}. The study, the prompts or the program have changed since; "
                "use what recorded it, or begin a new run folder"
            )
        outcome = loads(record[1])
        if isinstance(outcome, str):
            raise ChatError(outcome or "context too long", kind="context_too_long")
        return ChatReply.read(outcome)

    def add(self, key: RequestKey, digest: str, outcome: ChatReply | str) -> bool:
        """Keep an answer, or an error's sentence, unless this decision has an answer, and say whether it was kept."""
        record = self._find_record(key)
        if record is not None:
            if not _is_error(record[1]):
                return False
            self._forget(key)
        self._latest[key] = digest, dumps(outcome if isinstance(outcome, str) else outcome.plain())
        byte, bit = _mark(key)
        self._marks[byte] |= bit
        if len(self._latest) >= _TOGETHER:
            self._put_away()
        return True

    def forget_refusals(self) -> None:
        """Forget the errors that a policy was told and could not get round: they hang on the server, which may change.

        Where it went on with a shorter question that was answered, the error belongs to the run.
        """
        self._put_away()
        refused = [RequestKey(*loads(row[0])) for row in self._execute(f"SELECT key FROM answers WHERE {_IS_ERROR}")]
        answered = {key[:4]: -1 for key in refused}
        if refused:
            for (packed,) in self._execute(f"SELECT key FROM answers WHERE NOT {_IS_ERROR}"):
                key = tuple(loads(packed))
                if key[:4] in answered:
                    answered[key[:4]] = max(answered[key[:4]], key[4])
        for key in refused:
            if answered[key[:4]] < key[4]:
                self._forget(key)

    def _find_record(self, key: RequestKey) -> tuple[str, bytes] | None:
        """The digest of a decision's question, and the answer or error as JSON."""
        latest = self._latest.get(key)
        byte, bit = _mark(key)
        if latest is not None or not self._marks[byte] & bit:
            return latest
        row: tuple[str, bytes] | None = self._execute(
            "SELECT digest, found FROM answers WHERE mark = ? AND key = ?", hash(key), dumps(tuple(key))
        ).fetchone()
        return row

    def _forget(self, key: RequestKey) -> None:
        self._execute("DELETE FROM answers WHERE mark = ? AND key = ?", hash(key), dumps(tuple(key)))

    def _put_away(self) -> None:
        """Put the latest answers into the file."""
        self._execute("BEGIN")
        for key, (digest, outcome) in self._latest.items():
            self._execute("INSERT INTO answers VALUES (?, ?, ?, ?)", hash(key), dumps(tuple(key)), digest, outcome)
        self._execute("COMMIT")
        self._latest.clear()

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._table.execute(statement, values)
        except sqlite3.Error as error:
            raise JournalError(
                f"{self._folder}: its answers cannot be looked up in a temporary file ({error}); free some space where "
                "temporary files are kept (TMPDIR), then run again to continue"
            ) from error


def _mark(key: RequestKey) -> tuple[int, int]:
    """The byte and bit that are set once a decision has an answer; they may be set by another one."""
    number = hash(key) % _MARKS
    return number >> 3, 1 << (number & 7)


def _is_error(packed: bytes) -> bool:
    return packed.startswith(b'"')


def read_run(folder: Path, answers: Answers | None = None) -> list[PartReport]:
    """Read all parts of a run's journal: what was asked, answered, used, and what is damaged.

    `answers` gets what they hold.

    Raises:
        JournalError: a part cannot be opened, or a newer version wrote it.
        MissingExtra: a part is compressed in a way that cannot be read here.
    """
    answers = Answers(folder) if answers is None else answers
    return [read_part(path, answers) for path in journal_files(folder)]


def read_part(path: Path, answers: Answers) -> PartReport:
    """Read one part; see `read_run`."""
    report = PartReport(path=path)
    pending: _Pending = {}
    for commit in read_commits(path):
        if isinstance(commit, Gap):
            report.gaps.append(commit)
            continue
        try:
            for line in commit.lines():
                _take(line, report, answers, pending)
        except (KeyError, TypeError, ValueError) as error:
            report.gaps.append(Gap(commit.start, commit.end, False, f"holds an invalid line ({error!r})"))
    for unsettled in pending.values():
        for tokens, usd in unsettled:
            report.lose(tokens, usd)
    return report


def _take(line: Any, report: PartReport, answers: Answers, pending: _Pending) -> None:
    """Count one line."""
    kind = line["type"]
    if kind == "opened":
        if line["format"] > FORMAT:
            raise JournalError(
                f"{report.path}: was written in format {line['format']}, this version of llm-coop-envs reads {FORMAT}; "
                "use the version that wrote it"
            )
        report.run = report.run or line["run"]
        return
    name = tuple(line["key"])
    if kind == "sent":
        report.calls += 1
        pending.setdefault(name, []).append((line["tokens"], line["usd"]))
        return
    # Attempts at one decision follow each other; one that is over is the latest. Earlier ones still pending belong
    # to sessions that were killed.
    unsettled = pending.get(name)
    reserved = unsettled.pop() if unsettled else (0, 0.0)
    key = RequestKey(*name)
    if kind == "failed":
        error = line["error"]
        report.errors[error["kind"]] += 1
        if error["maybe_paid"]:
            report.lose(*reserved)
        if line.get("final"):
            answers.add(key, line["hash"], error["message"])
    elif kind == "answer":
        reply = ChatReply.read(line["reply"])
        if "form" in line:
            report.forms[line["request"]["model"]] = line["form"]
        report.tokens += line["tokens"]
        report.usd += line["usd"]
        if "from" in line:
            report.answers += 1
            report.cached += 1
            report.models[reply.model] += 1
        else:
            report.add(reply)
        report.double += not answers.add(key, line["hash"], reply)
    else:
        raise ValueError(f"type {kind!r}")
