"""What a measure can be is said for every number of every scenario, and no played episode has another value."""

from collections import Counter

import pytest
from small import small_study

from fishery.scenario import SCENARIO as FISHERY
from llm_coop_envs.core import registry
from llm_coop_envs.core.registry import find_scenario, shipped_names
from llm_coop_envs.measures.topics import PREFIX, TOPICS
from llm_coop_envs.reports.played import values_of
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.statistics.intervals import Range, mean_interval
from llm_coop_envs.studies.study_file import EVERY_EPISODE, EVERY_EPISODE_RANGES
from llm_coop_envs.util.references import load

#: Short games of each scenario: at the ends of their settings, of few players and of many, with and without talk.
ARMS = {
    "kbc": """
  - {name: few, scenario: kbc, settings: {players: 2}, policies: uniform, episodes: 12}
  - {name: shifted, scenario: kbc, settings: {players: 5, low: -5, high: 5, ratio: 1/2, offset: 3, talk: false},
     policies: {mix: [{name: poisson}, {name: uniform}]}, episodes: 12}
  - {name: readers, scenario: kbc, preset: two_thirds, policies: uniform, episodes: 3}
""",
    "bertrand": """
  - {name: pair, scenario: bertrand, settings: {rounds: 12}, policies: uniform, episodes: 8}
  - {name: grid, scenario: bertrand, settings: {rounds: 12, prices: grid, firms: 3}, policies: uniform, episodes: 8}
  - {name: alone, scenario: bertrand, settings: {rounds: 110, firms: 1, talk: false}, policies: uniform, episodes: 3}
  - {name: held, scenario: bertrand, settings: {rounds: 30, collusion_window: 3}, policies: best_reply, episodes: 3}
""",
    "evacuation": """
  - {name: short, scenario: evacuation, settings: {people: 12, rounds: 3}, policies: random, episodes: 4}
  - {name: full, scenario: evacuation, settings: {people: 12, rounds: 40}, policies: shares, episodes: 6}
  - {name: silent, scenario: evacuation, settings: {people: 5, rounds: 9, talk: false}, policies: herding, episodes: 6}
""",
    "fishery": """
  - {name: sharing, scenario: fishery, policies: sharing, episodes: 6}
  - {name: greedy, scenario: fishery, policies: greedy, episodes: 6}
""",
}


#: Measures that need a game which is not played here: a longer one, or one that ends together.
WORDS = {"end", "mechanism"}
#: Columns of rounds that count messages, and share their names with shares of episodes; no figure draws them.
TALK = {PREFIX + topic for topic in TOPICS}
UNUSUAL = {"collusiveness_index", "monopoly_found", "together_from", "window_round"}


@pytest.fixture
def fishery_too(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(FISHERY)


def test_every_scenario_is_played_here():
    assert set(ARMS) == {*shipped_names(), "fishery"}


@pytest.mark.parametrize("name", sorted(ARMS))
def test_every_number_has_a_range_and_keeps_to_it(fishery_too, name, tmp_path):
    run = run_study(small_study(f"name: ranges\nconditions:{ARMS[name]}"), tmp_path / "run").run
    measured, checked = find_scenario(name).measured, Counter()
    for episode in read_episodes(run):
        settings = episode.condition.settings
        metrics = {measure: value for measure, value in episode.metrics.items() if measured.define(measure)}
        for row in (metrics, *episode.rounds):
            for measure in row.keys() - {"condition", "seed"} - TALK:
                (value,) = values_of([row], measure)
                if value is not None:
                    within = measured.range_of(measure, settings)
                    assert within is not None, f"{measure}: nothing says what it can be"
                    assert within.holds(value), (episode.condition.name, measure, value, within)
                    assert within.exact == isinstance(value, bool), measure
                    checked[measure] += 1
    assert {measure for measure in measured.about if "*" not in measure} - WORDS - UNUSUAL <= {*checked}


def test_other_measures_of_every_episode_have_ranges():
    assert EVERY_EPISODE_RANGES.keys() == EVERY_EPISODE.keys() - WORDS
    for name in shipped_names():
        after = load(find_scenario(name).after)
        assert getattr(after, "ranges", {}).keys() == getattr(after, "about", {}).keys()


def test_ranges_follow_the_settings():
    """Means of numbers from 0 to 100 had intervals from -121 to 207, and 91 of 100 people one up to 103."""
    numbers = find_scenario("kbc").measured.range_of("mean_first", {"low": 0, "high": 100})
    people = find_scenario("evacuation").measured.range_of("escaped_round_30", {"people": 100})
    assert (numbers.low, numbers.high) == (people.low, people.high) == (0, 100)
    assert mean_interval([3.0, 83.0], numbers).low >= 0
    assert mean_interval([3.0, 83.0], numbers).high <= 100
    printed = mean_interval([90, 89, 90, 89, 97], people)
    assert 89 > printed.low > 80
    assert printed.high < 97
    assert people == Range(low=0, high=100, integer=True)
