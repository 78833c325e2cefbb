"""A chat that plays a run again from its journal: no network, no key, no cost."""

from __future__ import annotations

from pathlib import Path

from llm_coop_envs.policies.llm.asking.counters import Counters
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, NotInJournal, RequestKey
from llm_coop_envs.policies.llm.journal.errors import JournalError
from llm_coop_envs.policies.llm.journal.reader import Answers, PartReport, journal_files, read_run
from llm_coop_envs.policies.llm.journal.repair import damage_sentence, difference


class ReplayChat:
    """Answers from a run's journal, and nothing else; the run's folder is only read.

    Args:
        folder: the run's folder.

    Attributes:
        counters: what was replayed.
        notes: sentences about the journal.

    Raises:
        JournalError: there is no journal, or it is damaged.
        MissingExtra: it is compressed in a way that cannot be read here.
    """

    def __init__(self, folder: Path) -> None:
        if not journal_files(folder):
            raise JournalError(f"{folder}: holds no journal to replay; give the folder of a run that asked a model")
        self._folder = folder
        self._answers = Answers()
        self.counters = Counters()
        self.notes: list[str] = []
        for report in read_run(folder, self._answers):
            self._check(report)

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The recorded answer.

        Raises:
            ChatError: the record is an error that the policy was told.
            NotInJournal: there is no record, or one for another question.
        """
        reply = find(self._folder, self._answers, key, request, request.digest())
        if reply is None:
            raise NotInJournal(
                f"{self._folder}: its journal has no answer for ({key}); it can only be replayed with the study, "
                "settings and program that recorded it, up to where it was stopped"
            )
        self.counters.replayed += 1
        return reply

    async def aclose(self) -> None:
        """Nothing is open."""

    def _check(self, report: PartReport) -> None:
        if report.damage:
            raise JournalError(damage_sentence(report))
        if report.torn is not None:
            size = report.torn.end - report.torn.start
            self.notes.append(f"{report.path}: the last commit was cut short ({size} bytes); it is left out")


def find(folder: Path, answers: Answers, key: RequestKey, request: ChatRequest, digest: str) -> ChatReply | None:
    """The recorded answer, or `None` if there is none.

    Raises:
        ChatError: the record is an error that the policy was told.
        NotInJournal: the record answers another question; the message says in what they differ.
    """
    try:
        return answers.find(key, digest)
    except NotInJournal as error:
        raise NotInJournal(
            f"{folder}: its journal answers another question under ({key}): {difference(folder, key, request)}. "
            "The study, the prompts or the program have changed since; use what recorded it, or begin a new run folder"
        ) from error
