"""The four worked learners learn something, play in studies, and are recorded with their source."""

import pytest
from invoking import invoke
from learners.actor_critic import ActorCritic
from learners.exp3 import Exp3
from learners.sarsa import Sarsa
from learners.ucb import Ucb

from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs.folder import open_run

LEARNERS = {
    "sarsa": lambda: Sarsa(beta=8e-4, periods=8_000),
    "ucb": lambda: Ucb(periods=1_000),
    "exp3": lambda: Exp3(periods=4_000),
    "actor_critic": lambda: ActorCritic(periods=6_000),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_alone_in_the_market_it_finds_nearly_the_best_price(name):
    learned = LEARNERS[name]().learn(BertrandSettings.build("calvano", firms=1, grid_points=5), 0, 0)
    # Uniform prices would lose 16 %.
    assert 0.0 <= learned["learned_regret"] < 0.06


def test_with_a_memory_two_learners_stay_above_nash():
    learner = Sarsa(beta=4e-4, periods=20_000)
    learned = learner.learn(BertrandSettings.build("calvano", grid_points=5), 0, 0)
    assert learned["learned_gain"] > 0.2
    again = learner.learn(BertrandSettings.build("calvano", grid_points=5), 0, 0)
    assert again == learned


def test_it_plays_in_the_comparison(tmp_path):
    pytest.importorskip("numba")
    player = "learners.exp3:Exp3 {periods: 300}"
    options = ("--policy", player, "--only", "given-calvano", "--episodes", 1, "--rounds", 20, "--workers", 1)
    assert invoke("run", "collusion_comparison", *options, "-o", tmp_path / "run").exit_code == 0
    run = open_run(tmp_path / "run")
    assert run.manifest["policies"] == {"learners.exp3:Exp3": "own policy"}
    assert len(run.manifest["program"]["learners.exp3:Exp3"][0]) == 16
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "own policy Exp3" in page
    assert "expectations over the mixed strategies" in page
