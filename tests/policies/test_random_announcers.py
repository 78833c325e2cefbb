"""Random play that talks: it announces one draw and chooses another, so that it keeps its word by chance alone."""

import numpy as np
import pytest

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.measures.process import process_measures
from llm_coop_envs.policies import play, scripted

GAMES = {
    "kbc": (
        "kbc/uniform",
        {"players": 6, "session": "repeated", "rounds": 40, "low": 0, "high": 4, "talk_turns": 1},
        1 / 5,
    ),
    "bertrand": ("bertrand/uniform", {"rounds": 100, "prices": "grid", "collusion_window": 0, "exchanges": 1}, 1 / 15),
    "evacuation": ("evacuation/random", {"people": 20, "rounds": 10, "control": "exit"}, 1 / 3),
}


def events_of(name, **options):
    policy, settings, _ = GAMES[name]
    env = find_scenario(name).environment(record=True, **settings)
    player = scripted.make(policy, **options)
    play(env, {agent: player for agent in env.possible_agents}, seed=1)
    return env.events


@pytest.mark.parametrize("name", GAMES)
def test_it_keeps_its_word_by_chance(name):
    row = process_measures(events_of(name, talks=True), find_scenario(name))
    assert row["announced_share"] == 1
    chance, made = GAMES[name][2], row["announcements_kept"] + row["announcements_broken"]
    assert abs(row["kept_share"] - chance) < 4 * np.sqrt(chance * (1 - chance) / made)


@pytest.mark.parametrize("name", GAMES)
def test_it_is_silent_unless_it_is_told_to_talk(name):
    assert {event["text"] for event in events_of(name) if event["type"] == "message"} <= {""}
    with pytest.raises(SettingsError, match="talks=1: must be true or false"):
        scripted.make(GAMES[name][0], talks=1)
