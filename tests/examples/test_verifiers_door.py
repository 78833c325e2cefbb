"""The verifiers door against a scripted server; needs verifiers, which is not among the packages that tests install."""

import asyncio
import sys

import pytest

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.seats import ChatSeats
from llm_coop_envs.policies.llm.testing.server import ScriptedServer

vf = pytest.importorskip("verifiers.v1")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library and what it brings

GAME = {"talk": False, "max_cycles": 4}


def answer(prompt, metadata=None):
    """A price that hangs on the conversation."""
    return f"{1.4 + len(prompt) % 40 / 100:.2f}"


def play(monkeypatch, **config):
    from doors import verifiers_door

    monkeypatch.setitem(sys.modules, "verifiers_door", verifiers_door)
    monkeypatch.setenv("OFFLINE_KEY", "none")

    async def episode():
        async with ScriptedServer(answer) as server:
            env = verifiers_door.GameEnv(
                verifiers_door.GameEnvConfig(
                    taskset=verifiers_door.GameConfig(id="verifiers_door", **config), max_concurrent_agents=None
                )
            )
            (task,) = env.taskset.take(1)
            client = vf.EvalClientConfig(base_url=server.base_url, api_key_var="OFFLINE_KEY")
            async with env.serving():
                return await env.run_episode(task, vf.ModelContext(model="scripted", client=client))

    return asyncio.run(episode())


def test_an_episode_through_it_is_the_seats_own(monkeypatch):
    episode = play(monkeypatch, settings=GAME)
    assert not episode.errors
    traces = {trace.info["seat"]: trace for trace in episode.traces}
    assert sorted(traces) == ["firm_0", "firm_1"]
    replies = {name: [node.message.content for node in trace.nodes if node.sampled] for name, trace in traces.items()}
    seats = ChatSeats("bertrand", **GAME)
    questions, done, earned = seats.init(0), False, dict.fromkeys(traces, 0.0)
    while not done:
        questions, rewards, done, _ = seats.step({name: replies[name].pop(0) for name in questions})
        earned = {name: earned[name] + rewards[name] for name in earned}
    assert not any(replies.values())
    for name, trace in traces.items():
        assert trace.info["events"] == seats.env.events
        assert trace.rewards["own"].score == pytest.approx(earned[name])
        assert (trace.metrics["decisions"], trace.metrics["fallbacks"]) == (4, 0)


@pytest.mark.parametrize("given", [{"learners": ["firm_9"]}, {"reward": "fame"}])
def test_what_is_unknown_is_named(monkeypatch, given):
    with pytest.raises(SettingsError, match=r"is no seat|is none of"):
        play(monkeypatch, **given)
