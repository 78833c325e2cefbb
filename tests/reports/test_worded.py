"""Sentences speak of measures in words; raw names stand in tables, with their definitions."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from small import ALL, small_study

from auction.scenario import SCENARIO as AUCTION
from commons.scenario import SCENARIO as COMMONS
from dilemma.scenario import SCENARIO as DILEMMA
from fishery.scenario import SCENARIO as FISHERY
from llm_coop_envs.core import registry
from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.core.scenario import PER_CENT, MeasureWords
from llm_coop_envs.reports.answer_parts import Scale
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.headline import read_answers
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from market.scenario import SCENARIO as MARKET

EXAMPLES = (AUCTION, COMMONS, DILEMMA, FISHERY, MARKET)
EVERY = {scenario.name: scenario for scenario in (*scenarios().values(), *EXAMPLES)}
#: A name that no sentence would hold: several words with underscores between them.
RAW = re.compile(r"(?<![\w/.=\"'-])[a-z][a-z0-9]*(?:_[a-z0-9*]+)+(?![\w/.=(\"'-])")
MEASURES = {name.rstrip("*_") for scenario in EVERY.values() for name in scenario.measured.about}
STUDY = ALL.replace("seeds: [0, 1]", "episodes: 7")
for name in ("kbc", "bertrand", "evacuation"):
    STUDY = STUDY.replace(f"scenario: {name}\n", f"scenario: {name}\n    pair: {name}\n")
EXAMPLE = """\
name: examples
seed: 1
conditions:
  - {name: commons, scenario: commons, policies: threshold, episodes: 2}
  - {name: once, scenario: dilemma, preset: prisoners_dilemma, policies: best_response, episodes: 2}
  - name: again
    scenario: dilemma
    preset: prisoners_dilemma
    settings: {rounds: 4}
    policies: tit_for_tat
    episodes: 2
  - {name: market, scenario: market, policies: truthful, episodes: 2}
  - {name: auction, scenario: auction, policies: shading, episodes: 2}
"""


@pytest.mark.parametrize("scenario", EVERY.values(), ids=EVERY)
def test_no_definition_and_no_name_in_words_holds_a_raw_name(scenario):
    measured = scenario.measured
    for measure, definition in measured.about.items():
        assert not [name for name in RAW.findall(definition) if name in MEASURES], (measure, definition)
        words = measured.words_for(measure.replace("*", "3"), {})
        assert not RAW.search(words.noun), words
        assert "(" not in words.brief
        assert words.brief


@pytest.mark.parametrize("scenario", EVERY.values(), ids=EVERY)
def test_headline_measures_have_words_of_their_own(scenario):
    for measure in scenario.measured.headline:
        assert not scenario.measured.words_for(measure, {}).noun.startswith(("'", "the share of episodes with '"))


def test_without_words_a_measure_is_named_as_what_it_is():
    words = replace(FISHERY.measured, words={}).words_for("share_of_best")
    assert (words.noun, words.brief, words.beginning) == ("'share of best'", "share of best", "'share of best' is")
    assert MeasureWords(noun="the place (0 low, 1 high) of the price").brief == "the place of the price"


class Prose(HTMLParser):
    """Collects text outside tables and code, and what pictures are called."""

    VOID = ("meta", "link", "img", "br", "input")

    def __init__(self):
        super().__init__()
        self.inside, self.texts = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.inside.append(tag)
        self.texts += [text for name, text in attributes if name in ("alt", "aria-label") and text]

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, text):
        if not {"script", "style", "code", "pre", "td", "th"} & {*self.inside}:
            self.texts.append(text)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_registered", {})
        for scenario in EXAMPLES:
            registry.register(scenario)
        for name, text in (("shipped", STUDY), ("examples", EXAMPLE)):
            run_study(small_study(text), folder / name)
        yield folder


@pytest.mark.parametrize("name", ["shipped", "examples"])
def test_no_sentence_of_a_report_holds_a_raw_name(runs, name):
    prose = Prose()
    prose.feed(write_report(runs / name).read_text(encoding="utf-8"))
    texts = [re.sub(r"^\s*\w+: ", "", text) for text in prose.texts]  # a note may say what a column's name means
    assert any(" is the same in every pair" in text or "lies" in text or " goes from " in text for text in texts)
    raw = {(found, text.strip()[:200]) for text in texts for found in RAW.findall(text) if found in MEASURES}
    assert not raw
    assert not any("; d_z " in text for text in texts)


@pytest.mark.parametrize("name", ["shipped", "examples"])
def test_sentences_and_pictures_of_shares_agree(runs, name):
    """Numbers in a sentence are those of its picture: of 100 %, not 10000 %."""
    for answer in read_answers(open_run(runs / name)):
        means = [arm.mean.mean for arm in answer.arms if arm.mean is not None]
        if answer.finding == "alone" and means:
            told = [
                float(number)
                for number in re.findall(r"(?<![\w'])-?\d+(?:\.\d+)?(?= %| \(|\.$| in all)", answer.sentence)
            ]
            assert told, answer.sentence
            assert max(told) == pytest.approx(max(means), rel=0.02, abs=0.02), answer.sentence
        if answer.unit == PER_CENT:
            assert all(0 <= value <= 100 for arm in answer.arms for value in arm.values)
    assert Scale(words=MeasureWords(noun="x", unit=PER_CENT)).text(0.5, of=[0.5]) == "50"
