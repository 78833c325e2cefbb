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
from llm_coop_envs.wrappers.text import FLAGS, read_number


def test_official():
    parallel_api_test(TextView(ToyEnv(departures=True)), num_cycles=40)
    parallel_seed_test(lambda: TextView(ToyEnv()), num_cycles=40)


def test_strings_in_and_out():
    view = TextView(ToyEnv(players=2, rounds=1))
    texts, infos = view.reset(seed=0)
    assert all(isinstance(text, str) for text in texts.values())
    assert infos["player_0"] == {
        **{"round": 0, "step": 0, "turn": 1},
        **dict.fromkeys(("missing_action", "illegal_choice", "message_cut", "message_cleaned"), 0),
    }
    while view.unwrapped.phase == "talk":
        texts, *_ = view.step({agent: f"hello from {agent}" for agent in view.agents})
    assert '"hello from player_0"' in texts["player_1"]
    _, rewards, terminations, _, infos = view.step({"player_0": " 2 ", "player_1": "about 2"})
    assert view.unwrapped.last.tolist() == [2.0, 3.0]
    assert infos["player_0"]["illegal_choice"] == 0
    assert infos["player_1"]["illegal_choice"] == 1
    assert all(type(value) is int for info in infos.values() for value in info.values())
    assert all(terminations.values())
    assert all(math.isfinite(r) for r in rewards.values())


def test_every_flag_has_its_place():
    view = TextView(ToyEnv(message_length=5, levels=True))
    view.reset(seed=0)
    raised = set()
    actions = {"player_0": "too long", "player_1": "\ud800"}
    while view.agents:
        *_, infos = view.step(actions)
        raised |= {name for info in infos.values() for name, value in info.items() if value}
    assert raised >= {"turn", *FLAGS}


def test_spaces_are_as_long_as_what_is_written():
    assert TextView(ToyEnv(message_length=50)).action_space("player_0").max_length == 50
    assert TextView(ToyEnv(message_length=50, talk=False)).action_space("player_0").max_length == 32
    game = ToyEnv()
    assert TextView(game).observation_space("player_0") is game.observation_space("player_0")["text"]


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
