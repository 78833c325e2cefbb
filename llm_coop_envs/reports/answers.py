"""The section on the language models that answered: which they were, what became of their answers, and the cost."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, count_text
from llm_coop_envs.runs.branch import BRANCH
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.session_ends import find_unended
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.invalid import INVALID_ABOVE, passes, share_text, why_invalid

# The name under which the scripted server, and scripted answers inside the process, report themselves.
_SCRIPTED_MODEL = "scripted"
_SUMMED = (
    *("asked", "requests", "answered", "repaired", "retried", "fallbacks", "unreadable", "refused", "truncated"),
    *("answers", "prompt_tokens", "completion_tokens", "estimated", "cost", "unpriced"),
)


def is_scripted(model: str) -> bool:
    """Whether a model, as its server reports it, is the scripted server."""
    return model.partition(":")[0] == _SCRIPTED_MODEL


def _caveat(model: str) -> str:
    """The caveat that follows a model's name wherever it is given; empty for most models."""
    if is_scripted(model):
        return ", not a language model"
    from llm_coop_envs.policies.llm.local.models import PACKAGED  # loads much, which runs without models do not need

    if model in PACKAGED:
        return f"; a real model of {PACKAGED[model].size}, far below those of the papers; no claim about others"
    return ""


class AnswersSection:
    """Collects the answer counts of a run's episodes and makes the page's section about the models.

    Args:
        run: the run.
        threshold: the share of fallbacks, or of unreadable answers, above which a condition is invalid.

    Attributes:
        rows: the rows of the answers tables of each condition, by its name; empty if no model answered.
    """

    def __init__(self, run: Run, threshold: float = INVALID_ABOVE) -> None:
        self.rows: dict[str, list[Row]] = {}
        self._run = run
        self._threshold = threshold
        self._models: dict[str, Counter[str]] = {}

    def add(self, condition: str, rows: Iterable[Row], models: Mapping[str, int]) -> None:
        """Add the answers of an episode: their rows of the answers table, and how many each model gave."""
        self.rows.setdefault(condition, []).extend(rows)
        self._models.setdefault(condition, Counter()).update(models)

    def is_scripted_condition(self, condition: str) -> bool:
        """Whether all answers of a condition came from a scripted server."""
        models = self._models.get(condition)
        return bool(models) and all(is_scripted(model) for model in models or ())

    @property
    def scripted(self) -> bool:
        """Whether all answers came from scripted servers."""
        return all(is_scripted(model) for models in self._models.values() for model in models)

    @property
    def models(self) -> list[str]:
        """Each model that answered, with the number of its answers and its caveat."""
        return [
            f"{model} ({count_text(count, 'answer')}{_caveat(model)})"
            for model, count in sorted(sum(self._models.values(), Counter()).items())
        ]

    @property
    def threshold(self) -> str:
        """The share above which a condition is invalid, such as `"5 %"`."""
        return f"{100 * self._threshold:.{0 if self._threshold >= 0.01 else 1}f} %"

    @functools.cached_property
    def invalid(self) -> dict[str, str]:
        """The reason why a condition is invalid, by the names of those that are."""
        return {c.name: reason for c in self._conditions if (reason := self._invalid_reason(c.name))}

    @functools.cached_property
    def cut_off(self) -> dict[str, str]:
        """The answers that their token limit cut off, in words, by the names of conditions where too many were."""
        return {c.name: text for c in self._conditions if (text := self._cut_off_text(c.name))}

    def tables(self) -> list[ReportTable]:
        """Tables of what became of the answers, in all and by question, of prompts, and of sessions and their cost."""
        return [self._outcomes_table(), self._questions_table(), _prompts_table(self._run), _sessions_table(self._run)]

    @property
    def _conditions(self) -> list[Condition]:
        """The conditions in which a model answered."""
        return [condition for condition in self._run.conditions if condition.name in self.rows]

    def _invalid_reason(self, condition: str) -> str:
        """The reason why a condition is invalid; empty if it is valid."""
        return why_invalid(self._sums_by_call(condition), self._threshold)

    def _cut_off_text(self, condition: str) -> str:
        """The kinds of answers of a condition of which too many were cut off, in words; empty without any."""
        return ", ".join(
            f"{sums['truncated']:,.0f} of {sums['requests']:,.0f} answers to '{call}'"
            for call, sums in self._sums_by_call(condition).items()
            if passes(sums["truncated"], sums["requests"], self._threshold)
        )

    def _sums_by_call(self, condition: str) -> dict[str, dict[str, float]]:
        rows = self.rows[condition]
        calls = sorted({row["call"] for row in rows})
        return {call: _sums(row for row in rows if row["call"] == call) for call in calls}

    def _outcomes_table(self) -> ReportTable:
        conditions = self._conditions
        rows = [([c.name], c.title, c.spec.title, self.rows[c.name], c.name in self.invalid) for c in conditions]
        if len(rows) > 1:
            rows.append(
                ([c.name for c in conditions], "all", "", [row for c in conditions for row in self.rows[c.name]], False)
            )
        return ReportTable(
            title="What became of the answers",
            head=["condition", "decisions", *_OUTCOMES, *_DEFECTS, "tokens", "cost"],
            rows=[
                TableRow(name=name, below=below, cells=_cells(_sums(answers)), bad=bad, conditions=names)
                for names, name, below, answers, bad in rows
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

    def _questions_table(self) -> ReportTable:
        rows = []
        for condition in self._conditions:
            answers = self.rows[condition.name]
            for policy, call in sorted({(row["policy"], row["call"]) for row in answers}):
                sums = _sums(row for row in answers if (row["policy"], row["call"]) == (policy, call))
                below = f"{condition.spec.title}, {condition.title}; {policy}"
                rows.append(TableRow(name=call, below=below, cells=_cells(sums), conditions=[condition.name]))
        return ReportTable(
            title="By question",
            head=["question", "decisions", *_OUTCOMES, *_DEFECTS, "tokens", "cost"],
            rows=rows,
        )


_OUTCOMES = ("at once", "repaired", "asked again", "fallback")
_DEFECTS = ("unreadable", "refused", "cut off")


def _sums(rows: Iterable[Row]) -> dict[str, float]:
    sums = dict.fromkeys(_SUMMED, 0.0)
    for row in rows:
        for name in _SUMMED:
            sums[name] += row.get(name) or 0
    return sums


def _cells(sums: Mapping[str, float]) -> list[Cell]:
    """The cells of a row: decisions, outcomes, defects, tokens and cost."""
    cells = [Cell(text=f"{sums['asked']:,.0f}")]
    for names, whole in (
        (("answered", "repaired", "retried", "fallbacks"), sums["asked"]),
        (("unreadable", "refused", "truncated"), sums["requests"]),
    ):
        for count in (sums[name] for name in names):
            cells.append(Cell(text=f"{count:,.0f}", below=share_text(count, whole) if count and whole else ""))
    estimated = " (some estimated)" if sums["estimated"] else ""
    cells += [
        Cell(text=f"{sums['prompt_tokens']:,.0f}", below=f"+ {sums['completion_tokens']:,.0f}{estimated}"),
        _cost_cell(sums),
    ]
    return cells


def _cost_cell(sums: Mapping[str, Any], below: str = "") -> Cell:
    """A cost in US dollars, or "price unknown"."""
    cost, unpriced = sums["cost"], sums["unpriced"]
    if unpriced and unpriced == sums["answers"]:
        return Cell(text="price unknown", below=below)
    unpriced_text = f"{unpriced:,.0f} unpriced" if unpriced else ""
    amount = f"${cost:.2f}" if cost >= 100 else f"${cost:.4f}"
    return Cell(text=amount, below="; ".join(filter(None, (unpriced_text, below))))


def _prompts_table(run: Run) -> ReportTable:
    rows = []
    for model in run.manifest.get("models", []):
        settings, pack = model["settings"], model["pack"]
        personas = ", ".join(settings["personas"]) or "none"
        rows.append(
            TableRow(
                name=model["policy"],
                below=", ".join(f"{key} = {value}" for key, value in model["options"].items()),
                cells=[
                    Cell(text=f"{pack['name']}, version {pack['version']}", below=pack["digest"]),
                    Cell(text=settings["answers"]),
                    Cell(text=personas),
                    Cell(text=model["token_counter"]),
                ],
            )
        )
    return ReportTable(
        title="How they were asked",
        head=["policy", "prompt pack and its hash", "answers", "personas", "tokens counted by"],
        rows=rows,
        notes=["All settings, model parameters included, are in the run's run.json, under 'models'."],
    )


def _sessions_table(run: Run) -> ReportTable:
    rows = []
    unended = find_unended(run)
    for number, session in enumerate(run.manifest["sessions"]):
        asking = session.get("asking")
        if asking is None:
            continue
        counters = session.get("asked", {}).get("counters")
        urls = [endpoint["base_url"] or endpoint["model"] for endpoint in asking["endpoints"]]
        servers = ", ".join(", ".join(url) if isinstance(url, list) else url for url in urls)
        servers = f"replay of {asking['replay']}" if asking["replay"] else servers
        if counters is None:
            # A session writes its counters at its end, and only if it asked something.
            cell = Cell(text="asked nothing")
            if number in unended:
                cell = Cell(text=unended[number].how, below=f"last seen {unended[number].seen or 'at its beginning'}")
            rows.append(TableRow(name=session["started"], below=servers, cells=[cell, *[NOTHING] * 5]))
            continue
        errors = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counters["errors"].items())
        in_vain = f"up to ${counters['maybe_cost']:.4f} in vain" if counters["maybe_cost"] else ""
        rows.append(
            TableRow(
                name=session["started"],
                below=servers,
                cells=[
                    Cell(text=f"{counters['calls']:,}"),
                    Cell(text=f"{counters['answers']:,}"),
                    Cell(text=f"{counters['replayed'] + counters['cached']:,}"),
                    Cell(text=f"{counters['retries']:,}", below=errors),
                    Cell(text=f"{counters['prompt_tokens'] + counters['completion_tokens']:,}"),
                    _cost_cell(counters, in_vain),
                ],
            )
        )
    return ReportTable(
        title="Sessions",
        head=["begun", "calls", "answers", "from journal or cache", "repeated", "tokens", "cost"],
        rows=rows,
        notes=["A session that was killed wrote no numbers; its answers are in the journal all the same."]
        if unended
        else [],
    )
