"""The suite: what both halves have in common, what a version stands for, and questions with right answers."""

import numpy as np
import pytest

from llm_coop_envs.benchmarks.scorecard.registration import make_preregistration
from llm_coop_envs.benchmarks.scorecard.suite import (
    HELD_OUT,
    PUBLIC,
    SIZES,
    VERSION,
    all_scorecard_tasks,
    make_suite,
    parts,
    suite_hash,
    suite_of,
)
from llm_coop_envs.benchmarks.scorecard.tasks import TENDENCIES, find_scorecard_tasks
from llm_coop_envs.core.registry import shipped_names
from llm_coop_envs.errors import RunError, StudyError
from llm_coop_envs.studies.seating import GivenPlayer

#: Whoever changes what is asked makes a new version, and records the reference rows anew.
HASHES = {
    1: "84e87abf5d7e1170e0202a5cf693f27965e0123216de0d5b72f4dacbf7d9603f",
    4: "b1c70f70bdbdee2fdc4dbf1cb4b4b8dc5768da94b8a56951c7b2c1c4aa6147e0",
    3: "e12503c4721eb3724804759632a683feba526897781bdac6056ea0e413ef3e00",
    2: "589d25c21c80ea80a514a9029e652c5ab34688ecfcd3f592ed924691290aebd6",
}


def candidates(*names):
    return [GivenPlayer(name=name, options={}) for name in names]


def of_half(every, half):
    return [(part.name, part.settings, part.seeds) for part in every if part.half == half]


def test_a_version_stands_for_what_is_asked():
    assert suite_hash() == HASHES[VERSION]


def test_every_shipped_scenario_brings_its_part_and_the_quiz_is_no_scenario_of_the_lists():
    assert set(shipped_names()) <= set(all_scorecard_tasks())
    assert "quiz" not in shipped_names()
    tendencies = {
        tendency for tasks in all_scorecard_tasks().values() for task in tasks.tasks for tendency in task.scores
    }
    assert tendencies | {"understanding", "legality"} == set(TENDENCIES)
    assert all(
        task.scores.keys() == task.about.keys() for tasks in all_scorecard_tasks().values() for task in tasks.tasks
    )


def test_the_public_half_is_the_same_for_everybody_and_the_held_out_half_hangs_on_its_seed():
    first, same, other = parts(1, "quick"), parts(1, "quick"), parts(2, "quick")
    assert of_half(first, PUBLIC) == of_half(other, PUBLIC)
    assert of_half(first, HELD_OUT) == of_half(same, HELD_OUT)
    differing = [a != b for a, b in zip(of_half(first, HELD_OUT), of_half(other, HELD_OUT), strict=True)]
    assert all(differing)


def test_the_quick_suite_is_a_beginning_of_the_full_one():
    full = {part.name: part for part in parts(3, "full")}
    for part in parts(3, "quick"):
        assert full[part.name].settings == part.settings
        assert len(part.seeds) == SIZES["quick"].seeds


@pytest.mark.parametrize("scenario", sorted(shipped_names()))
def test_questions_have_answers_that_are_allowed_and_vary(scenario):
    drawn = [find_scorecard_tasks(scenario).drawn_questions(seed) for seed in range(30)]
    assert all(item.low <= item.right <= item.high for items in drawn for item in items)
    assert all(item.right == int(item.right) or item.tolerance for items in drawn for item in items)
    assert len({item.right for items in drawn for item in items}) > 30
    assert min(map(len, drawn)) >= 5


def test_right_answers_of_the_contest_are_those_of_its_rules():
    for seed in range(20):
        described, *items = (question for question in find_scorecard_tasks("kbc").drawn_questions(seed))
        text = described.told
        ratio = text.split("The target is ")[1].split(" ")[0]
        over, under = map(int, ratio.split("/"))
        plus = float(text.split(", plus ")[1].split(".\n")[0]) if ", plus " in text else 0.0
        named = np.array([int(number) for number in items[0].asked.split("name ")[1].split(". ")[0].split(", ")])
        target = over / under * named.mean() + plus
        assert items[0].right == pytest.approx(target)
        winner = next((question.right for question in items if "Which of these" in question.asked), None)
        assert winner is None or abs(winner - target) == pytest.approx(np.abs(named - target).min())


def test_what_somebody_cannot_play_is_left_out_with_a_sentence():
    made_suite = make_suite(candidates("level_k"), 1, "quick")
    assert {part.scenario for part in made_suite.parts} == {"kbc"}
    assert any(sentence.startswith("quiz, which nobody") for sentence in made_suite.left_out)
    assert any(sentence.startswith("bertrand, which nobody") for sentence in made_suite.left_out)


def test_who_can_play_nothing_is_refused():
    with pytest.raises(StudyError, match="'levl_k': plays nothing of the suite; did you mean 'level_k'"):
        make_suite(candidates("levl_k"), 1, "quick")
    with pytest.raises(StudyError, match="no_such_module"):
        make_suite(candidates("no_such_module:Class"), 1, "quick")


def test_each_scenario_is_played_by_the_first_who_can():
    made_suite = make_suite(candidates("uniform", "random", "level_k"), 1, "quick")
    assert {name: player["name"] for name, player in made_suite.players.items()} == {
        **dict.fromkeys(("kbc", "bertrand"), "uniform"),
        **dict.fromkeys(("quiz", "evacuation"), "random"),
    }


def test_what_was_written_down_gives_the_same_suite_again():
    made_suite = make_suite(candidates("uniform", "random"), 11, "quick", ["kbc-*"])
    recorded = make_preregistration(made_suite, "analysis")
    assert suite_of(recorded).study.digest == made_suite.study.digest
    assert (
        make_preregistration(make_suite(candidates("uniform", "random"), 12, "quick", ["kbc-*"]), "analysis")
        != recorded
    )
    assert make_preregistration(made_suite, "other")["preregistration"] != recorded["preregistration"]
    with pytest.raises(RunError, match="version 99 of the suite"):
        suite_of({**recorded, "version": 99})


def test_some_tasks_are_chosen_by_name():
    made_suite = make_suite(candidates("level_k"), 1, "quick", ["kbc-alone", "kbc-s*"])
    assert {part.label for part in made_suite.parts} == {"kbc-alone", "kbc-silent"}
    assert "the tasks bertrand-rules, " in made_suite.left_out[0]
    assert "kbc-rules" not in made_suite.left_out[0]  # always asked, if there is somebody to ask
    asked = make_suite(candidates("level_k", "random"), 1, "quick", ["kbc-alone"])
    assert {part.label for part in asked.parts} == {"kbc-rules", "kbc-alone"}
    assert suite_of(make_preregistration(made_suite, "analysis")).study.digest == made_suite.study.digest
    with pytest.raises(StudyError, match="--only 'kbc-none': fits no task of the suite; it has bertrand-rules"):
        make_suite(candidates("level_k"), 1, "quick", ["kbc-none"])
