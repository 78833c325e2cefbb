"""People are drawn as asked, and what cannot be asked is refused with its place."""

import numpy as np
import pytest

from llm_coop_envs.errors import SettingsError, StudyError
from llm_coop_envs.policies.population import read_population
from llm_coop_envs.policies.population.reading import shipped_attributes
from llm_coop_envs.util.yaml_source import as_node, read_yaml

WORK = """\
attributes:
  education: {shares: {school: 1/3, college: 2/3}}
  job:
    by: education
    shares:
      school: {baker: 0.5, farmer: 0.5}
      college: {baker: 0.1, lawyer: 0.9}
  age: {ranges: {18-29: 0.5, 30-80: 0.5}}
joint:
  - of: [gender, country]
    shares:
      - {gender: woman, country: Chile, share: 0.25}
      - {gender: woman, country: Peru, share: 0.5}
      - {gender: man, country: Chile, share: 0.25}
"""


def population(text=WORK):
    return read_population(read_yaml(text, "people.yaml"))


def draw(text=WORK, size=120, seed=0):
    return population(text).draw(size, np.random.SeedSequence(seed))


def counts(people, *names):
    rows = zip(*([people.profile(i)[name] for i in range(people.size)] for name in names), strict=True)
    values, found = np.unique(np.array(list(rows), dtype=object).astype(str), axis=0, return_counts=True)
    return {tuple(map(str, row)): int(count) for row, count in zip(values, found, strict=True)}


def test_quotas_are_exact_alone_by_another_column_and_jointly():
    people = draw()
    assert counts(people, "education", "job") == {
        ("school", "baker"): 20,
        ("school", "farmer"): 20,
        ("college", "baker"): 8,
        ("college", "lawyer"): 72,
    }
    assert counts(people, "gender", "country") == {("woman", "Chile"): 30, ("woman", "Peru"): 60, ("man", "Chile"): 30}
    ages = people.numbers["age"]
    assert (np.sum(ages < 30), ages.min() >= 18, ages.max() <= 80) == (60, True, True)


def test_largest_remainders_decide_who_is_rounded_up():
    assert counts(draw("attributes: {x: {shares: {a: 0.5, b: 0.3, c: 0.2}}}", size=9), "x") == {
        ("a",): 4,  # 4.5, 2.7 and 1.8: the two largest remainders are those of b and c
        ("b",): 3,
        ("c",): 2,
    }


def test_samples_are_chances_and_come_from_the_seed_alone():
    sampled = f"draw: sample\n{WORK}"
    first, again, other = draw(sampled, 5000), draw(sampled, 5000), draw(sampled, 5000, seed=1)
    share = float(np.mean(first.codes["education"]))
    assert share != pytest.approx(2 / 3, abs=1e-9)
    assert share == pytest.approx(2 / 3, abs=0.03)
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()
    own = f"seed: 4\n{sampled}"
    assert draw(own).to_json() == draw(own, seed=9).to_json()


def test_a_further_column_leaves_the_others_as_they_are():
    more = WORK.replace("joint:", "play: {policy: {shares: {poisson: 0.5, level_k: 0.5}}}\njoint:")
    assert draw().to_json().items() <= draw(more).to_json(["policy"]).items()


def test_shuffled_columns_have_nothing_to_do_with_each_other():
    text = "attributes: {x: {shares: {a: 0.5, b: 0.5}}, y: {shares: {a: 0.5, b: 0.5}}}"
    people = draw(text, size=10_000)
    assert abs(np.corrcoef(people.codes["x"], people.codes["y"])[0, 1]) < 0.03


def test_people_can_sit_in_the_order_of_who_plays_them():
    text = "deal: in_order\nattributes: {x: {shares: {a: 0.5, b: 0.5}}}\nplay: {model: {shares: {m: 0.5, k: 0.5}}}"
    people = draw(text, size=10)
    assert people.codes["model"].tolist() == [0] * 5 + [1] * 5


def test_plain_data_make_the_same_population():
    text = f"{WORK}play: {{policy: llm, model: {{shares: {{a: 0.5, b: 0.5}}}}}}\n"
    text += 'backgrounds: {sentences: [["You are {age}."]]}'
    before = population(text.replace("age: {ranges: {18-29: 0.5, 30-80: 0.5}}", "age: shipped"))
    after = read_population(as_node(before.data, "run"))
    seed = np.random.SeedSequence(3)
    first, second = before.draw(40, seed), after.draw(40, np.random.SeedSequence(3))
    assert first.to_json() == second.to_json()
    assert [first.sentences(i) for i in range(40)] == [second.sentences(i) for i in range(40)]
    assert before.data["attributes"]["age"] == shipped_attributes()["age"].plain()


def test_recorded_sentences_that_nobody_is_told_are_no_fault():
    before = population("attributes: {age: shipped}")
    assert "sentences" in before.data["attributes"]["age"]
    assert read_population(as_node(before.data, "run"), recorded=True).data == before.data


def test_names_of_options_are_numbers_where_they_look_like_some():
    text = 'play: {x: {shares: {0.2: 0.25, 3: 0.25, "[1": 0.25, no: 0.25}}, y: {shares: {true: 1}}}'
    x, y = population(text).play
    assert (x.values, y.values) == ((0.2, 3, "[1", "no"), (True,))


def test_a_million_people_are_drawn_as_columns():
    people = draw(size=1_000_000)
    assert {codes.dtype for codes in people.codes.values()} == {np.dtype(np.int32)}
    assert sum(codes.nbytes for codes in people.codes.values()) < 30e6


@pytest.mark.parametrize(
    ("line", "replaced", "words"),
    [
        ("school: 1/3", "school: 1/4", ("line 2", "attributes.education.shares", "add up to 0.916667")),
        ("school: 1/3", "school: 2", ("line 2", "2 must be a share from 0 to 1")),
        ("by: education", "by: educaton", ("line 4", "did you mean 'education'")),
        ("      school: {baker: 0.5, farmer: 0.5}\n", "", ("line 5", "'school' is missing")),
        ("18-29", "29-18", ("line 8", "attributes.age.ranges.29-18", "a range of integers")),
        ("country: Peru", "country: Chile", ("line 13", "listed twice")),
        ("share: 0.5}", "share: 0.4}", ("line 11", "add up to 0.9")),
        ("attributes:", "sise: 3\nattributes:", ("line 1", "sise", "did you mean 'size'")),
        ("attributes:", "draw: quotas\nattributes:", ("line 1", "quota or sample")),
        ("attributes:", "size: 0\nattributes:", ("line 1", "between 1 and")),
        ("{school: 1/3, college: 2/3}", "{}", ("line 2", "must not be empty")),
        ("{shares: {school: 1/3, college: 2/3}}", "shiped", ("line 2", "'shipped' for one of education")),
        ("joint:", "backgrounds: {sentences: [['You are {aeg}.']]}\njoint:", ("line 9", "no attribute 'aeg'", "'age'")),
        ("joint:", "backgrounds: {}\njoint:", ("line 9", "needs 'sentences'")),
        ("0.9}\n", "0.9}\n    sentences: [x]\n", ("line 8", "attributes.job.sentences", "add 'backgrounds: {}'")),
        ("joint:", "backgrounds: {model: m, temperature: hot}\njoint:", ("line 9", "temperature", "finite number")),
        ("joint:", "backgrounds: {model: m, key_env: sk-abcdefghijklmnopqrstuvwx}\njoint:", ("line 9", "key")),
        ("joint:", "play: {age: 3}\njoint:", ("line 9", "play.age", "is an attribute, too")),
    ],
)
def test_what_is_wrong_is_said_with_its_place(line, replaced, words):
    assert line in WORK
    with pytest.raises(StudyError) as error:
        population(WORK.replace(line, replaced, 1))
    for word in ("people.yaml", *words):
        assert word in str(error.value)
    assert "sk-" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        ("size: 7\nattributes: {x: {shares: {a: 1}}}", 8, ("size", "7", "seats for 8")),
        ("attributes: {x: {counts: {a: 3, b: 3}}}", 7, ("x", "add up to 6, not 7")),
        ("attributes: {x: {shares: {a: 0.99, b: 0.01}}}", 10, ("x", "b", "nobody among 10", "draw: sample")),
    ],
)
def test_impossible_quotas_are_refused(text, size, words):
    with pytest.raises(SettingsError) as error:
        draw(text, size)
    for word in words:
        assert word in str(error.value)


def test_counts_are_quotas_and_a_sample_needs_no_minimum():
    assert counts(draw("attributes: {x: {counts: {a: 3, b: 4}}}", 7), "x") == {("a",): 3, ("b",): 4}
    draw("draw: sample\nattributes: {x: {shares: {a: 0.99, b: 0.01}}}", 10)
