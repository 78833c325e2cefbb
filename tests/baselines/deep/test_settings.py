import json

import pytest

from llm_coop_envs.baselines.deep.folder import TrainingFolder, open_folder
from llm_coop_envs.baselines.deep.settings import TrainSettings
from llm_coop_envs.errors import RunError, SettingsError


def test_defaults_by_scenario():
    kbc, bertrand = TrainSettings(env="kbc"), TrainSettings(env="bertrand", preset="calvano")
    evacuation = TrainSettings(env="evacuation", preset="no_talk")
    assert (kbc.algo, bertrand.algo, evacuation.algo) == ("ppo", "ppo", "maskable_ppo")
    assert kbc.reward_scale == 0.01
    equilibria = bertrand.environment().settings.equilibria
    assert bertrand.reward_scale == pytest.approx(1 / (equilibria.joint_profit[0] - equilibria.nash_profit[0]))
    assert TrainSettings(env="bertrand", settings={"reward": "normalised"}).reward_scale == 1.0
    assert bertrand.hyper["gamma"] == 0.95
    assert (kbc.potential, bertrand.potential) == (None, None)
    column, factor = evacuation.potential
    assert column == "nearest_distance"
    # A cell nearer is worth a round.
    assert factor == pytest.approx(-0.1 * 32 * 2**0.5)
    assert TrainSettings(env="evacuation", shaping=False).potential is None
    assert (kbc.networks, bertrand.networks, evacuation.networks) == ("shared", "independent", "shared")
    dqn = TrainSettings(env="bertrand", algo="dqn")
    assert (dqn.play, bertrand.play) == ("best", "sample")
    assert "exploration_fraction" in dqn.hyper
    # A batch for every 8 rows of a player; with few copies as often as with 8.
    rhythms = {n: TrainSettings(env="bertrand", algo="dqn", copies=n).hyper for n in (1, 8, 16, 64)}
    assert {n: (hyper["train_freq"], hyper["gradient_steps"]) for n, hyper in rhythms.items()} == {
        1: (4, 4),
        8: (4, 4),
        16: (2, 4),
        64: (1, 8),
    }
    sac = TrainSettings(env="bertrand", algo="sac")
    assert (sac.play, sac.networks, sac.copies, TrainSettings(env="bertrand", algo="sac", copies=3).copies) == (
        "best",
        "independent",
        1,
        3,
    )
    # The mean reward has no discount.
    assert "gamma" not in sac.hyper
    assert (sac.hyper["size"], sac.hyper["batch_size"], sac.points, dqn.points) == ("small", 128, None, 101)


def test_json_and_back():
    settings = TrainSettings(env="evacuation", settings={"control": "exit"}, hyper={"n_steps": 7}, steps=50)
    again = TrainSettings(**json.loads(json.dumps(settings.to_json())))
    assert again == settings
    assert again.hyper["n_steps"] == 7
    assert again.every == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"env": "evacuate"}, "did you mean 'evacuation'"),
        ({"env": "kbc", "algo": "pppo"}, "did you mean 'ppo'"),
        ({"env": "kbc", "algo": "sarsa"}, "known are dqn, maskable_ppo, ppo, sac"),
        (
            {"env": "kbc", "algo": "sac"},
            "env='kbc': lists its choices with these settings; needed is a range of numbers",
        ),
        ({"env": "bertrand", "algo": "sac", "hyper": {"size": "publishd"}}, r"hyper.size.*did you mean 'published'"),
        ({"env": "kbc", "preset": "halff"}, "did you mean 'half'"),
        ({"env": "kbc", "settings": {"playes": 3}}, "did you mean 'players'"),
        ({"env": "kbc", "settings": {"players": 1}}, "players=1"),
        ({"env": "kbc", "steps": 0}, "steps=0"),
        ({"env": "kbc", "seed": -1}, "seed=-1"),
        ({"env": "kbc", "copies": 0}, "copies=0"),
        ({"env": "kbc", "every": 0}, "every=0"),
        ({"env": "kbc", "episodes": 0}, "episodes=0"),
        ({"env": "kbc", "play": "worst"}, "one of sample, best"),
        ({"env": "kbc", "networks": "own"}, "one of shared, independent"),
        ({"env": "kbc", "reward_scale": 0}, "above 0"),
        ({"env": "kbc", "reward_scale": "1"}, "finite number"),
        ({"env": "kbc", "shaping": 1}, "true or false"),
        ({"env": "kbc", "hyper": {"n_steps": 0}}, r"hyper.n_steps=0"),
    ],
)
def test_bad_input(given, words):
    with pytest.raises(SettingsError, match=words):
        TrainSettings(**given)


def test_folders(tmp_path):
    settings = TrainSettings(env="kbc", steps=100)
    folder = open_folder(tmp_path / "run", settings)
    assert folder.done == 0
    assert TrainingFolder.open(tmp_path / "run").manifest == folder.manifest
    assert open_folder(tmp_path / "run", TrainSettings(env="kbc", steps=200, episodes=9)).manifest == folder.manifest
    with pytest.raises(RunError, match="begun for 100 steps"):
        open_folder(tmp_path / "run", TrainSettings(env="kbc", steps=99))
    with pytest.raises(RunError, match=r"kind 'training' with other settings \(env is 'kbc' there and 'bertrand' here"):
        open_folder(tmp_path / "run", TrainSettings(env="bertrand", steps=100))
    with pytest.raises(RunError, match=r"settings.players is None there and 3 here"):
        open_folder(tmp_path / "run", TrainSettings(env="kbc", steps=100, settings={"players": 3}))
    with pytest.raises(RunError, match="seed is 0 there and 1 here"):
        open_folder(tmp_path / "run", TrainSettings(env="kbc", steps=100, seed=1))


def test_a_training_without_its_progress_is_damaged(tmp_path):
    folder = open_folder(tmp_path, TrainSettings(env="kbc"))
    del folder.manifest["done"]
    folder.write()
    with pytest.raises(RunError, match=r"run\.json: is damaged \(KeyError\('done'\)\)"):
        open_folder(tmp_path, TrainSettings(env="kbc"))
