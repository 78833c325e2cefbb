"""The texts that players read, kept as golden files.

`UPDATE_GOLDEN=1 python -m pytest tests/kbc/test_text.py` writes them anew; then read them.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from hint_words import ENGLISH

from llm_coop_envs import kbc_v0
from llm_coop_envs.kbc.env import KBCEnv

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("UPDATE_GOLDEN") == "1"

EPISODES = {
    "nested": {"players": 3, "exchanges": 2},
    "nested_silent": {"players": 3, "exchanges": 1, "talk": False},
    "single": {"preset": "shall_we_talk", "players": 3, "personas": ["You study mathematics and like to be exact."]},
    "single_together": {
        "players": 3,
        "session": "single",
        "talk_turns": 1,
        "talk_mode": "simultaneous",
        "reward_rule": "exclusive",
        "ratio": "1/2",
        "offset": 5,
        "unit": 2.5,
        "currency": "",
    },
    "repeated": {"preset": "large_scale", "players": 3, "rounds": 3},
    "repeated_talk": {"players": 2, "session": "repeated", "rounds": 2, "talk_turns": 1, "low": 10, "high": 90},
    "repeated_long": {"players": 2, "session": "repeated", "rounds": 4, "history": 2, "talk": False, "groups": 2},
    "repeated_own": {
        **{"players": 3, "session": "repeated", "rounds": 4, "talk_turns": 1, "information": "own", "memory": 2},
        "groups": [1, 2],
    },
    "groups": {
        "players": 5,
        "groups": [2, 2, 1],
        "session": "repeated",
        "rounds": 3,
        "talk": False,
        "reward_rule": "amplified",
        "ratio": 2,
        "offset": -20,
    },
    "groups_tolerance": {
        "players": 4,
        "groups": 2,
        "session": "single",
        "talk": False,
        "choices": "real",
        "low": 0.5,
        "winner_rule": "tolerance",
        "tolerance": 2,
    },
    "groups_first_value": {
        "players": 4,
        "groups": 2,
        "session": "single",
        "talk": False,
        "winner_rule": "first_value",
        "reward_rule": "exclusive",
    },
}
SAYINGS = (
    "Shall we all name 20?",
    'I had "33" in mind,\nbut 20 is fine.',
    "OK \N{THUMBS UP SIGN}",
    "20 it is.",
)


def player_text(name, wording):
    """What `player_1` reads in an episode, step by step, under a line that says where."""
    env = kbc_v0.parallel_env(**EPISODES[name], wording=wording)
    observations, infos = env.reset(seed=6)
    parts = []
    step = 0
    while True:
        slots = infos["player_1"]["slots"]
        where = f"round {infos['player_1']['round']}, {slots.phase}, {'on turn' if slots.on_turn else 'not on turn'}"
        parts.append(f"##### step {step}: {where}\n{observations['player_1']['text']}\n")
        if not env.agents:
            return "\n".join(parts)
        actions = {}
        for i, agent in enumerate(env.agents):
            number = 12 + 11.125 * i + 3 * step
            choice = env.settings.to_choice(number)
            message = "" if step % 7 == 5 else SAYINGS[step % len(SAYINGS)]
            actions[agent] = {"choice": choice, "message": message}
        observations, _, _, _, infos = env.step(actions)
        step += 1


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("name", EPISODES)
def test_texts_are_the_golden_ones(name, wording):
    path = GOLDEN / f"{name}_{wording}.txt"
    text = player_text(name, wording)
    if WRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_golden_file_belongs_to_an_episode():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {
        f"{name}_{w}" for name in EPISODES for w in ("en-a", "en-b", "de-a")
    }


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_no_text_says_what_is_studied(wording):
    folder = KBCEnv.home / "prompts" / wording
    texts = [player_text(name, wording) for name in EPISODES] + [
        p.read_text(encoding="utf-8") for p in folder.glob("*.jinja")
    ]
    for text in texts:
        assert [word for word in (*ENGLISH, "this study") if word in text.lower()] == []


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_every_rule_shows_in_the_text(wording):
    """Contests that differ in a rule that players must know read differently."""
    rules = [
        {},
        {"players": 4},
        {"low": 1},
        {"high": 99},
        {"ratio": "1/2"},
        {"ratio": 2},
        {"offset": 5},
        {"offset": -5},
        {"choices": "real"},
        {"winner_rule": "first_value"},
        {"winner_rule": "tolerance"},
        {"winner_rule": "tolerance", "tolerance": 2},
        {"reward_rule": "exclusive"},
        {"reward_rule": "amplified"},
        {"unit": 1},
        {"currency": "marks"},
        {"session": "single"},
        {"session": "single", "talk_turns": 3},
        {"session": "single", "talk_mode": "simultaneous"},
        {"session": "repeated"},
        {"groups": 2},
        {"groups": [1, 2]},
        {"groups": 2, "winner_rule": "first_value"},
        {"groups": 2, "winner_rule": "tolerance"},
        {"groups": 2, "reward_rule": "exclusive"},
        {"groups": 2, "reward_rule": "amplified"},
        {"groups": 2, "session": "repeated"},
        {"personas": ["I am new here."]},
    ]
    texts = [
        kbc_v0.parallel_env(**{"players": 3, **rule}, wording=wording).reset(seed=0)[0]["player_2"]["text"]
        for rule in rules
    ]
    assert len(set(texts)) == len(rules)


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_texts_have_no_loose_ends(wording):
    for name in EPISODES:
        for line in player_text(name, wording).split("\n"):
            assert line == line.rstrip()
            assert "  " not in line
            assert " ." not in line.replace(" ...", "")
        assert "\n\n\n\n" not in player_text(name, wording)


def test_whole_numbers_have_no_decimal_point():
    env = kbc_v0.parallel_env(players=2, choices="real", low=0.0, high=100.0, session="repeated", rounds=2, talk=False)
    env.reset(seed=0)
    observations, *_ = env.step({agent: {"choice": np.array([30.0])} for agent in env.agents})
    text = observations["player_0"]["text"]
    assert "30.0" not in text
    assert "100.0" not in text


def test_a_folder_of_templates_replaces_the_wording(tmp_path):
    (tmp_path / "observation.jinja").write_text("{{ me }} of {{ players }}: {{ phase }}")
    env = kbc_v0.parallel_env(players=2, wording=str(tmp_path))
    assert env.reset(seed=0)[0]["player_1"]["text"] == "player_1 of 2: act"
