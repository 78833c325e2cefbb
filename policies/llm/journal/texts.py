"""The journal of a crowd: the answers of many players on one line, on the disk before they are used.

Its parts stand in a folder of their own, `crowd`, in the same frames as the journal of single questions. The lines of a
part, by `type`:

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
from llm_coop_envs.policies.llm.fastjson import dumps
from llm_coop_envs.policies.llm.journal.frames import Commit, JournalError, default_suffix, packer, read_commits
from llm_coop_envs.policies.llm.journal.group_commit import GroupCommit
from llm_coop_envs.policies.llm.journal.lock import open_part
from llm_coop_envs.policies.llm.journal.repair import cut_back
from llm_coop_envs.policies.llm.journal.writer import check_part, opening_line

CROWD = "crowd"


@dataclass(frozen=True, slots=True)
class CrowdQuestion:
    """What many players are asked in one step.

    Attributes:
        episode: the episode's name in the run.
        step: steps played before this one.
        round: the round, as the environment counts.
        question: what is asked of each of them.
        people: the digest of the people that they are; empty where they are known by number alone.
    """

    episode: str
    step: int
    round: int
    question: Question
    people: str = field(default="", repr=False)

    @property
    def digest(self) -> str:
        """What tells this question from another one."""
        return hashlib.sha256(f"{self!r}{self.people}".encode("utf-8", "surrogatepass")).hexdigest()


class TextJournal:
    """One part of a crowd's journal, open for writing; the answers in all parts can be found.

    Args:
        folder: the run's folder.
        part: which part this process writes.

    Raises:
        JournalError: another process writes this part, or a file is damaged or cannot be written.
        SettingsError: the part's name cannot be a file's name.
    """

    def __init__(self, folder: Path, part: str = "main") -> None:
        check_part(part)
        self.path = folder / CROWD / f"{part}{default_suffix()}"
        with contextlib.ExitStack() as opened:
            descriptor, self._lock = opened.enter_context(open_part(self.path))
            self._found: dict[tuple[str, int], list[tuple[str, list[int], list[str]]]] = defaultdict(list)
            for path in sorted(self.path.parent.glob("*.jsonl.*[tz]")):
                self._read(path, descriptor if path == self.path else None)
            self._commits = GroupCommit(self.path, descriptor, packer(default_suffix()))
            opened.callback(self._commits.close)
            self._commits.write_now(dumps(opening_line("", part)) + b"\n")
            self._opened = opened.pop_all()

    def known(self, asked: CrowdQuestion, players: Sequence[int]) -> dict[int, str]:
        """The recorded answers of these players.

        Raises:
            NotInJournal: one of them was asked something else in this step.
        """
        found: dict[int, str] = {}
        wanted = set(players)
        for digest, named, texts in self._found.get((asked.episode, asked.step), ()):
            if digest != asked.digest and not wanted.isdisjoint(named):
                raise NotInJournal(
                    f"{self.path.parent}: holds answers to another question in step {asked.step} of {asked.episode}; "
                    "use the study and program that recorded them, or begin a new run folder"
                )
            found.update((player, text) for player, text in zip(named, texts, strict=True) if player in wanted)
        return found

    async def add(self, asked: CrowdQuestion, players: Sequence[int], texts: Sequence[str]) -> None:
        """Record answers; returns when they are on the disk."""
        if not self._lock.beat():
            self._commits.fail(f"{self.path}: another process took this part over; end this run")
        place = {"episode": asked.episode, "step": asked.step, "asked": asked.digest}
        line = dumps({"type": "texts", **place, "players": list(players), "texts": list(texts)}) + b"\n"
        await self._commits.append(line, sync=True)

    async def close(self) -> None:
        """Give the part up."""
        with self._opened:
            await self._commits.flush()

    def _read(self, path: Path, own: int | None) -> None:
        """Read a part; of one's own, what was cut short is moved aside."""
        for one in read_commits(path):
            if isinstance(one, Commit):
                for line in one.lines():
                    if line["type"] == "texts":
                        texts = line["asked"], line["players"], line["texts"]
                        self._found[line["episode"], line["step"]].append(texts)
            elif not one.tail:
                raise JournalError(
                    f"{path}: is damaged at bytes {one.start} to {one.end} ({one.why}); restore it from a copy"
                )
            elif own is not None:
                cut_back(path, own, one)
