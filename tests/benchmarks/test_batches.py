"""What the measurement of batches counts, and what it says of peers that are missing."""

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.benchmarks.speed import batches


def test_agent_steps_are_counted():
    assert batches.batch(bertrand_v0.batch_env(5, preset="calvano"))(3) == 5 * 2 * 3
    assert batches.alone(batches.rock_paper_scissors())(4) == 2 * 4


@pytest.mark.rare
def test_who_has_left_is_not_counted_in_supersuit_either():
    pytest.importorskip("supersuit")
    play = batches.evacuation_in_supersuit()
    assert play(1) == 4 * 100
    assert play(3000) < 3000 * 4 * 100


def test_a_peer_that_is_not_installed_is_left_out_with_a_sentence(capsys, monkeypatch):
    monkeypatch.setattr(batches, "_rate", lambda play: play)

    def missing():
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    measures = batches.prepared({"peer: the market in JAX": missing, "ours": lambda: lambda steps: steps})
    assert list(measures) == ["ours"]
    assert capsys.readouterr().err == "peer: the market in JAX is left out: jax is not installed\n"


def test_rates_are_agent_steps_for_each_second_of_the_processor(monkeypatch):
    clock = iter(np.arange(0, 1000, 0.5))
    monkeypatch.setattr(batches.time, "process_time", lambda: next(clock))
    measure = batches._rate(lambda steps: 10 * steps)
    assert measure(0) == 10 * 4 / 0.5


def test_a_batch_is_compared_with_one_game_of_the_same_rules():
    names = batches.cases(4096)
    assert batches.single_case("evacuation of exits, batch of 256", names) == "evacuation of exits, one game"
    assert batches.single_case("evacuation, batch of 256", names) == "evacuation, 100 people, one game"
    assert batches.single_case("kbc nested, 24 players, batch of 9", names) == "kbc, 24 players, one game"
    assert batches.single_case("peer: the market in JAX", names) == "peer: the market in JAX"
