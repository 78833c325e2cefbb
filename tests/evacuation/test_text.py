"""What players read, word for word: golden files, to be read as a player would after every wanted change.

`UPDATE_GOLDEN=1 pytest tests/evacuation/test_text.py` writes them anew.
"""

import os
import re
from pathlib import Path

import pytest

from llm_coop_envs.evacuation.slots import MoveOption
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies.llm.playing.packs import load_pack

GOLDEN = Path(__file__).parent / "golden"
ROW = [(5, 1), (5, 2), (5, 6), (5, 7), (10, 10)]
SMALL = {"rows": 12, "cols": 12, "people": 5}


def say(env, *, until="exit"):
    texts = ["The left exit is near. Come!", 'He said "wait"\nand ran', "", "Ich gehe nach unten 🏃", "nobody hears me"]
    while env.phase != until:
        env.step({f"evacuee_{i}": {"message": texts[i]} for i in env.on_turn.tolist()})


def choose(env, choice):
    env.step({f"evacuee_{i}": {"choice": choice} for i in env.on_turn.tolist()})


def talk_first(**settings):
    env = parallel_env(**SMALL, **settings)
    env.reset(seed=1, options={"positions": ROW})
    return env, int(env.on_turn[0])


def talk_later(**settings):
    env, _ = talk_first(**settings)
    while len(env.conversation.messages) < 2:
        say_once(env)
    return env, int(env.on_turn[0])


def say_once(env):
    env.step({f"evacuee_{i}": {"message": f"I am number {i} here."} for i in env.on_turn.tolist()})


def exit_choice(**settings):
    env, _ = talk_first(**settings)
    say(env)
    return env, 1


def move(**settings):
    env, _ = exit_choice(**settings)
    choose(env, 1)
    return env, int(env.on_turn[0])


def second_round(**settings):
    env, _ = exit_choice(replan_probability=1.0, **settings)
    choose(env, 1)
    while env.round == 1:
        choose(env, 3 + 1)
    say(env)
    return env, 3


def own_only(**settings):
    return second_round(information="own", memory=0, **settings)


def off_turn(**settings):
    env, _ = move(**settings)
    return env, next(i for i in range(5) if i not in env.on_turn.tolist())


def crowded(**settings):
    env = parallel_env(rows=9, cols=9, people=3, talk=False, engine="simultaneous", personas="none", **settings)
    env.reset(seed=0, options={"positions": [(7, 1), (7, 2), (6, 2)]})
    choose(env, 0)
    return env, 0


def seated(**settings):
    env = parallel_env(
        **SMALL, talk=False, desks=[[4, 4]], crowd_count="visible", personas="selfish", control="exit", **settings
    )
    env.reset(seed=1, options={"positions": ROW})
    return env, 2


def one_exit(**settings):
    env = parallel_env(
        rows=9, cols=9, people=2, talk=False, exits=[["door", 8, 4]], count_self=False, persona_swap=False, **settings
    )
    env.reset(seed=0, options={"positions": [(7, 4), (7, 3)]})
    choose(env, 0)
    choose(env, 1 + 1)
    return env, 0


def knocked_over(**settings):
    env = parallel_env(rows=11, cols=11, people=70, injury="active", talk=False, **settings)
    _, infos = env.reset(seed=0)
    return env, next(i for i, info in enumerate(infos.values()) if info["slots"].overtaken)


CASES = [
    talk_first,
    talk_later,
    exit_choice,
    move,
    second_round,
    own_only,
    off_turn,
    crowded,
    seated,
    one_exit,
    knocked_over,
]


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_text(case, wording):
    env, agent = case(wording=wording)
    text = env.look()[0][f"evacuee_{agent}"]["text"]
    path = GOLDEN / f"{wording}_{case.__name__}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_every_legal_answer_is_in_the_text_with_its_letter_or_else_its_number(wording):
    word = load_pack(wording).prompts("evacuation").word
    for case in (exit_choice, move, crowded, seated):
        env, agent = case(wording=wording)
        observations, infos = env.look()
        lines = observations[f"evacuee_{agent}"]["text"].split("\n")
        for option in infos[f"evacuee_{agent}"]["slots"].options:
            name = re.escape(word(option.name))
            line = next(
                line for line in lines if re.search(rf"^\W?{option.letter or option.choice}\W+{name}(\W|$)", line)
            )
            if isinstance(option, MoveOption):
                assert re.search(rf"{name}\W.*\b{option.row}\b.*\b{option.col}\b", line)


def test_all_wordings_give_the_same_facts():
    for case in CASES:
        slots = []
        for wording in ("en-a", "en-b", "de-a"):
            env, agent = case(wording=wording)
            slots.append(env.look()[1][f"evacuee_{agent}"]["slots"])
        assert slots[0] == slots[1] == slots[2]


@pytest.mark.parametrize(("wording", "words"), [("en-a", "out of the"), ("en-b", "out of the"), ("de-a", "heraus")])
def test_the_last_text_of_whoever_got_out_says_so_and_counts_nobody(wording, words):
    env = parallel_env(rows=9, cols=9, people=2, exits=[["door", 8, 4]], talk=False, control="exit", wording=wording)
    env.reset(seed=0, options={"positions": [(7, 4), (1, 1)]})
    while "evacuee_0" in env.agents:
        observations, *_, infos = env.step({agent: {"choice": 0} for agent in env.agents})
    assert infos["evacuee_0"]["slots"].left == "out"
    last = [line for line in observations["evacuee_0"]["text"].splitlines() if line][-1]
    assert words in last
    assert infos["evacuee_1"]["slots"].left == ""
    assert words not in observations["evacuee_1"]["text"]


def test_whoever_is_taken_out_or_hurt_is_not_out():
    env = parallel_env(
        **{"rows": 9, "cols": 9, "people": 2, "exits": [["door", 8, 4]], "talk": False, "control": "exit"},
        changes=[{"from_round": 2, "players": "evacuee_1", "settings": {"present": False}}],
    )
    env.reset(seed=0, options={"positions": [(1, 4), (1, 1)]})
    *_, infos = env.step({agent: {"choice": 0} for agent in env.agents})
    assert infos["evacuee_1"]["slots"].left == "gone"
    env = parallel_env(rows=11, cols=11, people=75, injury="active", talk=False, control="exit")
    reasons = set()
    for seed in range(20):
        env.reset(seed=seed)
        while env.agents and "hurt" not in reasons:
            *_, infos = env.step({agent: {"choice": 0} for agent in env.agents})
            reasons |= {info["slots"].left for info in infos.values()}
    assert "hurt" in reasons
