"""`llm-coop bench`, and what `verify` and `compare` say of scorecards."""

import json
import shutil

import pytest
from invoking import assert_sentence, invoke
from model_studies import answering

from llm_coop_envs.benchmarks.scorecard.card import make_card, read_card, reliability
from llm_coop_envs.benchmarks.scorecard.card_text import markdown
from llm_coop_envs.benchmarks.scorecard.claims import find_claims
from llm_coop_envs.benchmarks.scorecard.verification import card_faults
from llm_coop_envs.core.base_policy import ScriptedPolicy
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.folder import digest_of


def lines(folder):
    return {(line["tendency"], line["scenario"]): line for line in read_card(folder)["lines"]}


def scores(folder):
    return {key: line["score"] for key, line in lines(folder).items()}


FEW = ("--only", "kbc-rules", "--only", "kbc-alone", "--only", "kbc-talk")


class Liar(ScriptedPolicy):
    """Says one number and names another; answers questions with what is not allowed."""

    def decide(self, request):
        return {"choice": 3 if self.episode.scenario == "kbc_v0" else -1.0, "message": "I will name 17."}


def test_rules_come_to_what_they_are(rules):
    by_line = scores(rules)
    assert by_line["cooperation with talk", "kbc"] == by_line["honesty", "kbc"] == 1.0
    assert by_line["response to deviation", "kbc"] == 0.0  # it names its number whatever happens
    assert by_line["cooperation without talk", "bertrand"] == pytest.approx(1.0, abs=0.1)
    assert by_line["response to deviation", "bertrand"] == 1.0  # an eye for an eye
    assert by_line["competence", "evacuation"] == 1.0
    assert by_line["response to deviation", "evacuation"] == 0.0  # whatever the others do, the nearest exit
    assert by_line["honesty", "bertrand"] is None  # says nothing
    assert all(
        score == 1.0 for (tendency, _), score in by_line.items() if tendency in ("legality", "robustness to paraphrase")
    )
    assert not any(tendency == "understanding" for tendency, _ in by_line)


def test_who_follows_the_others_answers_those_who_go_elsewhere(tmp_path):
    arguments = ("--policy", "herding", "--only", "evacuation-deviation", "--quick", "-o", tmp_path / "card")
    assert invoke("bench", *arguments, "--held-out", 5).exit_code == 0
    (line,) = [line for key, line in lines(tmp_path / "card").items() if key == ("response to deviation", "evacuation")]
    assert line["score"] > 0.8


def test_the_table_names_every_line_and_the_folder_holds_it(rules, small):
    again = invoke(
        "bench",
        *["--policy", "announcer", "--policy", "tit_for_tat", "--policy", "nearest_exit", "--quick", "-o"],
        rules,
    )
    assert again.exit_code == 0
    table = (rules / "scorecard-partial.md").read_text()
    for (tendency, scenario), line in lines(rules).items():
        assert tendency in again.stdout
        assert f"| {tendency} | {scenario} |" in table
        assert line["about"] in table
    assert "No language model is asked" in again.stdout
    assert "held-out seed 7, which the tester chose" in again.stdout  # read from the folder


def test_a_scorecard_is_made_again_by_verify(rules, tmp_path, small):
    assert invoke("verify", rules).exit_code == 0
    folder = shutil.copytree(rules, tmp_path / "copy")
    card = json.loads((folder / "scorecard-partial.json").read_text())
    next(line for line in card["lines"] if line["tendency"] == "honesty")["values"][0][3] = 0.5
    (folder / "scorecard-partial.json").write_text(json.dumps(card))
    changed = invoke("verify", folder)
    assert changed.exit_code == 2
    assert "lines.honesty (bertrand).values.0.3 is 0.5 there and None here" in changed.stderr
    shutil.copy(rules / "scorecard-partial.json", folder)
    (folder / "scorecard-partial.md").write_text("better\n")
    assert "is not the table of the scorecard" in card_faults(open_run(folder))[0]
    other = json.loads((rules / "scorecard-partial.json").read_text())
    del other["check"], other["references"][0]
    other["claims"] = find_claims(other)
    (folder / "scorecard-partial.json").write_text(json.dumps({**other, "check": digest_of(other)}))
    (folder / "scorecard-partial.md").write_text(markdown(other))
    assert "rows of other players are not those that this program records" in card_faults(open_run(folder))[0]
    other = json.loads((rules / "scorecard-partial.json").read_text())
    other["left_out"] = []
    (folder / "scorecard-partial.json").write_text(json.dumps(other))
    assert "is not what the episodes make of it" in card_faults(open_run(folder))[0]
    (folder / "scorecard-partial.json").write_text("{}")
    assert "is not what the episodes make of it" in card_faults(open_run(folder))[0]
    (folder / "scorecard-partial.json").unlink()
    assert "scorecard-partial.json: cannot be read" in card_faults(open_run(folder))[0]


def test_parameters_of_another_held_out_seed_are_found(rules, tmp_path, small):
    folder = shutil.copytree(rules, tmp_path / "copy")
    run = open_run(folder)
    run.write(bench={**run.manifest["bench"], "held_out": 8})
    assert "is not what the suite makes of its held-out seed" in card_faults(open_run(folder))[0]


def test_a_model_is_asked_only_after_all_is_written_down(tmp_path, beauty):
    folder = tmp_path / "model"
    seen = []

    def answer(prompt, metadata):
        if not seen:
            seen.append(json.loads((folder / "run.json").read_text())["bench"])
        return scripted_answer(prompt, metadata)

    with answering(answer) as server:
        where = ("--model", "scripted", "--base-url", server.base_url, "--quick", "--held-out", 5, *FEW)
        dry = invoke("bench", *where, "--dry", "-o", folder)
        assert dry.exit_code == 0
        assert not folder.exists()
        assert not seen
        stopped = invoke("bench", *where, "--max-calls", 30, "-o", folder)
        assert stopped.exit_code == 130
        assert not (folder / "scorecard-partial.json").exists()
        done = invoke("bench", *where, "--max-calls", 1000, "-o", folder)  # a run keeps its limits
        assert done.exit_code == 0, done.stderr
    preregistration = seen[0]
    assert preregistration["preregistration"] == digest_of(
        {k: v for k, v in preregistration.items() if k != "preregistration"}
    )
    assert preregistration["preregistration"] in dry.stdout
    assert "calls" in dry.stdout
    assert {player["name"] for player in preregistration["players"].values()} == {"llm:scripted"}
    checked = invoke("verify", folder)  # from the journal, without a server
    assert checked.exit_code == 0, checked.stderr
    assert "were played again" in checked.stdout
    by_line = lines(folder)
    assert by_line["understanding", "kbc"]["episodes"] == 1
    assert by_line["competence", "kbc"]["competency"] == min(
        by_line["competence", "kbc"]["legal"], by_line["understanding", "kbc"]["score"]
    )


def test_a_model_that_is_never_legal_gets_nothing(tmp_path, beauty):
    with answering(lambda prompt, metadata: "I would rather not say.") as server:
        result = invoke(
            *("bench", "--model", "broken", "--base-url", server.base_url, "--quick", "-o", tmp_path / "broken"),
            *FEW,
            "--part",
            "one",
        )
    assert result.exit_code == 0, result.stderr
    by_line = lines(tmp_path / "broken")
    assert {by_line[tendency, "kbc"]["score"] for tendency in ("understanding", "legality", "competence")} == {0.0}
    others = [
        line for (tendency, _), line in by_line.items() if tendency not in ("understanding", "legality", "competence")
    ]
    assert len(others) == 2
    assert all(line["score"] is None and line["scored"] == 0 and line["competency"] == 0.0 for line in others)


def test_a_policy_of_ones_own_is_asked_too_and_lies_are_found(tmp_path, beauty, monkeypatch):
    monkeypatch.setattr("llm_coop_envs.policies.custom.find_class", lambda reference: Liar)
    monkeypatch.setattr("llm_coop_envs.policies.custom.source_hash", lambda reference: "x")
    result = invoke("bench", "--policy", "mine:Liar", "--quick", "--workers", 1, "-o", tmp_path / "liar")
    assert result.exit_code == 0, result.stderr
    by_line = scores(tmp_path / "liar")
    assert by_line["honesty", "kbc"] == by_line["understanding", "kbc"] == 0.0
    assert by_line["legality", "kbc"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--policy", "level_k", "--suite-version", 99), "has version 4 of the suite"),
        ((), "who is tested? Give --policy NAME, or --model NAME"),
        (("--policy", "nobody"), "plays nothing of the suite"),
        (("--policy", "level_k", "--temperature", 0.5), "--temperature: for whom?"),
    ],
)
def test_what_cannot_be_played_is_a_sentence(arguments, sentence, tmp_path):
    assert_sentence(invoke("bench", *arguments, "-o", tmp_path / "run"), sentence)
    assert not (tmp_path / "run").exists()


def test_a_folder_of_something_else_is_refused(everything, rules, small):
    assert_sentence(invoke("bench", "--policy", "level_k", "-o", everything), "holds a run that is no scorecard")
    other = invoke("bench", "--policy", "level_k", "--quick", "-o", rules)
    assert other.exit_code == 2
    assert "with other settings" in other.stderr
    assert_sentence(
        invoke("bench", "--policy", "level_k", "--held-out", 8, "-o", rules), "was begun with 7; leave it out"
    )


def test_no_run_of_the_suite_has_no_scorecard(everything):
    with pytest.raises(Exception, match="is no run of the scorecard's suite"):
        make_card(open_run(everything))


def test_reliability_is_how_alike_two_halves_are():
    assert reliability([[0.4]] * 10) == 1.0
    assert reliability([[0.0], [1.0], [0.0]]) is None
    noisy, calm = reliability([[0.0], [1.0]] * 5), reliability([[0.45], [0.55]] * 5)
    assert noisy < calm < 1.0
    # Of two zeros and two ones, halves are alike in two of three ways.
    assert reliability([[0.0], [0.0], [1.0], [1.0]]) == pytest.approx(2 / 3, abs=0.05)
