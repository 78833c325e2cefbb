"""What a report says of the language models that answered: which, how well, at what cost, and whether it counts."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.policies.llm.local.models import PACKAGED
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.studies.conditions import Condition

INVALID_ABOVE = 0.05
# How the scripted server, and the scripted answers inside the process, name themselves.
_SCRIPTED_MODEL = "scripted"
_ADDED = (
    *("asked", "requests", "answered", "repaired", "retried", "fallbacks", "unreadable", "refused", "truncated"),
    *("answers", "prompt_tokens", "completion_tokens", "estimated", "cost", "unpriced"),
)


def is_scripted(model: str) -> bool:
    """Whether a model, as its server reports it, is the scripted server."""
    return model.partition(":")[0] == _SCRIPTED_MODEL


def _what(model: str) -> str:
    """What must be said of a model whenever it is named."""
    if is_scripted(model):
        return ", not a language model"
    if model in PACKAGED:
        return f"; a real model of {PACKAGED[model].size}, far below those of the papers; no claim about others"
    return ""


class AnswersSection:
    """Gathers what became of the answers, and is the page's part about the models.

    Args:
        run: the run.
        threshold: the share of fallbacks, or of unreadable answers, above which a condition is invalid.

    Attributes:
        rows: what became of the answers, by condition; empty if no model answered.
    """

    def __init__(self, run: Run, threshold: float = INVALID_ABOVE) -> None:
        self.rows: dict[str, list[Row]] = {}
        self._run = run
        self._threshold = threshold
        self._models: dict[str, Counter[str]] = {}

    def add(self, episode: EpisodeTables) -> None:
        """Take what is needed of an episode."""
        if episode.answers:
            name = episode.condition.name
            self.rows.setdefault(name, []).extend(episode.answers)
            self._models.setdefault(name, Counter()).update(episode.models)

    def scripted_condition(self, condition: str) -> bool:
        """Whether all answers of a condition came from a scripted server."""
        models = self._models.get(condition)
        return bool(models) and all(is_scripted(model) for model in models or ())

    @property
    def scripted(self) -> bool:
        """Whether all answers came from scripted servers."""
        return all(is_scripted(model) for models in self._models.values() for model in models)

    @property
    def models(self) -> list[str]:
        """A sentence on each model that answered."""
        return [
            f"{model} ({_count(count, 'answer')}{_what(model)})"
            for model, count in sorted(sum(self._models.values(), Counter()).items())
        ]

    @property
    def threshold(self) -> str:
        """The share above which a condition is invalid, in words."""
        return f"{self._threshold:.0%}" if self._threshold >= 0.01 else f"{self._threshold:.1%}"

    @functools.cached_property
    def invalid(self) -> dict[str, str]:
        """Why each invalid condition is one, by its name."""
        return {c.name: why for c in self._shown if (why := self._why(c.name))}

    @functools.cached_property
    def cut_off(self) -> dict[str, str]:
        """Which answers their token limit cut off, in each condition where that happened too often, by its name."""
        return {c.name: why for c in self._shown if (why := self._why_cut(c.name))}

    def tables(self) -> list[ReportTable]:
        """What became of the answers, how models were asked, and what the sessions cost."""
        return [self._table(self._shown), self._calls(self._shown), _prompts(self._run), _sessions(self._run)]

    @property
    def _shown(self) -> list[Condition]:
        return [condition for condition in self._run.conditions if condition.name in self.rows]

    def _why(self, condition: str) -> str:
        """Why a condition is invalid; empty if it is not."""
        whole = [("of all decisions", _sums(self.rows[condition]))]
        parts = [
            (f"of '{call}'", _sums(r for r in self.rows[condition] if r["call"] == call))
            for call in self._calls_of(condition)
        ]
        for what, sums in (*whole, *parts):
            if _passes(sums["fallbacks"], sums["asked"], self._threshold):
                share = _share(sums["fallbacks"], sums["asked"])
                return f"{share} {what} were taken by a fallback, because no answer could be read"
        for what, sums in (*whole, *parts):
            if _passes(sums["unreadable"], sums["requests"], self._threshold):
                return f"{_share(sums['unreadable'], sums['requests'])} of the answers ({what[3:]}) were unreadable"
        return ""

    def _why_cut(self, condition: str) -> str:
        """Which answers of a condition were cut off too often, in words; empty if none were."""
        parts = {
            call: _sums(r for r in self.rows[condition] if r["call"] == call) for call in self._calls_of(condition)
        }
        return ", ".join(
            f"{sums['truncated']:,.0f} of {sums['requests']:,.0f} answers to '{call}'"
            for call, sums in parts.items()
            if _passes(sums["truncated"], sums["requests"], self._threshold)
        )

    def _calls_of(self, condition: str) -> list[str]:
        return sorted({row["call"] for row in self.rows[condition]})

    def _table(self, shown: Sequence[Condition]) -> ReportTable:
        rows = [([c.name], c.title, c.spec.title, self.rows[c.name], bool(self._why(c.name))) for c in shown]
        if len(rows) > 1:
            rows.append(([c.name for c in shown], "all", "", [row for c in shown for row in self.rows[c.name]], False))
        return ReportTable(
            title="What became of the answers",
            head=["condition", "decisions", *_OUTCOMES, *_DEFECTS, "tokens", "cost"],
            rows=[
                TableRow(name=name, below=below, cells=_cells(_sums(found)), bad=bad, conditions=names)
                for names, name, below, found, bad in rows
            ],
            notes=[
                "Every decision ends in one of four ways: the first answer could be read; the model was asked what it "
                "meant; it was asked again; or nothing could be read and a fallback stands in (the environment's "
                "choice, silence, or nothing remembered).",
                "Unreadable, refused and cut off (by their token limit, readable or not) are answers, as shares of all "
                "answers; a decision may have several.",
                "Tokens are those of the questions, below them those of the answers.",
                "Cost is that of the answers on this page, at the prices known when they arrived; of 'unpriced' ones "
                "none was known. Questions that failed on the way are in the sessions' table."
                + " Answers from before the arms part were paid by the run that was branched; here they cost nothing."
                * (BRANCH in self._run.manifest),
            ],
        )

    def _calls(self, shown: Sequence[Condition]) -> ReportTable:
        rows = []
        for condition in shown:
            found = self.rows[condition.name]
            for policy, call in sorted({(row["policy"], row["call"]) for row in found}):
                sums = _sums(row for row in found if (row["policy"], row["call"]) == (policy, call))
                below = f"{condition.spec.title}, {condition.title}; {policy}"
                rows.append(TableRow(name=call, below=below, cells=_cells(sums), conditions=[condition.name]))
        return ReportTable(
            title="By question",
            head=["question", "decisions", *_OUTCOMES, *_DEFECTS, "tokens", "cost"],
            rows=rows,
        )


_OUTCOMES = ("at once", "repaired", "asked again", "fallback")
_DEFECTS = ("unreadable", "refused", "cut off")


def _passes(part: float, whole: float, threshold: float) -> bool:
    return whole > 0 and part / whole > threshold


def _sums(rows: Any) -> dict[str, float]:
    sums = dict.fromkeys(_ADDED, 0.0)
    for row in rows:
        for name in _ADDED:
            sums[name] += row.get(name) or 0
    return sums


def _cells(sums: Mapping[str, float]) -> list[Cell]:
    cells = [Cell(text=f"{sums['asked']:,.0f}")]
    for names, whole in (
        (("answered", "repaired", "retried", "fallbacks"), sums["asked"]),
        (("unreadable", "refused", "truncated"), sums["requests"]),
    ):
        for count in (sums[name] for name in names):
            cells.append(Cell(text=f"{count:,.0f}", below=_share(count, whole) if count and whole else ""))
    about = " (some estimated)" if sums["estimated"] else ""
    cells += [
        Cell(text=f"{sums['prompt_tokens']:,.0f}", below=f"+ {sums['completion_tokens']:,.0f}{about}"),
        _money(sums),
    ]
    return cells


def _money(sums: Mapping[str, Any], below: str = "") -> Cell:
    """US dollars, or that the price is not known."""
    cost, unpriced = sums["cost"], sums["unpriced"]
    if unpriced and unpriced == sums["answers"]:
        return Cell(text="price unknown", below=below)
    without = f"{unpriced:,.0f} unpriced" if unpriced else ""
    shown = f"${cost:.2f}" if cost >= 100 else f"${cost:.4f}"
    return Cell(text=shown, below="; ".join(filter(None, (without, below))))


def _share(part: float, whole: float) -> str:
    share = part / whole
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _prompts(run: Run) -> ReportTable:
    rows = []
    for one in run.manifest.get("models", []):
        settings, pack = one["settings"], one["pack"]
        personas = ", ".join(settings["personas"]) or "none"
        rows.append(
            TableRow(
                name=one["policy"],
                below=", ".join(f"{key} = {value}" for key, value in one["options"].items()),
                cells=[
                    Cell(text=f"{pack['name']}, version {pack['version']}", below=pack["digest"]),
                    Cell(text=settings["answers"]),
                    Cell(text=personas),
                    Cell(text=one["token_counter"]),
                ],
            )
        )
    return ReportTable(
        title="How they were asked",
        head=["policy", "prompt pack and its hash", "answers", "personas", "tokens counted by"],
        rows=rows,
        notes=["All settings, model parameters included, are in the run's run.json, under 'models'."],
    )


def _sessions(run: Run) -> ReportTable:
    rows = []
    unended = False
    for session in run.manifest["sessions"]:
        asking = session.get("asking")
        if asking is None:
            continue
        counters = session.get("asked", {}).get("counters")
        urls = [one["base_url"] or one["model"] for one in asking["endpoints"]]
        where = ", ".join(", ".join(url) if isinstance(url, list) else url for url in urls)
        where = f"replay of {asking['replay']}" if asking["replay"] else where
        if counters is None:
            # A session writes its numbers when it ends, if it came to ask anything.
            why = "did not end" if session["ended"] is None else "asked nothing"
            unended = unended or session["ended"] is None
            rows.append(TableRow(name=session["started"], below=where, cells=[Cell(text=why), *[NOTHING] * 5]))
            continue
        errors = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counters["errors"].items())
        maybe = f"up to ${counters['maybe_cost']:.4f} in vain" if counters["maybe_cost"] else ""
        rows.append(
            TableRow(
                name=session["started"],
                below=where,
                cells=[
                    Cell(text=f"{counters['calls']:,}"),
                    Cell(text=f"{counters['answers']:,}"),
                    Cell(text=f"{counters['replayed'] + counters['cached']:,}"),
                    Cell(text=f"{counters['retries']:,}", below=errors),
                    Cell(text=f"{counters['prompt_tokens'] + counters['completion_tokens']:,}"),
                    _money(counters, maybe),
                ],
            )
        )
    return ReportTable(
        title="Sessions",
        head=["begun", "calls", "answers", "from journal or cache", "repeated", "tokens", "cost"],
        rows=rows,
        notes=["A session that did not end was killed, or goes on; its answers are in the journal all the same."]
        if unended
        else [],
    )
