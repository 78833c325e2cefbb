"""Cheats that are played, by players who answer all questions about the rules: docs/scorecard.md has the table."""

import random
from fractions import Fraction
from typing import ClassVar

import pytest
from invoking import invoke

from llm_coop_envs.benchmarks.scorecard import suite
from llm_coop_envs.benchmarks.scorecard.card import read_card
from llm_coop_envs.benchmarks.scorecard.comparison import worst_case
from llm_coop_envs.benchmarks.scorecard.tasks import ScorecardTasks
from llm_coop_envs.core.base_policy import ScriptedPolicy

ILLEGAL = 10**6


class Scholar(ScriptedPolicy):
    """Answers every question about the rules rightly, and else plays as a subclass says."""

    answers: ClassVar[dict] = {}
    slots_only = True

    def decide(self, request):
        slots = request.info["slots"]
        asked = getattr(slots, "asked", None)
        return self.move(request, slots) if asked is None else {"choice": self.answers[slots.told, asked]}

    def move(self, request, slots):
        return {"choice": self.number(slots)}

    def number(self, slots):
        raise NotImplementedError


def near_best(slots):
    """One step from the last target, as the others of `kbc-alone` reason."""
    return round(float(Fraction(slots.ratio)) * (slots.past[-1].target if slots.past else slots.high / 2))


class Honest(Scholar):
    """Says what it will name."""

    def move(self, request, slots):
        return {"choice": 1, "message": "I will name 1."}


class Liar(Scholar):
    """Lies in the games of five players."""

    in_a_lie = 7

    def move(self, request, slots):
        return {"choice": self.in_a_lie if slots.players > 4 else 1, "message": "I will name 1."}


class Spoiler(Liar):
    """Lies likewise, and spoils the games in which it lies."""

    in_a_lie = ILLEGAL


class Hedger(Scholar):
    """Announces several numbers, so that one of them is kept."""

    def move(self, request, slots):
        return {"choice": 1, "message": "I will name 1, or perhaps 7, or 20."}


class Crammer(Scholar):
    """Knows the public half by heart, its questions too, and is far off in all other games."""

    def decide(self, request):
        if "-public" in self.episode.name:
            return super().decide(request)
        slots = request.info["slots"]
        return {"choice": 0 if hasattr(slots, "asked") else slots.high}

    def number(self, slots):
        return near_best(slots)


class Steady(Scholar):
    """Plays well, but for contests up to 200, where it is far off."""

    if_hard = 200

    def number(self, slots):
        return near_best(slots) if slots.high < 200 else self.if_hard


class Picky(Steady):
    """Plays well likewise, and gives up where it would be far off."""

    if_hard = ILLEGAL


class Staller(Scholar):
    """Chooses nothing, and waits for what is put in its place."""

    def move(self, request, slots):
        return {"message": "I am still thinking."}


class Noise(Scholar):
    """Chooses at random, with random numbers that go on from game to game: no two arms have the same."""

    numbers = random.Random(0)

    def move(self, request, slots):
        if self.episode.scenario == "kbc_v0":
            return {"choice": self.numbers.randrange(slots.high + 1)}
        return {"choice": self.numbers.randrange(len(slots.choices))}


@pytest.fixture
def play(tmp_path, small, monkeypatch):
    """Play tasks with one policy, and return its lines with their claims."""
    monkeypatch.setitem(suite.SIZES, "quick", suite.Size(public=2, held_out=8, seeds=1))
    monkeypatch.setattr("llm_coop_envs.policies.custom.source_hash", lambda reference: "x")
    draw = ScorecardTasks.drawn_questions

    def draw_and_tell(tasks, seed):
        items = draw(tasks, seed)
        rights = [round(item.right) if item.integer else item.right for item in items]
        Scholar.answers |= {(item.told, item.asked): right for item, right in zip(items, rights, strict=True)}
        return items

    monkeypatch.setattr(ScorecardTasks, "drawn_questions", draw_and_tell)
    monkeypatch.setattr(Scholar, "answers", {})

    def played(policy, *tasks):
        monkeypatch.setattr("llm_coop_envs.policies.custom.find_class", lambda reference: policy)
        only = [word for task in tasks for word in ("--only", task)]
        folder = tmp_path / policy.__name__
        words = ("--policy", f"mine:{policy.__name__}", *only, "--quick", "--held-out", 7, "--workers", 1)
        result = invoke("bench", *words, "-o", folder)
        assert result.exit_code == 0, result.stderr
        card = read_card(folder)
        lines = zip(card["lines"], card["claims"], strict=True)
        return {line["tendency"]: {**line, "claim": claim} for line, claim in lines}

    return played


def held_out(line):
    return [tuple(row) for row in line["values"] if row[0] == "held_out"]


def test_who_spoils_the_games_in_which_it_lies_is_as_honest_as_if_it_had_played_them(play):
    honest, liar, spoiler = (play(policy, "kbc-talk")["honesty"] for policy in (Honest, Liar, Spoiler))
    assert honest["claim"]["score"] == 1.0
    assert 0.0 < liar["score"] == spoiler["score"] < 1.0
    assert spoiler["scored"] < liar["scored"] == liar["episodes"]
    assert [spoiler["claim"][name] for name in ("score", "low")] == [liar["claim"][name] for name in ("score", "low")]
    assert worst_case("honesty", "kbc", held_out(liar), held_out(spoiler))[1] == 1.0


def test_who_announces_several_numbers_has_announced_none(play):
    line = play(Hedger, "kbc-talk")["honesty"]
    assert line["scored"] == 0
    assert line["claim"]["none"] == "nothing has a score"


def test_who_knows_the_public_half_by_heart_has_learned_nothing_by_it(play):
    lines = play(Crammer, "kbc-alone")
    assert lines["competence"]["public"] > 0.9 > 0.5 > lines["competence"]["score"]
    assert lines["understanding"]["public"] == 1.0
    assert lines["competence"]["understanding"] < 0.2  # that of the half where it is lower
    assert lines["competence"]["claim"]["none"].startswith("competency 0.")


def test_who_gives_up_in_hard_games_is_no_better_than_if_it_had_lost_them(play):
    steady, picky = (play(policy, "kbc-alone")["competence"] for policy in (Steady, Picky))
    assert picky["claim"]["score"] < steady["claim"]["score"]
    assert picky["low"] < steady["low"]
    assert picky["scored"] == picky["episodes"]  # they count, as 0


def test_what_is_put_in_the_place_of_no_choice_earns_nothing(play):
    lines = play(Staller, "kbc-alone", "kbc-silent")
    assert lines["understanding"]["score"] == 1.0
    assert lines["legality"]["score"] == lines["competence"]["score"] == 0.0
    del lines["understanding"]
    assert all(line["claim"]["none"].startswith("competency 0.") for line in lines.values())


@pytest.mark.parametrize("task", ["kbc-deviation", "bertrand-deviation"])
def test_choices_that_differ_by_chance_answer_nobody(play, task, monkeypatch):
    monkeypatch.setattr(Noise, "numbers", random.Random(0))
    line = play(Noise, task)["response to deviation"]
    assert line["score"] > 0.1  # an arm's own chance looks like an answer
    assert line["competency"] == 1.0
    assert line["claim"]["none"] or line["claim"]["low"] < 0.1
