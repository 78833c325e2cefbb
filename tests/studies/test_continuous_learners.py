"""The study of learners that ask any price of a range: its market, and how networks are tested in it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from llm_coop_envs.baselines.deep.network import SQUASHED, Network
from llm_coop_envs.baselines.deep.shipped import find_networks
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import load_study

NAME = "continuous_learners"


def constant(number, seed):
    """A network that asks the same price always."""
    training = {"seed": seed, "preset": "calvano", "settings": {}, "steps": 20_000, "networks": "independent"}
    weights, bias = np.zeros((2, 2, 4), np.float32), np.array([[number, -20.0]] * 2, np.float32)
    return Network(
        scenario="bertrand",
        features=("prices_known", "own_price", "rival_price_1", "own_profit"),
        layers=((weights, bias),),
        activation="leaky_relu",
        output=SQUASHED,
        about={"training": training, "play": "best"},
    )


def test_prices_are_those_between_the_ends_of_the_grid():
    study = load_study(NAME)
    grid = BertrandSettings.build("calvano").grids[0]
    ranges = {
        (one.settings["price_floor"], one.settings["price_cap"])
        for one in (*study.conditions, *study.optional)
        if one.settings["prices"] == "continuous"
    }
    ((low, high),) = ranges
    assert (low, high) == pytest.approx((grid[0], grid[-1]))


def test_networks_are_named_by_a_pattern_and_tested_training_by_training(tmp_path):
    for seed, number in ((2, 0.5), (9, 0.25), (10, 0.0)):
        (tmp_path / f"sac_{seed}.npz").write_bytes(constant(number, seed).to_bytes())
    pattern = f"sb3:{tmp_path}/sac_*"
    study = select(with_players(load_study(NAME), read_player(pattern)), only=["given"], episodes=3, rounds=20)
    run_study(study, tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "episodes.parquet").to_pylist()
    # 10 comes after 9.
    assert [row["training_seed"] for row in rows] == [2, 9, 10]
    low, high = (study.conditions[0].settings[name] for name in ("price_floor", "price_cap"))
    for row, number in zip(rows, (0.5, 0.25, 0.0), strict=True):
        share = (np.tanh(number) + 1) / 2
        assert row["end_price"] == pytest.approx(low + share * (high - low), abs=1e-6)
        # Nobody answers, so that every cut pays, and prices are back at once.
        assert (row["deviation_answer"], row["deviation_unprofitable"], row["deviation_returned"]) == (0.0, 0.0, 1.0)
    page = write_report(tmp_path / "run").read_text()
    assert "20,000 steps in the market of calvano" in page
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    with pytest.raises(SettingsError, match="fits no shipped policy, training folder or file"):
        find_networks(f"{tmp_path}/ppo_*")
