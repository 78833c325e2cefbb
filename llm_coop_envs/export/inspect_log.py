"""A run as a log of Inspect: one sample per episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import EpisodeTables, read_episodes
from llm_coop_envs.util.extras import need
from llm_coop_envs.version import __version__


def write_inspect(run: Run, folder: Path) -> None:
    """An Inspect log: a sample per episode with what was said, all measures as metadata, the headline ones as scores.

    Raises:
        MissingExtra: inspect-ai is not installed.
    """
    log = need("inspect_ai.log", "writing an Inspect log", "export")
    samples = [_sample(log, episode) for episode in read_episodes(run)]
    models = sorted({model for sample in samples for model in sample.model_usage})
    dataset = log.EvalDataset(
        name=run.manifest["study"], samples=len(samples), sample_ids=[sample.id for sample in samples]
    )
    began = run.manifest["sessions"][0]["started"] if run.manifest["sessions"] else "1970-01-01T00:00:00+00:00"
    spec = log.EvalSpec(
        eval_id=run.manifest["digest"],
        run_id=run.manifest["digest"],
        task_id=run.manifest["digest"],
        task=run.manifest["study"],
        task_display_name=run.manifest["study"],
        task_description=run.manifest["description"],
        created=began,
        dataset=dataset,
        model=", ".join(models) or "none/none",
        config=log.EvalConfig(),
        packages={"llm-coop-envs": __version__},
        metadata={"study": run.study_text},
    )
    results = log.EvalResults(total_samples=len(samples), completed_samples=len(samples))
    usage: dict[str, Any] = {}
    for sample in samples:
        for model, used in sample.model_usage.items():
            usage[model] = usage[model] + used if model in usage else used
    ended = run.manifest["sessions"][-1]["ended"] if run.manifest["sessions"] else began
    stats = log.EvalStats(started_at=began, completed_at=ended, model_usage=usage)
    whole = log.EvalLog(status="success", eval=spec, results=results, stats=stats, samples=samples)
    log.write_eval_log(whole, str(folder / "run.eval"), format="eval")


def _sample(log: Any, episode: EpisodeTables) -> Any:
    model, scorer = (need(f"inspect_ai.{module}", "writing an Inspect log", "export") for module in ("model", "scorer"))
    name = f"{episode.condition.name}/{episode.seed}"
    opening = {"text": f"Episode {name} of {episode.metrics['scenario']}."}
    # Players' messages are a user's: Inspect drops an assistant's message that repeats the one before it.
    messages = [
        model.ChatMessageUser(
            id=f"{name}/{position}",
            content=row["text"],
            metadata={key: value for key, value in row.items() if key != "text"},
        )
        for position, row in enumerate([opening, *episode.messages])
    ]
    # Inspect's messages_df reads the messages of model events only, and fails on a log without such events.
    transcript = need("inspect_ai.event", "writing an Inspect log", "export").ModelEvent(
        model="none/none",
        role="transcript",
        input=messages,
        tools=[],
        tool_choice="none",
        config=model.GenerateConfig(),
        output=model.ModelOutput(),
    )
    usage: dict[str, Any] = {}
    for row in episode.answers:
        used = usage.setdefault(row["policy"].removeprefix("llm:"), model.ModelUsage())
        used.input_tokens += row["prompt_tokens"]
        used.output_tokens += row["completion_tokens"]
        used.total_tokens = used.input_tokens + used.output_tokens
    headline = {measure: episode.metrics.get(measure) for measure in episode.condition.spec.measured.headline}
    return log.EvalSample(
        id=name,
        epoch=1,
        uuid=name,
        input=messages[0].content,
        target="",
        messages=messages,
        events=[transcript],
        metadata=episode.metrics,
        scores={
            measure: scorer.Score(value=value, explanation=episode.condition.spec.measured.define(measure))
            for measure, value in headline.items()
            if value is not None
        },
        model_usage=usage,
    )
