"""What `llm-coop compare` says of two scorecards."""

import json
import shutil

import pytest
from invoking import assert_sentence, invoke

from llm_coop_envs.benchmarks.scorecard.card import FORMAT
from llm_coop_envs.benchmarks.scorecard.comparison import power_sentence, simulated_power
from llm_coop_envs.benchmarks.scorecard.suite import VERSION
from llm_coop_envs.statistics.comparison import Comparison
from llm_coop_envs.statistics.power import power_of
from llm_coop_envs.storage.folder import digest_of


@pytest.fixture
def card(tmp_path):
    """Write a scorecard whose lines have these values, one for each set of parameters."""

    def write(name, values, held_out=1, seeds=1, **fields):
        lines = [
            {
                "tendency": tendency,
                "scenario": "kbc",
                "values": [
                    ["held_out", f"kbc-a-held_out{k}", 100 * held_out + seed, value]
                    for k, value in enumerate(scores)
                    for seed in range(seeds)
                ],
            }
            for tendency, scores in values.items()
        ]
        content = {
            "references": [],
            "suite": "scorecard",
            "format": FORMAT,
            "version": VERSION,
            "size": "full",
            "left_out": [],
            "sha256": "a" * 64,
            "held_out": held_out,
            "lines": lines,
            **fields,
        }
        (tmp_path / name).write_text(json.dumps({**content, "check": digest_of(content)}))
        return tmp_path / name

    return write


LOW, HIGH = [0.1 + k / 100 for k in range(20)], [0.8 + k / 100 for k in range(20)]


@pytest.mark.parametrize("held_out", [1, 2])
def test_only_what_survives_holm_is_named(card, held_out):
    first = card("a.json", {"honesty": LOW, "competence": LOW})
    noisy = [value + (0.05 if k % 2 else -0.05) for k, value in enumerate(LOW)]
    second = card("b.json", {"honesty": HIGH, "competence": noisy}, held_out)
    result = invoke("compare", first, second)
    assert result.exit_code == 0
    assert "honesty (kbc) is higher" in result.stdout
    assert "competence (kbc) is" not in result.stdout
    assert ("pairs" in result.stdout) == (held_out == 1)  # other parameters are no pairs
    assert "1 of 2 differences survive Holm" in result.stdout


@pytest.mark.parametrize("held_out", [1, 2])
def test_more_seeds_of_a_set_tell_no_more_of_who_plays_alike_in_them(card, held_out):
    outputs = [
        invoke(
            "compare",
            card(f"a{seeds}.json", {"honesty": LOW[:8]}, seeds=seeds),
            card(f"b{seeds}.json", {"honesty": HIGH[:8]}, held_out, seeds=seeds),
        ).stdout.replace(f"{seeds}.json", ".json")
        for seeds in (1, 2)
    ]
    assert outputs[0] == outputs[1]
    assert ("8 pairs" if held_out == 1 else "8 and 8 sets of parameters, unpaired") in outputs[0]


def test_nothing_is_named_where_nothing_differs(card):
    first = card("a.json", {"honesty": LOW})
    assert "None of 1 differences" in invoke("compare", first, first).stdout


def test_scorecards_of_different_suites_are_not_compared(card):
    first = card("a.json", {"honesty": LOW})
    assert_sentence(
        invoke("compare", first, card("b.json", {"honesty": LOW}, version=2)), "is of version 2 of the suite"
    )
    other = card("c.json", {"honesty": LOW}, sha256="b" * 64)
    assert_sentence(invoke("compare", first, other), "was played with another suite")


def test_a_scorecard_that_was_changed_is_refused(card):
    first, second = card("a.json", {"honesty": LOW}), card("b.json", {"honesty": LOW})
    second.write_text(second.read_text().replace(", 0.1]", ", 0.9]"))
    assert_sentence(invoke("compare", first, second), "was changed since it was written")
    second.write_text("{}")
    assert_sentence(invoke("compare", first, second), "is no scorecard")


def test_too_few_sets_are_a_sentence(card):
    few = card("a.json", {"honesty": LOW[:4]})
    assert_sentence(
        invoke("compare", few, card("b.json", {"honesty": HIGH[:4]})), "too few sets of parameters", "without --quick"
    )
    none = card("c.json", {"honesty": [None, None]})
    assert_sentence(invoke("compare", few, none), "too few sets of parameters")
    alone = card("d.json", {"honesty": [0.5]})
    assert_sentence(invoke("compare", few, alone), "no line has two with scores, or more, in both")


def test_power_is_stated_and_partial_cards_are_named(card):
    first, second = card("a.json", {"honesty": LOW}), card("b.json", {"honesty": HIGH}, size="quick")
    output = " ".join(invoke("compare", first, second).stdout.split())
    assert "Power of one test in 1 with 20 pairs: " in output
    assert f"{simulated_power(1.0, (20,), 1):.0%} at d = 1 " in output
    assert "b.json is a partial scorecard: the size is quick." in output
    assert "a.json is a partial" not in output


def test_power_is_that_of_the_test_that_is_used():
    assert simulated_power(0.0, (20,), 1) < 0.1
    assert simulated_power(1.0, (20,), 1) == pytest.approx(power_of(1.0, 20), abs=0.05)
    assert simulated_power(1.0, (8,), 25) == 0.0  # eight pairs reach 0.008 at best, and 0.002 is needed


def test_power_is_that_of_the_line_with_the_fewest_sets():
    lines = [Comparison(measure="m", first=(0.0,) * count, second=(1.0,) * count) for count in (30, 12, 50)]
    sentence = power_sentence(lines)
    assert sentence.startswith("Power of one test in 3 with 12 pairs: ")
    assert f"{simulated_power(1.0, (12,), 3):.0%} at d = 1 " in sentence
    assert power_sentence(lines[:1]).startswith("Power of one test in 1 with 30 pairs: ")


def test_a_run_is_no_scorecard(everything, rules, tmp_path):
    assert_sentence(invoke("compare", rules, everything), "is no scorecard")
    copy = shutil.copytree(rules, tmp_path / "copy")
    assert_sentence(invoke("compare", rules, copy), "too few sets of parameters")


def test_sets_that_are_shared_in_part_are_no_pairs(card):
    """Pairs of the shared sets alone would leave half of both scorecards out."""
    path = card("b.json", {"honesty": HIGH})
    content = json.loads(path.read_text())
    del content["check"]
    for line in content["lines"]:
        for row in line["values"][:10]:
            seed = next(place for place, cell in enumerate(row) if type(cell) is int)
            row[seed] += 1_000
    path.write_text(json.dumps({**content, "check": digest_of(content)}))
    output = invoke("compare", card("a.json", {"honesty": LOW}), path).stdout
    assert "20 and 20 sets of parameters, unpaired" in output


def test_lines_with_too_few_sets_for_so_many_lines_are_counted(card):
    """Six pairs reach p = 0.031, which is enough for one line, and too much where there are two."""
    first = card("a.json", {"honesty": LOW, "competence": LOW[:6]})
    noisy = [value + (0.05 if k % 2 else -0.05) for k, value in enumerate(LOW[:6])]
    second = card("b.json", {"honesty": HIGH, "competence": noisy})
    output = " ".join(invoke("compare", first, second).stdout.split())
    assert "1 of 2 differences survive Holm" in output
    assert "1 line has too few sets to tell" in output
    # Behind a difference that is sure, six pairs are enough for the other.
    third = card("c.json", {"honesty": HIGH, "competence": HIGH[:6]})
    output = " ".join(invoke("compare", first, third).stdout.split())
    assert "2 of 2 differences survive Holm" in output
    assert "too few sets" not in output
