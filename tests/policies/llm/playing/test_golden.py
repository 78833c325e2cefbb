"""The prompts of every call, in every shipped pack, as files to read.

After a wanted change set UPDATE_GOLDEN=1, run this once, and read the new files as a player would.
"""

import os
from pathlib import Path

import pytest
from llm_chats import run
from own_pack import COMPLETE

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.interface.slots import Heard
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.packs import load_pack

GOLDEN = Path(__file__).parent / "golden"

# (calls, name, environment, settings, which prompt of the call is shown: from the front, or the back if negative)
SITUATIONS = [
    ("kbc", "nested", kbc_v0, {"players": 4}, {}, {"choose": [0, -1], "talk": [0, -1]}),
    (
        "kbc",
        "single",
        kbc_v0,
        {"preset": "shall_we_talk", "players": 3},
        {"number_first": True, "personas": "agreeable"},
        {"choose": [-1], "talk": [-1]},
    ),
    (
        "kbc",
        "separate_plan",
        kbc_v0,
        {"players": 3},
        {"separate_plan": True, "personas": "uncooperative"},
        {"plan": [0, -1], "choose": [-1]},
    ),
    (
        "kbc",
        "repeated_groups",
        kbc_v0,
        {"preset": "large_scale", "players": 5, "groups": 2, "reward_rule": "exclusive", "offset": "5", "rounds": 3},
        {"own_reasons": 2, "answers": "reason"},
        {"choose": [-1]},
    ),
    (
        "kbc",
        "first_value_groups",
        kbc_v0,
        {
            "players": 4,
            "groups": 2,
            "winner_rule": "first_value",
            "reward_rule": "amplified",
            "offset": "-1/2",
            "ratio": 2,
            "high": 10,
            "talk_mode": "simultaneous",
            "session": "single",
        },
        {"answers": "json"},
        {"choose": [0], "talk": [0]},
    ),
    (
        "kbc",
        "two_players_tolerance",
        kbc_v0,
        {"players": 2, "winner_rule": "tolerance", "choices": "real", "reward_rule": "independent", "talk": False},
        {"personas": "explicit_cooperation", "answers": "json"},
        {"choose": [0]},
    ),
    (
        "kbc",
        "own",
        kbc_v0,
        {
            **{"players": 3, "session": "repeated", "rounds": 3, "talk_turns": 1, "groups": 2, "order": "fixed"},
            **{"information": "own", "memory": 1},
        },
        {"own_reasons": 9},
        {"talk": [-3], "choose": [-1]},
    ),
    (
        "bertrand",
        "own",
        bertrand_v0,
        {
            **{"preset": "team_up_linear", "rounds": 6, "planning_period": 2, "exchanges": 1, "opener": "fixed"},
            **{"information": "own", "memory": 2},
        },
        {},
        {"talk": [-1], "plan": [-1], "price": [-1]},
    ),
    (
        "bertrand",
        "team_up",
        bertrand_v0,
        {"preset": "team_up_linear", "rounds": 41},
        {"parameters": {"default": {"max_tokens": 100}}},
        {"talk": [0, 5, 125, -1], "plan": [0, -1], "price": [0, 40, -1]},
    ),
    (
        "bertrand",
        "silent_grid",
        bertrand_v0,
        {"preset": "calvano", "grid_points": 4, "rounds": 3, "firms": 3},
        {"personas": "explore", "answers": "reason"},
        {"price": [0, -1]},
    ),
    (
        "bertrand",
        "alone",
        bertrand_v0,
        {"preset": "fish_monopoly", "rounds": 3, "price_unit": 1e8},
        {},
        {"price": [0, -1]},
    ),
    (
        "bertrand",
        "objects",
        bertrand_v0,
        {"preset": "team_up", "rounds": 21, "exchanges": 1, "firms": 3},
        {"answers": "json", "personas": "explicit_cooperation"},
        {"talk": [-1], "plan": [0], "price": [-1]},
    ),
    (
        "bertrand",
        "files",
        bertrand_v0,
        {"preset": "fish_3_2", "rounds": 3},
        {"own_files": True, "personas": ["long_run", "long_run_exploring"], "rounds_shown": 1},
        {"period": [0, -1]},
    ),
    (
        "bertrand",
        "tools",
        bertrand_v0,
        {"preset": "fish", "firms": 3, "rounds": 4},
        {"tools": 3, "answers": "json", "personas": "long_run_careful"},
        {"tool": [0, -1], "note": [-1], "price": [-1]},
    ),
    (
        "evacuation",
        "small",
        evacuation_v0,
        {"preset": "small", "people": 12, "rounds": 6, "replan_probability": 0.5},
        {},
        {"talk": [0, -1], "panic": [0], "evaluate": [0], "exit": [0, -1], "move": [0, -1]},
    ),
    (
        "evacuation",
        "objects",
        evacuation_v0,
        {
            "preset": "small",
            "people": 30,
            "rounds": 4,
            "engine": "simultaneous",
            "personas": "selfish",
            "crowd_count": "visible",
            "replan_probability": 1.0,
            "message_length": 200,
        },
        {"answers": "json", "feeling_in_talk": True},
        {"talk": [-1], "panic": [-1], "evaluate": [-1], "exit": [-1], "move": [12]},
    ),
    (
        "evacuation",
        "own",
        evacuation_v0,
        {"preset": "small", "people": 4, "rounds": 3, "replan_probability": 1.0, "information": "own", "memory": 0},
        {},
        {"talk": [0], "panic": [0], "exit": [-1], "move": [-1]},
    ),
    (
        "evacuation",
        "summarised",
        evacuation_v0,
        {"preset": "small", "people": 3, "rounds": 1},
        {"summarised": True, "personas": ["open", "neurotic"]},
        {"talk": [0], "exit": [0]},
    ),
    (
        "evacuation",
        "alone",
        evacuation_v0,
        {"preset": "single", "personas": "none", "exits": [["left", 5, 0]], "talk": False, "diagonals": False},
        {"answers": "reason", "parameters": {"default": {"max_tokens": 512}}},
        {"panic": [0], "exit": [0], "move": [0]},
    ),
]


# What the pack of Fish et al. says in words of its own.
FISH = [
    *(one for one in SITUATIONS if one[1] == "files"),
    (
        "bertrand",
        "files_alone",
        bertrand_v0,
        {"preset": "fish_monopoly", "rounds": 3},
        {"own_files": True, "personas": "long_run", "parameters": {"default": {"max_tokens": 400}}},
        {"period": [0, -1]},
    ),
    (
        "bertrand",
        "files_talking",
        bertrand_v0,
        {"preset": "team_up_linear", "rounds": 41, "firms": 3, "exchanges": 1},
        {"own_files": True, "answers": "json", "personas": "long_run_careful"},
        {"period": [0, -1]},
    ),
    (
        "bertrand",
        "files_in_turn",
        bertrand_v0,
        {"preset": "klein", "rounds": 3, "information": "own", "history_window": 3},
        {"own_files": True},
        {"period": [0, -1]},
    ),
]
SHOWN = [*((pack, one) for one in SITUATIONS for pack in COMPLETE), *(("fish", one) for one in FISH)]


@pytest.mark.parametrize(("pack", "situation"), SHOWN, ids=[f"{one[0]}-{one[1]}-{pack}" for pack, one in SHOWN])
def test_prompts(pack, situation):
    scenario, name, module, settings, llm, wanted = situation
    env = module.parallel_env(**settings)
    policy, chat = run(env, pack=pack, **llm)
    assert policy.counters.total().fallbacks == 0
    for call, places in wanted.items():
        prompts = chat.prompts(call)
        parts = []
        for place in places:
            key, prompt = prompts[place]
            parts.append(f"##### {key.agent}, step {key.step}\n{prompt}\n")
        path = GOLDEN / pack / f"{scenario}-{call}-{name}.txt"
        text = "\n".join(parts)
        if os.environ.get("UPDATE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


def test_no_golden_file_is_left_over():
    assert {path.name for path in GOLDEN.iterdir()} == {pack for pack, _ in SHOWN}
    for pack in {pack for pack, _ in SHOWN}:
        wanted = {f"{one[0]}-{call}-{one[1]}.txt" for name, one in SHOWN if name == pack for call in one[5]}
        shared = {f"{name}.txt" for name in COMMON} if pack in COMPLETE else set()
        assert {path.name for path in (GOLDEN / pack).iterdir()} == wanted | shared


COMMON = {
    "repair": [
        {"kind": "number", "answer": Note(1, 'I think "7"\nor 8.'), "low": "2", "high": "14", "integer": False},
        {
            "kind": "number",
            "answer": Note(1, "33 or 22"),
            "low": "0",
            "high": "100",
            "integer": True,
            "answer_as": "json",
        },
        {"kind": "number", "answer": Note(1, "low"), "low": "1.5", "high": "2", "allowed": (1.5, 2.0)},
        {"kind": "option", "answer": Note(1, "the near one"), "options": ("left", "right")},
        {"kind": "option", "answer": Note(1, "go"), "options": ("a) right", "b) down"), "answer_as": "json"},
    ],
    "again": [
        {"why": "illegal", "kind": "number", "value": "20", "low": "2", "high": "14"},
        {"why": "truncated", "kind": "number", "low": "0", "high": "100", "integer": True},
        {"why": "empty", "kind": "number", "low": "1.5", "high": "2", "allowed": (1.5, 2.0)},
        {"why": "ambiguous", "kind": "option", "options": ("left", "right")},
        {"why": "illegal", "kind": "option", "options": ("a) right", "b) down")},
        {"why": "refused", "kind": "text"},
    ],
    "summary": [
        {"summary": None},
        {"summary": Note(1, "player_1 named 20.")},
    ],
}
USUAL = {
    "answer_as": "plain",
    "key": "price",
    "allowed": (),
    "options": (),
    "passing": False,
    "pattern": "",
    "integer": False,
    "value": "",
    "low": "",
    "high": "",
    "me": "player_0",
    "words": 150,
    "heard": (Heard(speaker="player_1", text="20?", own=False), Heard(speaker="player_0", text="Yes.", own=True)),
}


@pytest.mark.parametrize("pack", COMPLETE)
@pytest.mark.parametrize("name", COMMON)
def test_templates_of_no_scenario(pack, name):
    rendered = [load_pack(pack).templates.render(f"{name}.jinja", {**USUAL, **values}) for values in COMMON[name]]
    text = "\n\n#####\n".join(rendered) + "\n"
    path = GOLDEN / pack / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
