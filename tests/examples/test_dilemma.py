"""The dilemmas: payoffs against their published cells, scripted players against closed forms, official tests."""

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from code_lines import code_lines
from llm_chats import Canned, run

from dilemma.env import DilemmaEnv, DilemmaSettings
from dilemma.games import profiles
from dilemma.scenario import SCENARIO
from llm_coop_envs.core import registry
from llm_coop_envs.core.policy import Request, Seating
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.reports.headline import read_answers
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import load_study, parse_study
from llm_coop_envs.wrappers import NumericView

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

FOLDER = Path(__file__).parents[2] / "examples" / "dilemma"
PRESETS = tuple(DilemmaSettings.presets)
DILEMMAS = tuple(preset for preset in PRESETS if preset != "matching_pennies")


@pytest.fixture(autouse=True)
def dilemma(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


def measured(preset, *names, **fields):
    """The measures of an episode whose players are scripted, one name for all or one for each."""
    env = DilemmaEnv(preset=preset, record=True, **fields)
    players = [scripted.make(f"dilemma/{name}") for name in names]
    seats = players[0] if len(players) == 1 else dict(zip(env.possible_agents, players, strict=True))
    play(env, seats, seed=1)
    return SCENARIO.episode_metrics(env.events)


def test_it_is_short():
    assert sum(code_lines(path) for path in FOLDER.glob("*.py")) <= 600


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("stated", [False, True])
def test_official(preset, stated):
    def make(**options):
        return DilemmaEnv(preset=preset, stated=stated, rounds=5, talk=stated, **options)

    parallel_api_test(make(), num_cycles=30)
    parallel_seed_test(make, num_cycles=30)
    parallel_api_test(NumericView(DilemmaEnv(preset=preset, stated=stated, rounds=5)), num_cycles=30)


def test_payoffs_are_the_published_ones():
    def pay(preset, *actions):
        return DilemmaSettings.build(preset).pay(actions)

    assert pay("prisoners_dilemma", 0, 1) == (0, 3)
    assert pay("stag_hunt", 1, 0) == (3, 0)
    assert (pay("trust", 0, 1), pay("trust", 1, 0)) == ((0, 20), (6, 2))
    assert pay("matching_pennies", 0, 1) == (-1, 1)
    assert pay("public_goods", 0, 0, 1) == (1, 1, 2)
    assert (pay("travellers", 0, 3), pay("travellers", 2, 1), pay("travellers", 1, 1)) == ((0, 4), (5, 1), (4, 4))
    published = {"prisoners_dilemma": (1, 2), "public_goods": (1, 1.5), "travellers": (2, 5), "stag_hunt": (3, 5)}
    for preset, ends in {**published, "trust": (4, 10), "matching_pennies": (0, 0)}.items():
        assert DilemmaSettings.build(preset).ends == ends


@pytest.mark.parametrize("preset", PRESETS)
def test_no_payoff_is_beyond_the_extremes(preset):
    rules = DilemmaSettings.build(preset)
    payoffs = [value for profile in profiles(rules.players, len(rules.names)) for value in rules.pay(profile)]
    assert (min(payoffs), max(payoffs)) == rules.extremes


@pytest.mark.parametrize("preset", DILEMMAS)
def test_to_compete_is_an_equilibrium_and_to_cooperate_is_better(preset):
    rules = DilemmaSettings.build(preset)
    for player in range(rules.players):
        replies = rules.replies(player, (rules.competitive,) * (rules.players - 1))
        assert max(replies) == replies[-1]
    assert rules.ends[0] < rules.ends[1]


@pytest.mark.parametrize("preset", DILEMMAS)
@pytest.mark.parametrize("stated", [False, True])
def test_best_responders_never_cooperate_alone_and_reciprocity_does_when_repeated(preset, stated):
    once = measured(preset, "best_response", stated=stated)
    assert (once["cooperative"], once["gain"]) == (0.0, 0.0)
    for name in ("tit_for_tat", "grim", "cooperate"):
        again = measured(preset, name, rounds=15, continuation=0.8, stated=stated)
        assert (again["cooperative"], again["gain"]) == (1.0, 1.0)


def test_pennies_have_neither_cooperation_nor_a_gain():
    assert measured("matching_pennies", "best_response", rounds=4) == {"payoff": 0.0}


def test_repeated_prisoners_dilemmas_are_what_closed_forms_say():
    rounds = 10
    # Against always defecting, tit-for-tat and grim cooperate once: 0 + 9 x 1, and 3 + 9 x 1.
    for name in ("tit_for_tat", "grim"):
        row = measured("prisoners_dilemma", name, "defect", rounds=rounds)
        assert row["payoff"] == pytest.approx((9 + 12) / 2 / rounds)
        assert row["cooperative"] == 1 / (2 * rounds)
    assert measured("prisoners_dilemma", "cooperate", "defect", rounds=rounds)["payoff"] == 1.5
    # A best responder betrays tit-for-tat once and is punished for ever.
    assert measured("prisoners_dilemma", "tit_for_tat", "best_response", rounds=rounds)["cooperative"] == 1 / 20


def test_grim_does_not_forgive_and_forgets_between_episodes():
    env = DilemmaEnv(rounds=4, record=True, shown=1)
    grim = scripted.make("dilemma/grim")
    for _ in range(2):
        betrayer = [0, 1, 0, 0]
        env.reset(seed=1)
        seating = Seating({"player_0": grim}, ["player_0"])
        seating.begin("dilemma_v0", env.settings, env.possible_agents, np.random.SeedSequence(1))
        chosen = []
        for other in betrayer:
            views, infos = env.look()
            action = grim.decide(Request("player_0", views["player_0"], infos["player_0"]))
            chosen.append(action["choice"])
            env.step({"player_0": action, "player_1": {"choice": other}})
        assert chosen == [0, 0, 1, 1]


def test_actions_are_drawn_from_what_was_stated():
    env = DilemmaEnv(stated=True, rounds=2000, record=True)
    env.reset(seed=2)
    while env.agents:
        env.step({"player_0": {"choice": {"A": 30, "B": 70}}, "player_1": {"choice": 0}})
    choices = [event for event in env.events if event["type"] == "choice" and event["agent"] == "player_0"]
    assert all(event["stated"] == {"A": 30, "B": 70} for event in choices)
    cooperated = sum(event["choice"] == 0 for event in choices)
    # Binomial: five standard deviations.
    assert abs(cooperated - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5


@pytest.mark.parametrize("stated", [False, True])
def test_what_is_missing_or_illegal_counts_as_competitive_and_is_flagged(stated):
    env = DilemmaEnv(stated=stated, record=True)
    env.reset(seed=1)
    env.step({"player_0": {"choice": 7}})
    choices = [event for event in env.events if event["type"] == "choice"]
    assert [event["choice"] for event in choices] == [1, 1]
    assert [event["flags"] for event in choices] == [["illegal_choice"], ["missing_action"]]


def test_each_player_reads_its_own_payoffs():
    env = DilemmaEnv(preset="trust")
    observations, _ = env.reset(seed=1)
    assert (
        "If you choose A and the other player B, you get 0 points and the other 20." in observations["player_0"]["text"]
    )
    assert (
        "If you choose B and the other player A, you get 20 points and the other 0." in observations["player_1"]["text"]
    )


def test_a_model_states_probabilities():
    env = DilemmaEnv(stated=True, record=True)
    _, chat = run(env, Canned(act=["A: 60, B: 40", "B: 100, A: 0"]), repairs=0, tries=1)
    stated = [event["stated"] for event in env.events if event["type"] == "choice"]
    assert stated == [{"A": 60, "B": 40}, {"A": 0, "B": 100}]
    assert not any(word in text for _, text in chat.prompts("act") for word in ("cooperat", "defect", "dilemma"))


@pytest.mark.parametrize("preset", PRESETS)
def test_texts_never_say_what_is_studied(preset):
    env = DilemmaEnv(preset=preset, rounds=3, continuation=0.8)
    env.reset(seed=1)
    observations, *_ = env.step({agent: {"choice": 0} for agent in env.agents})
    text = observations["player_1"]["text"]
    assert not any(word in text.lower() for word in ("cooperat", "defect", "dilemma", "compet", "trust", "stag"))
    assert "80 %" in text
    assert all(name in text for name in env.settings.names[:1])


def test_snapshots_continue():
    env = DilemmaEnv(rounds=6, stated=True, record=True)
    env.reset(seed=4)
    env.step({agent: {"choice": {"A": 50, "B": 50}} for agent in env.agents})
    other = DilemmaEnv(rounds=6, stated=True, record=True)
    other.set_state(json.loads(json.dumps(env.get_state())))
    copied = copy.deepcopy(env)
    for game in (env, other, copied):
        while game.agents:
            game.step({agent: {"choice": {"A": 50, "B": 50}} for agent in game.agents})
    assert env.get_state() == other.get_state() == copied.get_state()


def test_a_study_is_played_and_measured(tmp_path):
    run_study(load_study(FOLDER / "study.yaml"), tmp_path / "run", workers=1)
    folder = open_run(tmp_path / "run")
    rows = {arm.name: SCENARIO.episode_metrics(folder.read_events(arm.name, seed)[1]) for arm, seed in folder.episodes}
    assert {name: row.get("cooperative") for name, row in rows.items()} == {
        **{f"{name}_once": 0.0 for name in ("prisoners", "stag", "trust", "goods", "travellers")},
        "pennies_once": None,
        "prisoners_again": 1.0,
    }


FORCED = """\
name: forced
conditions:
  - name: goods
    scenario: dilemma
    preset: public_goods
    settings: {rounds: 4}
    policies: {player_0: cooperate, all: defect}
    episodes: 1
    changes: [{from_round: 2, until_round: 3, players: player_1, policy: {name: forced, options: {choice: A}}}]
"""


def test_games_of_one_round_are_drawn_as_means_side_by_side(tmp_path):
    """A curve by round would be a single dot above another."""
    once = "\n".join(
        f"  - {{name: {name}, title: '{name}, once', scenario: dilemma, preset: {name}, "
        "policies: best_response, episodes: 2}"
        for name in ("stag_hunt", "trust", "matching_pennies")
    )
    study = parse_study(f"name: once\nseed: 1\nconditions:\n{once}\n", "once.yaml")
    run = run_study(study, tmp_path / "run", workers=1).run
    (section,), _ = read_run(run)
    (drawing,) = section.drawings()
    shares, payoffs = drawing.figure.axes
    assert [label.get_text() for label in shares.get_yticklabels()] == [
        f"{n}, once" for n in ("stag_hunt", "trust", "matching_pennies")
    ]
    assert len([line for line in shares.lines if line.get_marker() == "o"]) == 2  # pennies have no cooperative action
    low, high = shares.get_xlim()
    assert low <= 0.0 < 1.0 <= high  # shares that are all the same lie where they are of 0 to 1
    means = [row["payoff"] for arm in section.conditions for row in arm.metrics[:1]]
    assert [float(line.get_xdata()[0]) for line in payoffs.lines if line.get_marker() == "o"] == pytest.approx(means)
    (answer,) = read_answers(run)
    assert answer.caveats[-1] == "It has no value in 'matching_pennies, once'."


def test_whom_a_study_forces_is_measured_only_where_it_does_not(study_file, tmp_path):
    run_study(load_study(study_file(FORCED)), tmp_path / "run", workers=1)
    folder = open_run(tmp_path / "run")
    (arm, seed), *_ = folder.episodes
    row = SCENARIO.episode_metrics(folder.read_events(arm.name, seed)[1])
    # Shares of 1/3 in rounds 1 and 4, of 1/2 among the two others in rounds 2 and 3. A contribution is worth .5 to
    # everybody; two of them bring who contributed 1 and the third player 2.
    assert row["cooperative"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert row["payoff"] == pytest.approx(((0.5 + 1.5 + 1.5) / 3 + (1 + 2) / 2) / 2)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"players": 3}, "players"),
        ({"players": 1}, "players"),
        ({"payoffs": [[1, 2], [3, 4]]}, "payoffs"),
        ({"payoffs": [[[1, 2]], [[3, 4]]]}, "payoffs"),
        ({"payoffs": [[[1, float("inf")], [1, 1]], [[1, 1], [1, 1]]]}, "payoffs"),
        ({"actions": ["A", "a"]}, "actions"),
        ({"actions": "AB"}, "actions"),
        ({"game": "public_goods", "actions": ["A", "B", "C"]}, "actions"),
        ({"game": "travellers", "claims": [5, 2]}, "claims"),
        ({"game": "travellers", "claims": [2.5, 5]}, "claims"),
        ({"continuation": 1.2}, "continuation"),
        ({"game": "chicken"}, "game"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_settings_are_checked(fields, named):
    with pytest.raises(SettingsError, match=f"^{named}="):
        DilemmaSettings(**fields)
