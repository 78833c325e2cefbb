"""Worlds of known intent in the hall: what people do when they are heard, and when they are not."""

import functools

import pytest

from llm_coop_envs.measures.synthetic_worlds import find_synthetic_worlds, play_world

SYNTHETIC_WORLDS = find_synthetic_worlds("evacuation")
TALK = [world.name for world in SYNTHETIC_WORLDS.worlds if world.talk]


@functools.cache
def rows(world, count=6):
    return [play_world("evacuation", world, seed) for seed in range(count)]


@pytest.mark.parametrize("world", [world.name for world in SYNTHETIC_WORLDS.worlds if not world.talk])
def test_where_nobody_talks_nothing_is_moved_or_announced(world):
    assert all(row["moved"] == row["agreed"] == row["agreed_moved"] == 0.0 for row in rows(world, 3))


@pytest.mark.parametrize("world", ["announcers", "blocked_announced", "elsewhere"])
def test_who_does_not_listen_takes_the_same_exit_unheard(world):
    assert all(row["moved"] == 0.0 for row in rows(world))


def test_announcements_are_kept_by_those_who_mean_them_alone():
    assert all(row["agreed"] == 1.0 for row in rows("announcers"))
    assert all(row["agreed"] == 0.0 for row in rows("elsewhere") + rows("misleaders") + rows("coded"))


def test_a_blocked_exit_is_taken_by_nobody_and_those_who_share_use_all():
    by_world = {world: rows(world) for world in ("blocked", "arranged", "plain")}
    assert all(row["apart"] < 0.7 for row in by_world["blocked"])
    assert all(row["apart"] > 0.98 for world in ("arranged", "plain") for row in by_world[world])


def test_the_default_rule_finds_agreements_in_plain_words_alone():
    rule = SYNTHETIC_WORLDS.detectors[SYNTHETIC_WORLDS.rule].score
    counts = {world: sum(rule(row) >= 0.5 for row in rows(world)) for world in TALK}
    assert counts["plain"] >= 5
    assert counts["most"] >= 3
    assert sum(counts.values()) == counts["plain"] + counts["most"]


def test_those_who_believe_the_misleaders_leave_them_their_exit():
    assert sum(row["moved"] > 0.1 for row in rows("misleaders")) >= 5
