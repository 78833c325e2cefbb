"""The journal of a crowd: the answers of many players on one line, on the disk before they are used.

Its parts are in the folder `crowd`, in the same format as the journal of single questions. The lines of a part, by
`type`:

    opened   a session began, as in the other journal
    texts    answers: `episode`, `step`, `asked` (the question's hash), the `players` and their `texts`
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm_coop_envs.interface.question import Question
from llm_coop_envs.policies.llm.chat import NotInJournal
from llm_coop_envs.policies.llm.journal.frames import Commit, JournalError, default_suffix, packer, read_commits
from llm_coop_envs.policies.llm.journal.group_commit import GroupCommit
from llm_coop_envs.policies.llm.journal.lock import open_part
from llm_coop_envs.policies.llm.journal.repair import cut_back
from llm_coop_envs.policies.llm.journal.writer import check_part, opening_line
from llm_coop_envs.util.fastjson import dumps
from llm_coop_envs.util.opening import explain_damage
from llm_coop_envs.util.paths import StrPath

CROWD = "crowd"


@dataclass(frozen=True, slots=True)
class CrowdQuestion:
    """A question to many players in one step.

    Attributes:
        episode: the episode's name in the run.
        step: steps played before this one.
        round: the round, as the environment counts.
        question: the question to each of them.
        people: the digest of the players' population; empty if players are known by number alone.
    """

    episode: str
    step: int
    round: int
    question: Question
    people: str = field(default="", repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the question, in hex."""
        return hashlib.sha256(f"{self!r}{self.people}".encode("utf-8", "surrogatepass")).hexdigest()


class TextJournal:
    """One part of a crowd's journal, open for writing. It finds the answers of all parts.

    Args:
        folder: the run's folder.
        part: which part this process writes.

    Raises:
        JournalError: another process writes this part, or a file is damaged or cannot be written.
        SettingsError: the part's name cannot be a file's name.
    """

    def __init__(self, folder: StrPath, part: str = "main") -> None:
        check_part(part)
        self.path = Path(folder) / CROWD / f"{part}{default_suffix()}"
        with contextlib.ExitStack() as opened:
            descriptor, self._lock = opened.enter_context(open_part(self.path))
            self._answers: dict[tuple[str, int], list[tuple[str, list[int], list[str]]]] = defaultdict(list)
            for path in sorted(self.path.parent.glob("*.jsonl.*[tz]")):
                self._read(path, descriptor if path == self.path else None)
            self._commits = GroupCommit(self.path, descriptor, packer(default_suffix()), self._lock.holds)
            opened.callback(self._commits.close)
            self._commits.write_now(dumps(opening_line("", part)) + b"\n")
            self._opened = opened.pop_all()

    def find_answers(self, question: CrowdQuestion, players: Sequence[int]) -> dict[int, str]:
        """Look up the recorded answers of these players.

        Returns:
            Texts by player, for those who have an answer.

        Raises:
            NotInJournal: one of the players was asked another question in this step.
        """
        text_of: dict[int, str] = {}
        searched = set(players)
        step = question.step
        for digest, recorded, texts in self._answers.get((question.episode, step), ()):
            if digest != question.digest and not searched.isdisjoint(recorded):
                raise NotInJournal(
                    f"{self.path.parent}: holds answers to another question in step {step} of {question.episode}; "
                    "use the study and program that recorded them, or begin a new run folder"
                )
            text_of.update((player, text) for player, text in zip(recorded, texts, strict=True) if player in searched)
        return text_of

    async def add(self, question: CrowdQuestion, players: Sequence[int], texts: Sequence[str]) -> None:
        """Record answers and wait until they are on the disk."""
        header = {"episode": question.episode, "step": question.step, "asked": question.digest}
        line = dumps({"type": "texts", **header, "players": list(players), "texts": list(texts)}) + b"\n"
        await self._commits.append(line, sync=True)

    async def close(self) -> None:
        """Write what is pending and release the part."""
        with self._opened:
            await self._commits.flush()

    def _read(self, path: Path, own: int | None) -> None:
        """Read a part; in the part of descriptor `own`, a commit that was cut short is moved aside."""
        for commit in read_commits(path):
            if isinstance(commit, Commit):
                with explain_damage(path, "restore it from a copy"):
                    lines = commit.lines()
                for line in lines:
                    if line["type"] == "texts":
                        texts = line["asked"], line["players"], line["texts"]
                        self._answers[line["episode"], line["step"]].append(texts)
            elif not commit.tail:
                span = f"bytes {commit.start} to {commit.end} ({commit.reason})"
                raise JournalError(f"{path}: is damaged at {span}; restore it from a copy")
            elif own is not None:
                cut_back(path, own, commit)
