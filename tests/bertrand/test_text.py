"""What firms read: golden files for every phase, in both wordings."""

import os
import re
from pathlib import Path

import pytest

from llm_coop_envs import bertrand_v0

GOLDEN = Path(__file__).parent / "golden"


def path_of_prices(number):
    """Prices that move, with and without decimals, the same in every run."""
    return 4 + (number % 7) * 0.5, 8 - (number * 37 % 100) / 25


def advance(env, number, phase, spoken=0, lines=()):
    """Play to round `number`, there to `phase`, there until `spoken` have spoken; return the texts."""
    observations, _ = env.look()
    messages = iter(lines)
    while env.round < number or env.phase != phase or len(env.conversation.messages) < spoken:
        actions = {}
        if env.phase == "talk":
            text = next(messages, "Good morning.") if env.round == number else ""
            actions = {env.possible_agents[i]: {"message": text} for i in env.on_turn.tolist()}
        else:
            for i, price in enumerate((path_of_prices(env.round) + (6.0,) * env.n_players)[: env.n_players]):
                choice = (env.round * (i + 3)) % 15 if env.settings.prices == "grid" else price
                actions[env.possible_agents[i]] = {"choice": choice}
        observations, *_ = env.step(actions)
    return observations


TALK = {"opener": "fixed", "collusion_window": 0}
LINES = ["Shall we say 7.50?", 'Fine, "7.50".\nRound 21: 9', "É bom. 好"]
SCENES = {
    "forced_first_round_talk": ({"preset": "team_up", **TALK}, (1, "talk"), "firm_0"),
    "forced_first_round_act": ({"preset": "team_up", **TALK}, (1, "act", 0), "firm_1"),
    "second_round_silent": ({"preset": "team_up", **TALK, "talk": False}, (2, "act"), "firm_1"),
    "talk_on_turn": ({"preset": "team_up", **TALK}, (4, "talk", 3, LINES), "firm_1"),
    "talk_off_turn": ({"preset": "team_up", **TALK}, (4, "talk", 3, LINES), "firm_0"),
    "act_after_talk": ({"preset": "team_up", **TALK}, (4, "act", 3, LINES), "firm_0"),
    "planning_round": ({"preset": "team_up_linear", **TALK}, (41, "talk"), "firm_0"),
    "after_planning": ({"preset": "team_up_linear", **TALK}, (42, "act"), "firm_0"),
    "many_rounds": ({"preset": "team_up", **TALK, "talk": False}, (426, "act"), "firm_1"),
    "grid_first_round": ({"preset": "calvano", "initial_prices": 1.5}, (1, "act"), "firm_0"),
    "grid_later": ({"preset": "calvano", "bins": 0, "history_window": 2}, (4, "act"), "firm_1"),
    "three_firms": (
        {"preset": "team_up", **TALK, "firms": 3, "exchanges": 1, "bin_size": 3, "bins": 2, "history_window": 3},
        (8, "talk", 2, LINES),
        "firm_2",
    ),
    "alone": ({"preset": "fish_monopoly", "price_unit": 1e8}, (3, "act"), "firm_0"),
    "after_the_talk": ({"preset": "team_up", **TALK, "talk_until": 3}, (4, "act"), "firm_0"),
    "in_turn_first_round": (
        {"preset": "calvano", "initial_prices": 1.5, "moves": "alternating"},
        (1, "act"),
        "firm_0",
    ),
    "in_turn_off_turn": ({**TALK, "talk": False, "initial_prices": 1.5, "moves": "alternating"}, (4, "act"), "firm_0"),
    "in_turn_three_firms": (
        {"preset": "calvano", "firms": 3, "moves": "alternating", "bins": 0},
        (3, "act"),
        "firm_2",
    ),
    "own": ({"preset": "team_up", **TALK, "information": "own", "memory": 2}, (5, "act", 3, LINES), "firm_0"),
    "plain_first_round": ({**TALK, "talk": False}, (1, "act"), "firm_0"),
}


def scene(name, wording):
    settings, where, reader = SCENES[name]
    env = bertrand_v0.parallel_env(**settings, wording=wording)
    env.reset(seed=1)
    return advance(env, *where)[reader]["text"]


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("name", SCENES)
def test_golden(name, wording):
    text = scene(name, wording) + "\n"
    path = GOLDEN / f"{name}_{wording}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("name", SCENES)
def test_texts_are_tidy(name, wording):
    text = scene(name, wording)
    assert "\n\n\n" not in text
    assert "  " not in text
    assert not re.search(r"[ \t]\n", text)
    assert not re.search(r"\b(None|True|False|nan|np\.|float)\b", text)
    assert text.strip().endswith((".", ").", "97018", "price 1.97018", "06298"))


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_the_other_firms_business_stays_hidden(wording):
    """What a rival sold and earned appears in nobody's text."""
    env = bertrand_v0.parallel_env(
        preset="team_up", talk=False, force_first_price=False, record=True, wording=wording, bins=0
    )
    env.reset(seed=0)
    for number in range(1, 6):
        observations, *_ = env.step({"firm_0": {"choice": 5 + number / 7}, "firm_1": {"choice": 8 - number / 9}})
        event = [e for e in env.events if e["type"] == "round"][-1]
        for i, other in ((0, 1), (1, 0)):
            text = observations[f"firm_{i}"]["text"]
            assert f"{event['demand'][i]:.6g}" in text
            assert f"{event['profits'][i]:.6g}" in text
            assert f"{event['prices'][other]:.6g}" in text
            assert f"{event['demand'][other]:.6g}" not in text
            assert f"{event['profits'][other]:.6g}" not in text


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_the_demand_and_the_marks_stay_hidden(wording):
    settings = {"preset": "team_up_linear", "collusion_window": 0, "wording": wording}
    env = bertrand_v0.parallel_env(**settings)
    env.reset(seed=0)
    text = advance(env, 3, "act")["firm_0"]["text"]
    for secret in ("1400", "200 p", "0.0066", "0.0033", "linear", "logit", "1200 rounds", "of 1200"):
        assert secret not in text.replace("2; 1200", "")


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
def test_a_window_of_no_rounds_is_not_a_first_round(wording):
    env = bertrand_v0.parallel_env(talk=False, history_window=0, bins=0, wording=wording)
    first, _ = env.reset(seed=0)
    later = advance(env, 2, "act")
    for text in ("No round has been played yet", "nothing has been sold"):
        assert text not in later["firm_0"]["text"]
    assert len(first["firm_0"]["text"]) > len(later["firm_0"]["text"])


def test_the_bounds_named_are_the_bounds():
    """Whoever answers with a bound as printed is not flagged."""
    for settings in ({"price_unit": 3.2, "price_floor": "cost"}, {"price_cap": 12.345678901}, {"preset": "fish_10"}):
        env = bertrand_v0.parallel_env(**{"talk": False, **settings})
        observations, _ = env.reset(seed=0)
        low, high = re.search(r"any number from (\S+) to (\S+), decimals", observations["firm_0"]["text"]).groups()
        *_, infos = env.step({"firm_0": {"choice": float(low)}, "firm_1": {"choice": float(high)}})
        assert [info["flags"] for info in infos.values()] == [(), ()]
