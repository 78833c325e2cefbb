import math
import warnings

import pytest
from toy import ToyEnv

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test
    from pettingzoo.test.seed_test import parallel_seed_test

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.wrappers import TextView
from llm_coop_envs.wrappers.text import read_number


def test_official():
    parallel_api_test(TextView(ToyEnv(departures=True)), num_cycles=40)
    parallel_seed_test(lambda: TextView(ToyEnv()), num_cycles=40)


def test_strings_in_and_out():
    view = TextView(ToyEnv(players=2, rounds=1))
    texts, infos = view.reset(seed=0)
    assert all(isinstance(text, str) for text in texts.values())
    assert all("action_mask" not in info for info in infos.values())
    while view.unwrapped.phase == "talk":
        texts, *_ = view.step({agent: f"hello from {agent}" for agent in view.agents})
    assert '"hello from player_0"' in texts["player_1"]
    _, rewards, terminations, _, infos = view.step({"player_0": " 2 ", "player_1": "about 2"})
    assert view.unwrapped.last.tolist() == [2.0, 3.0]
    assert infos["player_0"]["flags"] == ()
    assert infos["player_1"]["flags"] == ("illegal_choice",)
    assert all(terminations.values())
    assert all(math.isfinite(r) for r in rewards.values())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        (" 7.0\n", 7),
        ("6.5", 6.5),
        ("-1", -1),
        ("nan", None),
        ("inf", None),
        ("7 or 8", None),
        ("", None),
        (7, None),
    ],
)
def test_one_number_or_nothing(text, value):
    assert read_number(text) == value


def test_only_around_the_environment_itself():
    with pytest.raises(SettingsError, match="directly around"):
        TextView(TextView(ToyEnv()))
