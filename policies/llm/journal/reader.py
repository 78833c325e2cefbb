"""Reading a journal: every answer by the decision it belongs to, what was used, and what is damaged.

The lines of a part, by `type`:

    opened   a session began: `format`, `run` (a random name of this part), `versions`
    sent     an attempt is about to be sent: `key`, `hash`, `tokens` and `usd` at most
    failed   an attempt brought no answer: `error`; with `final` and `request`, the policy was told so
    answer   an answer: `request`, `reply`, and the `tokens` and `usd` that were counted; `from` names a cache

`key` is [episode, agent, step, call, attempt], `hash` is `ChatRequest.digest()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, NotInJournal, RequestKey, Usage
from llm_coop_envs.policies.llm.fastjson import loads
from llm_coop_envs.policies.llm.journal.errors import JournalError
from llm_coop_envs.policies.llm.journal.frames import GZIP, ZSTD, Frame, Gap, read_frames, suffix_of

FORMAT = 1
FOLDER = "journal"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a question led to: an answer, or an error that the policy was told.

    Attributes:
        digest: the question's hash.
        reply: the answer.
        error: the error's sentence, where there is no answer.
    """

    digest: str
    reply: ChatReply | None
    error: str | None = None


@dataclass
class PartReport:
    """What reading one part found.

    Attributes:
        path: its file.
        run: the part's random name; `None` if nothing could be read.
        answers: answers in it, those from a cache included.
        cached: those from a cache.
        models: answers by the model that the provider reported.
        prompt_tokens: tokens of the answered questions.
        completion_tokens: tokens of the answers.
        estimated: answers whose tokens the provider did not state.
        cost: US dollars for the answers whose price was known.
        unpriced: answers whose price was not known.
        errors: failed attempts by kind.
        calls: attempts that were sent.
        tokens: tokens counted against a budget: at most for attempts without an answer.
        usd: US dollars, likewise.
        lost: attempts that may have been paid for and brought no answer.
        lost_usd: US dollars for them at most.
        double: answers to a decision that another answer came first for.
        end: the first byte after the last readable commit.
        gaps: what could not be read.
    """

    path: Path
    run: str | None = None
    answers: int = 0
    cached: int = 0
    models: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0
    cost: float = 0.0
    unpriced: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    lost: int = 0
    lost_usd: float = 0.0
    double: int = 0
    end: int = 0
    gaps: list[Gap] = field(default_factory=list)

    @property
    def torn(self) -> Gap | None:
        """The commit that was cut short at the end, if there is one."""
        return self.gaps[-1] if self.gaps and self.gaps[-1].tail else None

    @property
    def damage(self) -> list[Gap]:
        """What could not be read although something readable follows."""
        return [gap for gap in self.gaps if not gap.tail]


class Answers:
    """Every recorded answer of a run, whichever part holds it."""

    def __init__(self) -> None:
        self._recorded: dict[RequestKey, Recorded] = {}

    def __len__(self) -> int:
        """How many decisions have a record."""
        return len(self._recorded)

    def find(self, key: RequestKey, digest: str) -> ChatReply | None:
        """The recorded answer, or `None`.

        Args:
            key: which decision.
            digest: the question's hash.

        Raises:
            ChatError: the record is an error that the policy was told.
            NotInJournal: the record answers another question.
        """
        recorded = self._recorded.get(key)
        if recorded is None:
            return None
        if recorded.digest != digest:
            raise NotInJournal(f"another question is recorded under ({key})")
        if recorded.reply is None:
            raise ChatError(recorded.error or "context too long", kind="context_too_long")
        return recorded.reply

    def add(self, key: RequestKey, recorded: Recorded) -> bool:
        """Keep a record, unless there is one for this decision; the first one counts.

        Returns:
            Whether it was kept.
        """
        return self._recorded.setdefault(key, recorded) is recorded


def journal_files(folder: Path) -> list[Path]:
    """The parts of a run's journal, in order of their names."""
    return sorted(path for path in (folder / FOLDER).glob("*.jsonl.*") if path.name.endswith((ZSTD, GZIP)))


def read_part(path: Path, answers: Answers) -> PartReport:
    """Read one part.

    Args:
        path: its file.
        answers: gets what it holds.

    Raises:
        JournalError: it cannot be opened, or a newer version wrote it.
        MissingExtra: it is compressed in a way that cannot be read here.
    """
    report = PartReport(path)
    pending: dict[tuple[Any, ...], list[tuple[int, float]]] = {}
    try:
        with path.open("rb") as file:
            for found in read_frames(file, suffix_of(path)):
                if isinstance(found, Gap):
                    report.gaps.append(found)
                    continue
                try:
                    for line in lines_of(found):
                        _take(line, report, answers, pending)
                except (KeyError, TypeError, ValueError) as error:
                    report.gaps.append(Gap(found.start, found.end, False, f"holds a line that is none ({error!r})"))
                report.end = found.end
    except OSError as error:
        raise JournalError(f"{path}: cannot be read ({error.strerror or error}); check the disk and rights") from error
    for unsettled in pending.values():
        for tokens, usd in unsettled:
            _lose(report, tokens, usd)
    return report


def read_run(folder: Path, answers: Answers | None = None) -> list[PartReport]:
    """Read all parts of a run's journal: what was asked, answered, used, and what is damaged.

    Raises:
        JournalError: a part cannot be opened, or a newer version wrote it.
        MissingExtra: a part is compressed in a way that cannot be read here.
    """
    answers = Answers() if answers is None else answers
    return [read_part(path, answers) for path in journal_files(folder)]


def lines_of(frame: Frame) -> Iterable[Any]:
    """The lines of a commit as data.

    Raises:
        ValueError: one is no JSON.
    """
    for line in frame.data.splitlines():
        yield loads(line)


def plain_reply(reply: ChatReply) -> dict[str, Any]:
    """An answer as JSON data; fields without a value are left out."""
    usage = reply.usage
    tokens: dict[str, Any] = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
    if usage.reasoning_tokens:
        tokens["reasoning"] = usage.reasoning_tokens
    if usage.cached_tokens:
        tokens["cached"] = usage.cached_tokens
    if usage.estimated:
        tokens["estimated"] = True
    found: dict[str, Any] = {
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "latency": reply.latency,
        "usage": tokens,
    }
    for name in ("cost", "refusal", "reasoning"):
        value = getattr(reply, name)
        if value is not None:
            found[name] = value
    return found


def reply_of(data: Mapping[str, Any]) -> ChatReply:
    """An answer from JSON data.

    Raises:
        KeyError: a field is missing.
    """
    tokens = data["usage"]
    return ChatReply(
        text=data["text"],
        usage=Usage(
            tokens["prompt"],
            tokens["completion"],
            tokens.get("reasoning", 0),
            tokens.get("cached", 0),
            tokens.get("estimated", False),
        ),
        finish_reason=data["finish_reason"],
        model=data["model"],
        latency=data["latency"],
        cost=data.get("cost"),
        refusal=data.get("refusal"),
        reasoning=data.get("reasoning"),
    )


def _take(
    line: Any, report: PartReport, answers: Answers, pending: dict[tuple[Any, ...], list[tuple[int, float]]]
) -> None:
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
    tokens, usd = unsettled.pop() if unsettled else (0, 0.0)
    key = RequestKey(*name)
    if kind == "failed":
        report.errors[line["error"]["kind"]] += 1
        if line["error"]["maybe_paid"]:
            _lose(report, tokens, usd)
        if line.get("final"):
            answers.add(key, Recorded(line["hash"], None, line["error"]["message"]))
    elif kind == "answer":
        reply = reply_of(line["reply"])
        report.tokens += line["tokens"]
        report.usd += line["usd"]
        _count(report, reply, cached="from" in line)
        if not answers.add(key, Recorded(line["hash"], reply)):
            report.double += 1
    else:
        raise ValueError(f"type {kind!r}")


def _count(report: PartReport, reply: ChatReply, *, cached: bool) -> None:
    report.answers += 1
    report.cached += cached
    report.models[reply.model] += 1
    if cached:
        return
    report.prompt_tokens += reply.usage.prompt_tokens
    report.completion_tokens += reply.usage.completion_tokens
    report.estimated += reply.usage.estimated
    report.cost += reply.cost or 0.0
    report.unpriced += reply.cost is None


def _lose(report: PartReport, tokens: int, usd: float) -> None:
    report.lost += 1
    report.lost_usd += usd
    report.tokens += tokens
    report.usd += usd
