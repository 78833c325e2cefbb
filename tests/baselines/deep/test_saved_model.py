"""What stable-baselines3 saves plays as it decides there."""

import io
import zipfile

import gymnasium
import numpy as np
import pytest

from llm_coop_envs import bertrand_v0, policies
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.policies import ScriptedPolicy

sb3 = pytest.importorskip("stable_baselines3")
RELU = pytest.importorskip("torch").nn.ReLU
LEAKY = pytest.importorskip("torch").nn.LeakyReLU
pytestmark = pytest.mark.filterwarnings("ignore:.*maximum and minimum values are equal")


class Low(ScriptedPolicy):
    def decide(self, request):
        return {"choice": 1, "message": ""}


@pytest.mark.parametrize(
    ("algorithm", "kwargs", "settings"),
    [
        ("PPO", {}, {"preset": "calvano"}),
        ("A2C", {"policy_kwargs": {"activation_fn": RELU, "net_arch": [8]}}, {"preset": "calvano"}),
        ("DQN", {"learning_starts": 10}, {"preset": "calvano"}),
        ("PPO", {}, {}),
        ("PPO", {}, {"talk": False}),
        ("PPO", {"policy_kwargs": {"activation_fn": LEAKY}}, {"talk": False}),
        ("SAC", {"learning_starts": 10}, {"talk": False}),
    ],
)
def test_it_plays_what_it_would_have_chosen(algorithm, kwargs, settings, tmp_path):
    settings = {**settings, "rounds": 6}
    env = gymnasium.make("llm_coop/bertrand-v0", others=Low(), numeric=True, **settings)
    steps = {} if algorithm in ("DQN", "SAC") else {"n_steps": 64}
    model = getattr(sb3, algorithm)("MlpPolicy", env, seed=0, device="cpu", **steps, **kwargs)
    model.learn(64)
    model.save(tmp_path / "mine.zip")
    seen, over = env.reset(seed=5)[0], False
    while not over:
        seen, _, terminated, truncated, _ = env.step(model.predict(seen, deterministic=True)[0])
        over = terminated or truncated
    expected = env.unwrapped.env.state()
    game = bertrand_v0.parallel_env(record=True, **settings)
    policies.play(game, {"firm_0": policies.make(f"sb3:{tmp_path / 'mine.zip'}", play="best"), "firm_1": Low()}, seed=5)
    np.testing.assert_allclose(game.state(), expected, rtol=1e-5, atol=1e-6)
    assert not [event for event in game.events if event.get("flags")]


def test_nothing_in_the_file_is_executed(tmp_path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("data", '{"policy_kwargs": {}}')
        archive.writestr("policy.pth", b"cbuiltins\nexec\n(Vraise SystemExit\ntR.")
    (tmp_path / "evil.zip").write_bytes(data.getvalue())
    with pytest.raises(RunError, match="no model of stable-baselines3"):
        policies.make(f"sb3:{tmp_path / 'evil.zip'}")


def test_what_does_not_fit_is_a_sentence(tmp_path):
    (tmp_path / "no.zip").write_bytes(b"PK no archive")
    with pytest.raises(RunError, match="no model of stable-baselines3"):
        policies.make(f"sb3:{tmp_path / 'no.zip'}")
    sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu").save(tmp_path / "pole.zip")
    with pytest.raises(SettingsError, match="it sees 4 columns"):
        policies.play(bertrand_v0.parallel_env(rounds=2), policies.make(f"sb3:{tmp_path / 'pole.zip'}"), seed=0)
