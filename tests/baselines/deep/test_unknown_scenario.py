"""A scenario that says nothing of learning is learned by the defaults."""

import numpy as np
import pytest
from toy import ToyEnv

from fishery.scenario import SCENARIO
from llm_coop_envs.baselines.deep.choices import Choices
from llm_coop_envs.baselines.deep.settings import TrainSettings
from llm_coop_envs.baselines.learning import Learning, learning_of
from llm_coop_envs.baselines.tabular.learner import learner_of
from llm_coop_envs.core import registry
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.reports.evaluation import Contest


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


def test_defaults():
    assert learning_of("fishery") == Learning()
    settings = TrainSettings(env="fishery")
    assert (settings.algo, settings.reward_scale, settings.potential) == ("maskable_ppo", 1.0, None)
    assert settings.hyper["gamma"] == Learning().discount
    assert TrainSettings(env="fishery", algo="dqn").hyper["buffer_size"] == 100_000


def test_choices_are_listed_or_numbers():
    assert Choices(ToyEnv()).n == 5
    numbers = Choices(ToyEnv(continuous=True), 11)
    assert numbers.values(np.array([0, 5, 10])).tolist() == [0, 5, 10]


def test_what_cannot_be_learned_is_said(monkeypatch):
    from gymnasium import spaces

    monkeypatch.setattr(ToyEnv, "choice_space", property(lambda _: spaces.Box(0.0, 1.0, (2,))))
    with pytest.raises(SettingsError, match="env='toy': cannot be learned: its choices are neither listed nor one num"):
        Choices(ToyEnv(continuous=True))
    with pytest.raises(SettingsError, match="scenario='fishery': has no tabular learner; these have one: evac"):
        learner_of("fishery")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_it_is_trained_and_evaluated(tmp_path):
    pytest.importorskip("sb3_contrib")
    from llm_coop_envs.baselines.deep.train import train

    done = train(TrainSettings(env="fishery", steps=600, episodes=1, copies=2), tmp_path / "run")
    assert done.complete
    contest = Contest(scenario="fishery", settings={}, policies=(f"sb3:{tmp_path / 'run'}", "sharing"))
    trained, rule = contest.play([0, 1])
    assert len(trained.rows) == len(rule.rows) == 2
    assert set(trained.rows[0]) == set(rule.rows[0])
