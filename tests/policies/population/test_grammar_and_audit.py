"""Sentences name the attributes, and the audit finds what is off."""

import numpy as np
import pytest
from scipy.stats import binomtest

from llm_coop_envs.policies.population import read_population
from llm_coop_envs.policies.population.audit import audit, binomial_p, diversity
from llm_coop_envs.policies.population.grammar import fill
from llm_coop_envs.policies.population.reading import shipped_attributes
from llm_coop_envs.policies.population.writing import missing_attributes
from llm_coop_envs.util.yaml_source import read_yaml

SHIPPED = "attributes: {" + ", ".join(f"{name}: shipped" for name in shipped_attributes()) + "}\nbackgrounds: {}"


def people(text=SHIPPED, size=200, seed=0):
    return read_population(read_yaml(text, "people.yaml")).draw(size, np.random.SeedSequence(seed))


def test_places_take_articles():
    assert fill("{a job}, {job}, {a x}", {"job": "engineer", "x": "nurse"}) == "an engineer, engineer, a nurse"


def test_shipped_sentences_name_every_attribute_and_make_different_people():
    crowd = people()
    texts = [crowd.sentences(i) for i in range(crowd.size)]
    assert not [
        missing_attributes(crowd, i, text) for i, text in enumerate(texts) if missing_attributes(crowd, i, text)
    ]
    assert len(set(texts)) == len(texts)
    same, other = people(), people(seed=1)
    assert texts == [same.sentences(i) for i in range(crowd.size)]
    assert texts != [other.sentences(i) for i in range(crowd.size)]


def test_the_audit_compares_what_was_asked_with_what_was_drawn():
    rows = audit(people("attributes: {x: {shares: {a: 0.25, b: 0.75}}}", size=10))
    assert [(r.value, r.share, r.people, r.p) for r in rows] == [("a", 0.25, 3, None), ("b", 0.75, 7, None)]
    sampled = audit(people("draw: sample\nattributes: {x: {shares: {a: 0.25, b: 0.75}}}", size=1000))
    assert [r.p for r in sampled] == [pytest.approx(binomtest(r.people, 1000, r.share).pvalue) for r in sampled]


@pytest.mark.parametrize(("count", "size", "share"), [(0, 20, 0.3), (20, 20, 0.3), (6, 20, 0.3), (3012, 10_000, 0.3)])
def test_binomial_p(count, size, share):
    assert binomial_p(count, size, share) == pytest.approx(binomtest(count, size, share).pvalue, abs=1e-7)


def test_diversity():
    found = diversity(["one two three four", "one two three four", "five six seven eight"])
    assert found["different"] == pytest.approx(2 / 3)
    assert found["near_duplicates"] == pytest.approx(2 / 3)
    assert (found["distinct_1"], found["distinct_2"]) == (8 / 12, 6 / 9)
    assert diversity([])["texts"] == 0
