"""The statistic that the target is made from, and who the others are said to be."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.metrics import MEASURES
from llm_coop_envs.kbc.reference import comparable
from llm_coop_envs.kbc.rules import settle
from llm_coop_envs.kbc.settings import OPPONENTS, STATISTICS, KBCSettings
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.wrappers import NumericView

WORDINGS = ("en-a", "en-b", "de-a")
LEFT_HANDED = "They are all left-handed."


def settled(numbers, **fields):
    settings = KBCSettings(players=len(numbers), ratio="1/2", **fields)
    return settle(np.array(numbers, dtype=np.int64 if settings.integer else np.float64), settings)


@pytest.mark.parametrize("choices", ["integer", "real"])
@pytest.mark.parametrize(
    ("statistic", "numbers", "target"),
    [
        ("mean", [10, 20, 60, 90], 22.5),
        ("median", [90, 20, 10, 60], 20),
        ("median", [90, 20, 10], 10),
        ("max", [10, 90, 20], 45),
    ],
)
def test_the_target_is_made_from_the_statistic(statistic, numbers, target, choices):
    done = settled(numbers, statistic=statistic, choices=choices)
    assert done.target == target
    assert done.mean == pytest.approx(np.mean(numbers))
    nearest = min(abs(number - target) for number in numbers)
    assert done.winners.tolist() == [abs(number - target) == nearest for number in numbers]


@pytest.mark.parametrize(("statistic", "target"), [("median", Fraction(11, 2)), ("max", Fraction(50))])
def test_groups_compete_by_the_statistic_of_their_means(statistic, target):
    done = settled([10, 12, 3, 5, 100], statistic=statistic, groups=[2, 2, 1], offset=0)
    assert done.group_numbers.tolist() == [11, 4, 100]
    assert done.target == target


def test_players_who_have_left_do_not_count():
    settings = KBCSettings(players=3, ratio="1/2", statistic="max")
    assert settle(np.array([10, 20, 90]), settings, np.array([0, 1])).target == 10


def texts(**settings):
    env = kbc_v0.parallel_env(players=3, session="single", **settings)
    observations, infos = env.reset(seed=0)
    return env, observations["player_0"], infos["player_0"]["slots"]


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_tells_the_statistic_and_the_others(wording):
    seen = {texts(wording=wording, statistic=statistic)[1]["text"] for statistic in STATISTICS}
    assert len(seen) == len(STATISTICS)
    plain = texts(wording=wording)[1]["text"].splitlines()
    told = []
    for opponents in (*OPPONENTS, LEFT_HANDED):
        lines = texts(wording=wording, opponents=opponents)[1]["text"].splitlines()
        (line,) = [line for line in lines if line not in plain]
        assert [each for each in lines if each in plain] == plain
        told.append(line)
    assert len(set(told)) == len(told)
    assert told[-1].endswith(LEFT_HANDED)


def test_slots_and_features_tell_them():
    env, seen, slots = texts(statistic="median", opponents="experts")
    assert (slots.statistic, slots.opponents) == ("median", "experts")
    told = dict(zip(env.feature_names, seen["observation"].tolist(), strict=True))
    assert [told[f"statistic_{name}"] for name in STATISTICS] == [0, 1, 0]
    assert [name for name, value in told.items() if name.startswith("said_") and value] == ["said_experts"]
    assert env.observation_space("player_0").contains(seen)
    env, seen, _ = texts(opponents=LEFT_HANDED)
    assert env.feature_names[-1] == "said_otherwise"
    assert seen["observation"][-1] == 1
    view = NumericView(env)
    assert view.observation_space("player_0").contains(view.reset(seed=0)[0]["player_0"])


def test_by_default_nothing_is_told():
    env, _, slots = texts()
    assert not {"statistic", "opponents"} & env.settings.to_json().keys()
    assert len(env.feature_names) == 8
    assert (slots.statistic, slots.opponents) == ("mean", "")


def seen_by(agent, opponents, told_to):
    """All that a player sees of two rounds, when something is said to another player only."""
    changes = [{"from_round": 1, "players": told_to, "settings": {"opponents": opponents}}]
    env = kbc_v0.parallel_env(players=4, session="repeated", rounds=2, changes=changes)
    seen = []
    observations, infos = env.reset(seed=3)
    while env.agents:
        observation = observations[agent]
        seen.append(
            (observation["text"], dataclasses.asdict(infos[agent]["slots"]), observation["observation"].tolist())
        )
        actions = {name: {"choice": 20 + k, "message": f"I am {name}."} for k, name in enumerate(env.agents)}
        observations, _, _, _, infos = env.step(actions)
    return seen


@pytest.mark.parametrize("opponents", [*OPPONENTS, LEFT_HANDED])
def test_what_is_said_to_one_changes_no_byte_for_another(opponents):
    assert seen_by("player_1", opponents, "player_0") == seen_by("player_1", "random", "player_0")
    mine = seen_by("player_0", opponents, "player_0")
    assert all(slots["opponents"] == opponents for _, slots, _ in mine)
    assert opponents == "random" or mine != seen_by("player_0", "random", "player_0")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"opponents": "expert"}, "experts"),
        ({"opponents": ["experts"]}, "must be a text, or one of random"),
        ({"statistic": "mode"}, "statistic"),
    ],
)
def test_misprints_are_refused(fields, reason):
    with pytest.raises(SettingsError, match=reason):
        KBCSettings(**fields)


def first_numbers(policy, **settings):
    env = kbc_v0.parallel_env(players=6, session="single", talk=False, record=True, **settings)
    play(env, policy, seed=1)
    return next(event for event in env.events if event["type"] == "round")["choices"]


def test_scripted_players_reply_to_the_statistic():
    assert first_numbers(make("kbc/level_k", k=2), statistic="max", ratio="1/2") == [13] * 6  # 50, 25, 12.5
    settings = {name: KBCSettings(statistic=name, ratio="1/2") for name in STATISTICS}
    hierarchy = {}
    for name, contest in settings.items():
        player = make("kbc/poisson", tau=1.0)
        player.settings = contest
        hierarchy[name] = player.hierarchy(50.0, 3)
    # Levels 0 and 1 are equally frequent, level 2 half as frequent.
    assert hierarchy["max"] == [50, 25, 25, 25]
    assert hierarchy["median"] == [50, 25, 12.5, 12.5]
    assert hierarchy["mean"][:3] == [50, 25, 18.75]


def test_measures_know_the_statistic():
    env = kbc_v0.parallel_env(players=3, session="single", talk=False, statistic="max", ratio="1/2", record=True)
    play(env, make("kbc/level_k", k=0), seed=0)
    assert MEASURES.episode(env.events)["target_first"] == 25
    assert comparable(KBCSettings())
    assert not comparable(KBCSettings(statistic="median"))
