"""What messages are about, by lists of words."""

import json

import pytest

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.measures import topics
from llm_coop_envs.measures.topics import FILE, TOPICS, topic_measures, topic_rounds, topics_of

HOMES = {name: find_scenario(name).env_class.home for name in scenarios()}


@pytest.mark.parametrize(
    ("scenario", "wording", "text", "about"),
    [
        ("bertrand", "en-", "I PROMISE to keep my price.", {"promise", "choice"}),
        ("bertrand", "en-", "Profits fall in a price war.", {"outcome", "rivalry", "threat", "choice"}),
        (
            "bertrand",
            "de-",
            "Ich werde den Preis erhöhen, sonst sinkt unser Gewinn.",
            {"promise", "choice", "threat", "outcome"},
        ),
        ("bertrand", "de-", "I promise to cooperate.", set()),
        ("kbc", "en-", "Perhaps the average is 33.", {"doubt", "outcome"}),
        ("evacuation", "en-", "Follow me, the left exit is clear!", {"cooperation", "choice", "outcome"}),
        ("evacuation", "de-", "Der Ausgang ist frei.", {"choice", "outcome"}),
        ("kbc", "en-", "Winston is no winner's name, is it, unagreeable one?", {"rivalry", "choice"}),
        ("kbc", "own", "Wir alle gewinnen together.", {"cooperation", "rivalry"}),
    ],
)
def test_words_count_in_their_language(scenario, wording, text, about):
    assert topics_of(text, HOMES[scenario], wording) == about


def test_topics_are_shares_of_messages_with_their_change_over_time():
    scenario = find_scenario("kbc")
    env = scenario.environment(record=True, players=3)
    env.begin(seed=0)
    messages = [(1, "We all agree."), (1, "Hm."), (2, "I doubt it."), (3, "No idea."), (3, "I doubt it.")]
    events = [env.events[0], *({"type": "message", "round": number, "text": text} for number, text in messages)]
    row = topic_measures(events, scenario)
    assert (row["talk_of_cooperation"], row["talk_of_cooperation_change"]) == (0.2, pytest.approx(-1 / 3))
    assert (row["talk_of_doubt"], row["talk_of_doubt_change"]) == (0.6, pytest.approx(1 - 1 / 3))
    assert [topic_rounds(events, scenario)[number]["talk_of_doubt"] for number in (1, 2, 3)] == [0, 1, 2]
    silent = topic_measures(events[:1], scenario)
    assert set(silent.values()) == {None}


@pytest.mark.parametrize("home", [*HOMES.values(), None])
def test_lists_hold_known_topics_in_both_languages(home):
    path = (home / FILE) if home else (topics.Path(topics.__file__).parent / FILE)
    by_language = json.loads(path.read_text(encoding="utf-8"))
    assert by_language.keys() == {"en", "de"}
    assert by_language["en"].keys() == by_language["de"].keys() <= TOPICS.keys()
    for lists in by_language.values():
        for name, entries in lists.items():
            assert len(set(entries)) == len(entries) > 1, name
            assert all(word == word.lower().strip() for word in entries)
