"""The quiz as an environment."""

import warnings

import numpy as np
import pytest

from llm_coop_envs.benchmarks.scorecard.quiz.env import QuizEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import SettingsError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing the tests warns about old names
    from pettingzoo.test import parallel_api_test


def play_quiz(about, answer):
    env = QuizEnv(about=about, record=True)
    env.reset(seed=3)
    rounds = []
    while env.agents:
        rounds.append(env.look()[0]["reader_0"]["text"])
        env.step({"reader_0": {"choice": answer(env._items[env.round - 1])}})
    return rounds, find_scenario("quiz").episode_metrics(env.events)


@pytest.mark.parametrize("about", ["kbc", "bertrand", "evacuation"])
def test_right_answers_count_and_wrong_and_illegal_ones_do_not(about):
    texts, right = play_quiz(about, lambda item: item.right if not item.integer else round(item.right))
    assert right == {"questions": len(texts), "right_share": 1.0}
    _, wrong = play_quiz(about, lambda item: item.low if item.right - item.low > item.tolerance + 1 else item.high)
    assert wrong["right_share"] == 0.0
    _, illegal = play_quiz(about, lambda item: item.low - 1)
    assert illegal["right_share"] == 0.0
    assert all("You do not play it." in text and "The question: " in text for text in texts)


def test_an_illegal_answer_is_wrong_even_where_what_stands_in_for_it_is_right():
    env = QuizEnv(about="kbc")
    env.reset(seed=0)
    item = env._items[0]
    values, flagged = env._clean([0], np.array([item.low - 5.0]))
    assert (values[0], flagged[0]) == (item.low, True)
    assert env._flagged


def test_it_is_an_environment_like_any_other():
    parallel_api_test(QuizEnv(about="kbc"), num_cycles=20)


def test_only_scenarios_with_questions_are_asked_about():
    with pytest.raises(SettingsError, match="no scenario that brings questions"):
        QuizEnv(about="quiz")
    with pytest.raises(SettingsError, match="no scenario that brings questions"):
        QuizEnv()
    with pytest.raises(SettingsError, match="nobody else takes part"):
        QuizEnv(about="kbc", talk=True)
