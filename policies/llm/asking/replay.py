"""A chat that replays a run from its journal: no network, no key, no cost."""

from __future__ import annotations

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, NotInJournal, RequestKey
from llm_coop_envs.policies.llm.journal import Answers, JournalError, read_run, require_journal
from llm_coop_envs.policies.llm.totals import RequestCounters
from llm_coop_envs.util.paths import StrPath


class ReplayChat:
    """Answers questions from a run's journal alone. The run's folder is only read.

    Args:
        folder: the run's folder.

    Attributes:
        counters: live counters, of which only `replayed` changes.
        notes: sentences about the journal for the user.

    Raises:
        JournalError: there is no journal, or it is damaged.
    """

    def __init__(self, folder: StrPath) -> None:
        self._folder = folder
        self._answers = Answers(folder)
        self.counters = RequestCounters()
        self.notes: list[str] = []
        require_journal(folder)
        for report in read_run(folder, self._answers):
            if report.damage is not None:
                raise JournalError(report.damage)
            if report.torn is not None:
                self.notes.append(
                    f"{report.path}: the last commit was cut short ({report.torn.size} bytes); it is left out"
                )

    most = most_each = 0  # requests in flight: a replay has none

    def steer(self, *, paused: bool, most: int | None) -> None:
        """Do nothing: a replay sends no requests."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Return the recorded answer; see `Chat.ask`."""
        reply = self._answers.find(key, request, request.digest())
        if reply is None:
            raise NotInJournal(
                f"{self._folder}: its journal has no answer for ({key}); it can only be replayed with the study, "
                "settings and program that recorded it, up to where it was stopped"
            )
        self.counters.replayed += 1
        return reply
