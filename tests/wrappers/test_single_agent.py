import asyncio

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from toy import ToyEnv

import llm_coop_envs
from llm_coop_envs.errors import ResetNeeded, SettingsError
from llm_coop_envs.policies import ScriptedPolicy
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import ScriptedChat
from llm_coop_envs.wrappers import SingleAgentView


class Twos(ScriptedPolicy):
    """Always two, with a remark."""

    def decide(self, request):
        return {"choice": int(self.episode.rng.integers(1, 3)), "message": f"{request.agent} here"}


def make(numeric=False, **settings):
    return SingleAgentView(ToyEnv(**settings), "player_1", Twos(), numeric=numeric)


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize("settings", [{}, {"talk": False}, {"levels": True}])
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # Gymnasium's advice on Dict spaces and render modes
def test_gymnasium_checks_it(settings, numeric):
    check_env(make(numeric, **settings), skip_render_check=True)


class Thinking(Twos):
    """As `Twos`, in its own time."""

    async def act(self, requests):
        await asyncio.sleep(0.0001)
        return await super().act(requests)


@pytest.mark.parametrize("others", [Twos, Thinking])
def test_it_is_played_where_an_event_loop_runs_already(others):
    def play():
        view = SingleAgentView(ToyEnv(levels=True), "player_1", others())
        played = [episode(view, 5), episode(view, 6)]
        view.close()
        return played

    async def notebook():
        return play()

    assert asyncio.run(notebook()) == play()


def test_one_view_is_played_inside_and_outside_of_an_event_loop():
    view = SingleAgentView(ToyEnv(levels=True), "player_1", Thinking())
    first = episode(view, 5)

    async def notebook():
        return episode(view, 5)

    assert asyncio.run(notebook()) == first == episode(view, 5)
    view.close()


def test_a_language_model_plays_the_others_where_an_event_loop_runs_already():
    def play():
        rival = LLMPolicy(ScriptedChat(), LLMSettings(model="scripted"))
        view = SingleAgentView(llm_coop_envs.kbc_v0.parallel_env(players=3), "player_1", rival)
        view.reset(seed=1)
        rewards, over = [], False
        while not over:
            _, reward, terminated, truncated, _ = view.step({"choice": 3, "message": "me"})
            rewards.append(reward)
            over = terminated or truncated
        view.close()
        return rewards, rival.chat.requests

    async def notebook():
        return play()

    assert asyncio.run(notebook()) == play()


def episode(view, seed):
    observation, info = view.reset(seed=seed)
    seen = [(observation["text"], info["round"])]
    total = 0.0
    while True:
        assert observation["turn"] == 1
        observation, reward, terminated, truncated, info = view.step({"choice": 3, "message": "me"})
        total += reward
        seen.append((observation["text"], info["round"]))
        if terminated or truncated:
            return seen, total, terminated


def test_an_episode_repeats_and_every_step_is_a_turn():
    first = episode(make(levels=True), 5)
    assert first == episode(make(levels=True), 5)
    assert first != episode(make(levels=True), 6)
    seen, total, terminated = first
    assert terminated
    assert len(seen) == 1 + 6 + 6
    assert total >= 18
    assert any("player_0 here" in text for text, _ in seen)


def test_leaving_the_game_ends_the_episode():
    view = make(departures=True, talk=False)
    view.reset(seed=0)
    view.step({"choice": 1})
    _, _, terminated, _, _ = view.step({"choice": 1})
    assert terminated
    with pytest.raises(ResetNeeded):
        view.step({"choice": 1})


def test_the_numeric_form():
    view = make(numeric=True)
    observation, info = view.reset(seed=0)
    assert observation.dtype == np.float32
    assert view.observation_space.contains(observation)
    assert set(info) == {"action_mask"}
    observation, *_ = view.step(2)
    assert view.observation_space.contains(observation)
    view.close()
    view.close()


def test_bad_seats():
    with pytest.raises(SettingsError, match="agent='player_9': is no seat"):
        SingleAgentView(ToyEnv(), "player_9", Twos())
    with pytest.raises(SettingsError, match="no policy was given for player_2"):
        SingleAgentView(ToyEnv(), "player_1", {"player_0": Twos()})
    with pytest.raises(SettingsError, match="directly around"):
        SingleAgentView(make(), "player_1", Twos())
    with pytest.raises(ResetNeeded):
        make().step({"choice": 1})
