"""A study as a task of Inspect, which asks the models through its own model layer.

Needs `pip install inspect-ai` (tried with 0.3.285). In a study that names models, each name is a role, which is given
with `--model-role NAME=MODEL` or else played by `--model`. In any other study `--model` plays all seats:

    inspect eval examples/doors/inspect_task.py --model openai/gpt-4o-mini -T study=team_up -T episodes=2 -T rounds=10
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import Study, load_study

_ROLES: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


class InspectChat:
    """A `Chat` over Inspect's models: limits, retries, cache and log are Inspect's."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Ask the model in the role that the study names.

        Raises:
            ChatError: the prompt is too long for the model; the player then asks a shorter one.
        """
        schema = request.json_schema
        if schema is not None:
            schema = ResponseSchema(name="answer", json_schema=JSONSchema.model_validate(schema))
        config = GenerateConfig(
            temperature=request.temperature,
            top_p=request.top_p,
            max_tokens=request.max_tokens,
            stop_seqs=list(request.stop) or None,
            seed=request.seed,
            reasoning_effort=request.reasoning_effort,
            response_schema=schema,
            extra_body=dict(request.extra) or None,
        )
        messages = [_ROLES[message.role](content=message.content) for message in request.messages]
        output = await get_model(role=request.model).generate(messages, config=config)
        if output.stop_reason == "model_length":
            raise ChatError(f"{key}: {output.model} takes no question of this length", kind="context_too_long")
        usage = Usage(output.usage.input_tokens, output.usage.output_tokens) if output.usage else Usage(0, 0)
        finish = "length" if output.stop_reason == "max_tokens" else output.stop_reason
        return ChatReply(output.completion, usage, finish, output.model, output.time or 0.0)


@solver
def play(study: Study) -> Solver:
    """Play the sample's episode, and store its events, players and measures in the sample's metadata."""
    conditions = {condition.name: condition for condition in study.conditions}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        condition = conditions[state.metadata["condition"]]
        episode = await play_episode(study.seed, condition, state.metadata["seed"], chat=InspectChat())
        measures = {**condition.spec.episode_metrics(episode.events), **episode.measures}
        state.metadata.update(
            events=episode.events, policies=episode.policies, answers=episode.answers, measures=measures
        )
        return state

    return solve


def measure(name: str, meaning: str) -> Scorer:
    """A scorer for one measure; an episode without it is not scored."""

    def make_scorer() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            value = state.metadata["measures"].get(name)
            return None if value is None else Score(value=value, explanation=meaning)

        return score

    return scorer(metrics=[mean(), stderr()], name=name)(make_scorer)()


@task
def study(
    study: str = "team_up", policy: str = "", episodes: int = 0, rounds: int = 0, seed: int | None = None
) -> Task:
    """A sample for each episode of a study.

    Args:
        study: a shipped study's name, or a YAML file.
        policy: the policy of all seats instead of the study's players, as `llm-coop run --policy` takes it.
        episodes: the number of episodes of each condition; 0 for the study's.
        rounds: the number of rounds of each episode; 0 for the study's.
        seed: the seed instead of the study's.
    """
    plan = select(load_study(study, seed), episodes=episodes or None, rounds=rounds or None)
    if policy or not plan.models:
        plan = with_players(plan, read_player(policy or "llm:inspect"))
    samples = [
        Sample(
            id=f"{condition.name}/{number}",
            input=f"Episode {condition.name}/{number} of {condition.scenario}.",
            metadata={"condition": condition.name, "seed": number},
        )
        for condition in plan.conditions
        for number in condition.seeds
    ]
    meanings = {
        name: condition.spec.measured.define(name)
        for condition in plan.conditions
        for name in condition.spec.measured.headline
    }
    return Task(
        dataset=samples,
        solver=play(plan),
        scorer=[measure(name, meaning) for name, meaning in meanings.items()],
        name=plan.name,
    )
