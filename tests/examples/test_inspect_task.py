"""A study under Inspect with its mock model; needs inspect-ai, which is not among the packages that tests install."""

import asyncio

import pytest
from llm_chats import Recorder
from model_studies import TINY, study_with_model

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.runs.episode import play_episode

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library and what it brings


def test_a_study_under_inspect_is_the_native_one(tmp_path):
    from doors.inspect_task import study
    from inspect_ai import eval as inspect_eval
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    (tmp_path / "tiny.yaml").write_text(TINY)
    native, replies = {}, {}
    plan = study_with_model(TINY)
    for condition in plan.conditions:
        chat = Recorder()
        native[f"{condition.name}/0"] = asyncio.run(play_episode(plan.seed, condition, 0, chat)).events
        for key, request, reply in chat.log:
            replies.setdefault(tuple(message.content for message in request.messages), []).append(
                (key, request, reply.text)
            )
    requests = []

    def answer(messages, tools, tool_choice, config):
        _, request, text = replies[tuple(message.content for message in messages)].pop(0)
        assert (config.temperature, config.max_tokens) == (request.temperature, request.max_tokens)
        requests.append(text)
        return ModelOutput.from_content("mockllm/model", text).model_copy(
            update={"usage": ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9)}
        )

    (log,) = inspect_eval(
        study(str(tmp_path / "tiny.yaml"), policy="llm:scripted"),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
    )
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
    assert {sample.id: sample.metadata["events"] for sample in log.samples} == native
    assert not any(replies.values())
    assert log.stats.model_usage["mockllm/model"].input_tokens == 7 * len(requests)
    assert sum(
        call["prompt_tokens"]
        for sample in log.samples
        for player in sample.metadata["answers"]
        for call in player["calls"].values()
    ) == 7 * len(requests)
    gain = next(sample for sample in log.samples if sample.id == "bertrand/0")
    assert gain.scores["profit_gain"].value == gain.metadata["measures"]["profit_gain"]
    assert {score.name for score in log.results.scores} > {"profit_gain"}


def test_a_study_that_is_not_there_is_a_sentence():
    from doors.inspect_task import study

    with pytest.raises(LlmCoopError, match="nowhere"):
        study("nowhere")
