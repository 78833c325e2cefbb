import asyncio
import json

import numpy as np
import pytest
from llm_chats import Recorder, reply, run
from own_pack import copy_pack

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError, StudyError, WordingError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.playing.packs import load_pack
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.scripted import make


def policy_for(chat=None, **settings):
    return LLMPolicy(chat or Recorder(), LLMSettings.build(**{"model": "m", **settings}))


def test_all_who_are_on_turn_are_asked_at_the_same_time():
    class Gate:
        waiting = most = 0

        async def ask(self, key, request):
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await asyncio.sleep(0)
            self.waiting -= 1
            return reply("7")

    gate = Gate()
    play(kbc_v0.parallel_env(players=30, talk=False, exchanges=0), policy_for(gate), seed=0)
    assert gate.most == 30


def test_the_answers_are_in_the_order_of_the_requests():
    class Late:
        async def ask(self, key, request):
            for _ in range(30 - int(key.agent.rpartition("_")[2])):
                await asyncio.sleep(0)
            return reply(key.agent.rpartition("_")[2])

    env = kbc_v0.parallel_env(players=30, talk=False, exchanges=0, record=True)
    play(env, policy_for(Late()), seed=0)
    assert next(event["choices"] for event in env.events if event["type"] == "round") == list(range(30))


def test_a_policy_may_have_some_of_the_seats():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=3, record=True)
    policy = policy_for()
    seats = {"firm_0": policy, "firm_1": make("bertrand/tit_for_tat")}
    play(env, seats, seed=0)
    assert {key.agent for key, _, _ in policy.chat.log} == {"firm_0"}
    assert policy.counters.total().fallbacks == 0
    assert set(policy.personas()) == {"firm_0"}


def test_the_same_answers_make_the_same_episode():
    logs = []
    for _ in range(2):
        env = evacuation_v0.parallel_env(preset="small", people=20, rounds=5, record=True)
        _, chat = run(env)
        logs.append((chat.log, env.events))
    assert logs[0] == logs[1]


def test_an_episode_begins_with_empty_memories_and_counters():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=22, talk=False)
    policy = policy_for()
    play(env, policy, seed=0, name="first")
    once = policy.counters.to_json()
    play(env, policy, seed=0, name="second")
    assert policy.counters.to_json() == once
    keys = {key.episode for key, _, _ in policy.chat.log}
    assert keys == {"first", "second"}
    plans = [prompt for key, prompt in policy.chat.prompts("plan") if key.episode == "second"]
    assert not any("Your plans so far" in prompt for prompt in plans)


def test_an_episode_can_be_branched_with_its_memories():
    env = bertrand_v0.parallel_env(preset="team_up", rounds=45, talk=False, record=True)
    policy = policy_for()
    state = {}

    def remember(env):
        if env.round == 31 and not state:
            state["env"] = json.loads(json.dumps(env.get_state()))
            state["policy"] = json.loads(json.dumps(policy.get_state()))

    play(env, policy, seed=0, on_step=remember)
    whole = policy.chat.log
    assert state["policy"]["firm_0"]["notes"]["plan"]
    branch = bertrand_v0.parallel_env(preset="team_up", rounds=45, talk=False, record=True)
    branch.set_state(state["env"])
    branched = branch.cycles
    other = policy_for()
    other.begin(policy.episode)
    other.set_state(state["policy"])

    async def go_on():
        observations, infos = branch.look()
        while branch.agents:
            requests = [Request(agent, observations[agent], infos[agent]) for agent in branch.agents]
            actions = await other.act(requests)
            observations, _, _, _, infos = branch.step(dict(zip(branch.agents, actions, strict=True)))

    asyncio.run(go_on())
    assert branched == 30
    assert other.chat.log == [entry for entry in whole if entry[0].step >= branched]


def test_what_is_recorded_with_a_run():
    policy = policy_for(preset="team_up", pack="de-a", personas="agreeable")
    told = json.loads(json.dumps(policy.describe()))
    assert told["pack"] == load_pack("de-a").describe()
    assert told["token_counter"] == "estimate"
    assert told["workflows"]["evacuation"] == {
        "panic": True,
        "evaluate": True,
        "feeling_in_talk": False,
        "summarised": False,
    }
    assert LLMSettings.build(**told["settings"]) == policy.settings
    counted = LLMPolicy(Recorder(), LLMSettings(model="m"), count_tokens=len)
    assert counted.describe()["token_counter"] == "given"


def test_packs_and_scenarios_must_fit(tmp_path):
    with pytest.raises(WordingError, match="neither a shipped pack nor a folder"):
        policy_for(pack="fr-a")
    episode = Episode(
        scenario="nowhere_v0",
        settings=kbc_v0.parallel_env().settings,
        agents=("a",),
        seats=("a",),
        rng=np.random.default_rng(0),
    )
    with pytest.raises(StudyError, match="there is no scenario 'nowhere'"):
        policy_for().begin(episode)


def test_a_pack_without_the_scenario_is_refused(tmp_path):
    own = copy_pack(tmp_path / "own", scenarios=["bertrand"])
    with pytest.raises(SettingsError, match="has no templates for kbc"):
        run(kbc_v0.parallel_env(players=2), pack=str(own))
    run(bertrand_v0.parallel_env(rounds=1), pack=str(own))


def test_the_policys_modules_bring_nothing_heavy(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, llm_coop_envs.policies.llm.playing.policy, llm_coop_envs.policies.llm.testing.answers\n"
        "print([m for m in ('tiktoken', 'openai', 'litellm', 'json_repair', 'regex') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
