"""A learner's folder is continued by that learner alone: any other is refused, and nothing in the folder changes."""

import itertools

import pytest
from small import small_study

from llm_coop_envs.baselines.deep.folder import open_folder
from llm_coop_envs.baselines.deep.settings import TrainSettings
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.reproduce.runs import Plan, SessionFolder, run
from llm_coop_envs.baselines.tabular.training import TabularFolder, train
from llm_coop_envs.errors import RunError
from llm_coop_envs.evacuation.faces.tabular import EvacuationLearning
from llm_coop_envs.kbc.faces.tabular import KBCLearning
from llm_coop_envs.runs.folder import make_run
from llm_coop_envs.runs.runner import run_study

CONTEST, ROOM = KBCLearning(episodes=2, curve_every=1), EvacuationLearning(episodes=2, curve_every=1)
ONE, OTHER = Plan(settings=QLearningSettings()), Plan(settings=QLearningSettings(exploration="boltzmann"))


def deep(**fields):
    settings = TrainSettings(**{"env": "kbc", "steps": 100, **fields})
    return (lambda folder: open_folder(folder, settings),) * 2


def tabular(learning):
    identity = {"scenario": learning.scenario, "seed": 0, **learning.to_json()}
    return (lambda folder: TabularFolder.make(folder, identity), lambda folder: train(learning, 0, folder))


def sessions(plan):
    return (lambda folder: SessionFolder.make(folder, plan.to_json()), lambda folder: run(plan, 1, folder, workers=1))


# How each begins a folder, and how it is started by its users.
LEARNERS = {
    "ppo": deep(algo="ppo"),
    "dqn": deep(algo="dqn"),
    "deep bertrand": deep(env="bertrand", preset="calvano"),
    "tabular kbc": tabular(CONTEST),
    "tabular evacuation": tabular(ROOM),
    "q_learning": sessions(ONE),
    "q_learning boltzmann": sessions(OTHER),
    "study": (lambda folder: make_run(small_study(), folder), lambda folder: run_study(small_study(), folder)),
}


@pytest.mark.parametrize(("one", "other"), [*itertools.permutations(LEARNERS, 2)])
def test_a_learners_folder_is_not_continued_by_another(tmp_path, one, other):
    LEARNERS[one][0](tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunError, match="holds a run of"):
        LEARNERS[other][1](tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
