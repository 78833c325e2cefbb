"""The journal of paid answers: every answer is on the disk before it is used, and no question is paid for twice.

A run uses `Journal`, which writes one part and finds the answers of all parts; `read_run` only reads. Nothing that was
written is ever changed: a commit that was cut short is moved aside, and other damage is reported. Other rooms use
nothing of this folder but these names.
"""

from llm_coop_envs.policies.llm.journal.copying import write_copies
from llm_coop_envs.policies.llm.journal.frames import JournalError, journal_files, read_from, require_journal
from llm_coop_envs.policies.llm.journal.questions import (
    Exchange,
    list_episodes,
    read_all_episodes,
    read_episode,
    read_questions,
)
from llm_coop_envs.policies.llm.journal.records import Answers, PartReport, read_run
from llm_coop_envs.policies.llm.journal.repair import describe, salvage
from llm_coop_envs.policies.llm.journal.texts import CrowdQuestion, TextJournal
from llm_coop_envs.policies.llm.journal.writer import Journal, check_part

__all__ = [
    "Answers",
    "CrowdQuestion",
    "Exchange",
    "Journal",
    "JournalError",
    "PartReport",
    "TextJournal",
    "check_part",
    "describe",
    "journal_files",
    "list_episodes",
    "read_all_episodes",
    "read_episode",
    "read_from",
    "read_questions",
    "read_run",
    "require_journal",
    "salvage",
    "write_copies",
]
