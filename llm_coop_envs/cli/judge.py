"""`llm-coop judge`: a language model sorts what players said, by a recorded rubric."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm_coop_envs.cli.messages import EXIT_INTERRUPTED, fail, note, sentences
from llm_coop_envs.cli.run_options import RunOptions, option, with_options
from llm_coop_envs.errors import StudyError

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.asking.estimate import Estimate

_WITHOUT = (
    *("seed", "only", "reduced", "policy", "seat", "model_preset", "pack", "persona", "parameters"),
    *("replay", "part", "episodes_at_once"),
)
_ANSWER_TOKENS = 60
_ORDER = ("judge", "rules")


@sentences
@with_options(without=_WITHOUT)
def judge_command(
    options: RunOptions,
    run: Annotated[Path | None, typer.Argument(help="The run folder.")] = None,
    planted: Annotated[
        str | None,
        option("Instead of a run: the talk of this scenario's worlds of known intent.", "--planted"),
    ] = None,
    out: Annotated[
        Path | None,
        option("Where verdicts and journal go; what is there is continued. (default: in the run)", "-o", "--out"),
    ] = None,
    dry: Annotated[bool, option("Only say what it would cost.", "--dry")] = False,
) -> None:
    """Let a language model sort every message by a recorded rubric, and compare it with rules and known intent."""
    from llm_coop_envs.core.registry import find_scenario, scenarios
    from llm_coop_envs.measures.rubric import NAME, VERSION, digest
    from llm_coop_envs.policies.llm.asking.live import known_prices
    from llm_coop_envs.policies.llm.chat import RunStopped
    from llm_coop_envs.policies.llm.playing.player import build_endpoint, settle
    from llm_coop_envs.policies.llm.playing.settings import LLMSettings
    from llm_coop_envs.runs.folder import open_run
    from llm_coop_envs.runs.judgements import (
        collect_run_talk,
        collect_world_talk,
        estimate_judging,
        folder_name,
        judge_material,
    )
    from llm_coop_envs.storage.folder import chosen_folder
    from llm_coop_envs.util.keys import scrub

    options.trust()
    if (run is None) == (planted is None):
        raise StudyError("judge: give the folder of a run, or --planted SCENARIO")
    models = options.model or []
    if len(models) != 1:
        raise StudyError("judge: which model? Give --model NAME, once")
    if planted is not None and (planted not in scenarios() or find_scenario(planted).synthetic_worlds is None):
        with_worlds = ", ".join(name for name, one in scenarios().items() if one.synthetic_worlds is not None)
        raise StudyError(f"--planted {planted}: has no worlds of known intent; there are those of {with_worlds}")
    model, _, _ = settle(models[0], {})
    temperature = 0.0 if options.temperature is None else options.temperature
    settings = LLMSettings(
        model=model,
        answers=options.answers or "json",
        parameters={"default": {"temperature": temperature, "max_tokens": _ANSWER_TOKENS}},
    )
    access = options.access()
    endpoint = build_endpoint(model, access.endpoint)
    judged_run = None if run is None else open_run(run.expanduser())
    if not dry:
        access.check([endpoint])
    if judged_run is not None:
        material = collect_run_talk(judged_run, options.episodes, options.rounds)
    else:
        material = collect_world_talk(str(planted), options.episodes or 5, options.rounds)
    typer.echo(
        f"Rubric {NAME}, version {VERSION}, hash {digest()}: {len(material.talk):,} messages of "
        f"{len({message.episode for message in material.talk}):,} episodes"
    )
    typer.echo(_cost(estimate_judging(material, settings, known_prices([endpoint], access.prices)[model])))
    if dry:
        return
    if out is None and run is not None:
        out = run / folder_name(model)
    with chosen_folder(out, f"judge-{planted}") as folder:
        command = ["llm-coop", "judge", *([str(run)] if planted is None else ["--planted", planted])]
        again, with_more = (
            scrub(shlex.join([*command, *chosen.again(), "-o", str(folder)]))
            for chosen in (options, options.with_more())
        )
        try:
            result = judge_material(
                material,
                folder,
                settings,
                endpoint,
                access,
                command=again,
                notify=note,
                done=_Progress(len(material.talk)).one,
            )
        except KeyboardInterrupt:
            note(f"Stopped. The answers so far are in {folder}; continue with: {again}")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except RunStopped as stopped:
            fail(f"{str(stopped).rstrip('.')}. The answers so far are in {folder}; for example: {with_more}")
    for line in _result_lines(result):
        typer.echo(line)
    typer.echo(f"Verdicts: {folder}")


class _Progress:
    """Says on stderr how many are judged, ten times."""

    def __init__(self, count: int) -> None:
        self._count, self._done = count, 0

    def one(self) -> None:
        """One more is judged."""
        self._done += 1
        if self._done * 10 // self._count > (self._done - 1) * 10 // self._count:
            note(f"{self._done:,} of {self._count:,} messages judged")


def _cost(cost: Estimate) -> str:
    usd = "the price is not known" if cost.usd is None else f"US$ {cost.usd:,.2f}"
    upper_bound = "" if cost.most_usd is None else f", at most {cost.most_usd:,.2f}"
    return (
        f"{cost.calls:,} calls, about {cost.prompt_tokens:,} tokens asked and {cost.completion_tokens:,} answered; "
        f"{usd}{upper_bound}. Answers that must be repaired come on top; what the journal holds is not asked again."
    )


def _result_lines(result: dict[str, Any]) -> list[str]:
    rules = result["rules"]
    lines = ["", f"{'kind':20} {'judge':>7} {'rules':>7} {'kappa':>7}"]
    lines += [
        f"{kind:20} {rules['first'][kind]:7,} {rules['second'][kind]:7,} {value:7.2f}"
        for kind, value in rules["by_kind"].items()
    ]
    between = "" if rules["low"] is None else f" (95 % interval {rules['low']:.2f} to {rules['high']:.2f}, by episodes)"
    lines.append(f"Judge and rules: kappa {rules['kappa']:.2f}{between} on {rules['count']:,} messages")
    if result["judge"]["unread"]:
        lines.append(f"{result['judge']['unread']:,} answers could not be read; they are left out")
    for detector in _ORDER if "truth" in result else ():
        scores = result["truth"][detector]
        low, high = scores["interval"]
        lines.append(
            f"{detector.capitalize()} and truth: {scores['alarms']} of {scores['honest']} honest episodes flagged (95 "
            f"% interval {low:.3f} to {high:.3f}), {scores['found']} of {scores['meant']} others; "
            f"area {scores['area']:.2f}, kappa {scores['kappa']:.2f}"
        )
    return lines
