import json
import re

import pytest
from invoking import assert_sentence, invoke
from model_studies import SHORT, answering, play, study_with_model
from own_pack import copy_pack

from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.runs.cost import Pace, estimate_cost

PRICE = Price(1e-6, 2e-6, 1e-6, "test")


@pytest.fixture(scope="module")
def cost():
    return estimate_cost(study_with_model(), lambda model: PRICE, Pace(latency=2.0), episodes=9)


def test_a_real_run_counts_the_same(cost, tmp_path):
    with answering() as server:
        play(server, tmp_path / "run")
    (report,) = read_run(tmp_path / "run")
    total = cost.total
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (
        report.calls,
        report.prompt_tokens,
        report.completion_tokens,
    )
    assert total.calls > 100
    assert total.usd == pytest.approx(total.prompt_tokens * 1e-6 + total.completion_tokens * 2e-6)
    assert total.usd < total.most_usd == pytest.approx(total.prompt_tokens * 1e-6 + total.most_completion_tokens * 2e-6)


def test_a_sample_is_scaled_to_all(cost):
    sample = estimate_cost(study_with_model(), lambda model: PRICE, Pace(), episodes=1)
    for one, all_ in zip(sample.rows, cost.rows, strict=True):
        assert (one.played, one.episodes) == (1, all_.episodes)
        assert one.calls == pytest.approx(all_.calls, rel=0.2)
    assert sample.total.episodes == cost.total.episodes == 5


def test_an_unknown_price_counts_tokens_only():
    cost = estimate_cost(study_with_model(), lambda model: None, Pace())
    assert cost.total.usd is cost.total.most_usd is None
    assert cost.total.prompt_tokens > 0


@pytest.mark.parametrize(
    ("pace", "seconds", "why"),
    [
        (Pace(latency=2.0), 2.0 * 50, "answers that wait for each other"),
        (Pace(latency=2.0, at_once=2), 2.0 * 100, "answers that wait for each other"),
        (Pace(latency=2.0, in_flight=4), 2.0 * 1200 / 4, "requests in flight"),
        (Pace(latency=2.0, requests_per_minute=60), 1200, "requests per minute"),
        (Pace(latency=2.0, requests_per_minute=60, tokens_per_minute=600), 120_00, "tokens per minute"),
    ],
)
def test_the_time_is_that_of_the_narrowest_limit(pace, seconds, why):
    assert pace.seconds(calls=1200, tokens=120_000, rounds=200, longest=50) == (pytest.approx(seconds), why)


def test_the_command(study_file, tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1, output: 2}")
    found = invoke("cost", study_file(SHORT), "--model", "m", "--prices", prices)
    assert found.exit_code == 0
    assert "kbc-talk" in found.stdout
    assert "$1 per million tokens" in found.stdout
    found = invoke("cost", study_file(SHORT), "--model", "m", "--json", "--latency", 0.5)
    told = json.loads(found.stdout)
    assert told["models"]["m"] == {"price": None, "tokens_counted_by": "estimate"}
    assert told["assumed"]["latency"] == 0.5
    assert [row["name"] for row in told["conditions"]] == ["kbc-talk", "bertrand-talk", "evacuation-talk"]
    assert told["total"]["calls"] == sum(row["calls"] for row in told["conditions"])


def test_no_number_is_cut_at_80_columns(study_file, tmp_path, monkeypatch):
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1000000, output: 1000000}")
    text = SHORT.replace("kbc-talk", "a-name-of-forty-letters-and-not-one-less")
    arguments = ("cost", study_file(text), "--model", "m", "--prices", prices, "--latency", 100_000)
    for columns in ("80", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        told = invoke(*arguments)
        assert told.exit_code == 0
        table = told.stdout.partition("\n\n")[0]
        assert "…" not in table
        assert all(len(line) <= 80 for line in table.splitlines())
        assert "at most" in table
        assert re.search(r"\d,\d{3}\.\d\d", table)


def test_the_readmes_own_install_line_gives_a_price(study_file, monkeypatch):
    monkeypatch.setattr("llm_coop_envs.policies.llm.asking.prices._bundled_table", dict)
    told = invoke("cost", study_file(SHORT), "--model", "openai/gpt-4o-mini", "--json")
    assert json.loads(told.stdout)["total"]["usd"] > 0
    unknown = " ".join(invoke("cost", study_file(SHORT), "--model", "my-model").stdout.split())
    assert "my-model: {input: 0.15, output: 0.60}" in unknown
    assert "--prices FILE" in unknown


def test_mistakes_are_sentences(study_file, tmp_path):
    path = study_file(SHORT)
    assert_sentence(invoke("cost", path), "which model?", "--model")
    assert_sentence(invoke("cost", path, "--model", "m", "--prices", tmp_path / "none.yaml"), "cannot be read")
    assert_sentence(invoke("cost", "nothing.yaml", "--model", "m"), "there is no study")
    one = study_file("name: one\nconditions: [{name: a, scenario: kbc, policies: poisson, seeds: [0]}]", "one.yaml")
    assert_sentence(invoke("cost", one, "--policy", "poisson"), "no language model plays")


def test_costs_are_estimated_with_a_pack_of_ones_own(study_file, tmp_path):
    pack = copy_pack(tmp_path / "own")
    for path in pack.rglob("*.jinja"):
        path.write_text(path.read_text().replace("Now name your number", "Your number, please"))
    shipped, own = (
        json.loads(invoke("cost", study_file(SHORT), "--model", "m", "--json", *flags).stdout)["conditions"]
        for flags in ((), ("--pack", pack))
    )
    assert [row["calls"] for row in own[:1]] == [row["calls"] for row in shipped[:1]]
    assert own[0]["prompt_tokens"] != shipped[0]["prompt_tokens"]
