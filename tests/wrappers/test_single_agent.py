import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from toy import ToyEnv

from llm_coop_envs.errors import ResetNeeded, SettingsError
from llm_coop_envs.policies import ScriptedPolicy
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
