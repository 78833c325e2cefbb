"""Runs of others: read, played by our rules, marked, verified; of another form a sentence. All files are made here."""

import json
import os
import random
import shutil
import subprocess
from itertools import product

import pytest
from invoking import assert_sentence, invoke

from dilemma.coopeval import read_records
from dilemma.scenario import SCENARIO
from llm_coop_envs.core import registry
from llm_coop_envs.errors import LlmCoopError, RunError, SettingsError
from llm_coop_envs.export.every_eval import _plain
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs import imported
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.imported import RecordedArm, import_records
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.storage.files import pack_lines, read_lines
from llm_coop_envs.studies.study import parse_study
from llm_coop_envs.util.foreign import ForeignFolder

AGENTS = ("acme/ant", "acme/bee")
PD = {"type": "PrisonersDilemma", "kwargs": {"payoff_matrix": {"CC": [2, 2], "CD": [0, 3], "DC": [3, 0], "DD": [1, 1]}}}
CLAIMS = {
    "type": "TravellersDilemma",
    "kwargs": {"min_claim": 2, "num_actions": 4, "claim_spacing": 1, "bonus": 2.0},
}
PAYS = {"CC": (2, 2), "CD": (0, 3), "DC": (3, 0), "DD": (1, 1)}
NAMES = {"C": "PrisonersDilemmaAction.COOPERATE", "D": "PrisonersDilemmaAction.DEFECT"}


@pytest.fixture(autouse=True)
def dilemma(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


def moves(seats, letters, extra=(0, 0)):
    pays = [pay + more for pay, more in zip(PAYS[letters], extra, strict=True)]
    return [
        {"player": f"{who}(CoT)#P{number}", "action": NAMES[letter], "points": points, "trace_id": "x"}
        for number, (who, letter, points) in enumerate(zip(seats, letters, pays, strict=True), 1)
    ]


def write_arm(folder, name, mechanism, lines, game=PD, **kwargs):
    folder = folder / name
    folder.mkdir(parents=True)
    agents = [{"llm": {"provider": "none", "model": agent, "kwargs": {}}, "type": "CoTAgent"} for agent in AGENTS]
    config = {"name": name, "game": game, "mechanism": {"type": mechanism, "kwargs": kwargs}, "agents": agents}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def records(tmp_path):
    """A study of two runs in the form of CoopEval: a contract pays 2 for cooperation, from the other one."""
    study = tmp_path / "study"
    seats = list(product(AGENTS, repeat=2))
    for number, letters in enumerate((("DD", "CD", "DC", "DD"), ("DD", "DD", "DD", "CC")), 1):
        run = study / f"run{number}"
        pairs = list(zip(seats, letters, strict=True))
        write_arm(run, "none_pd", "NoMechanism", [moves(*pair) for pair in reversed(pairs)])
        again = [[moves(seat, "CC"), moves(seat, played), moves(seat, "DD")] for seat, played in pairs]
        write_arm(run, "again_pd", "Repetition", again, num_rounds=3, discount=0.8, lookup_depth=2)
        write_arm(run, "known_pd", "ReputationFirstOrder", [[moves(*pair) for pair in pairs * 2]], num_rounds=2)
        chosen = {"votes": [], "selected_mediator_index": 1, "selected_mediator_designer_name": "x"}
        write_arm(run, "asked_pd", "Mediation", [[{**chosen, "moves": moves(seat, "CC")}] for seat in seats])
        signed = {"all_signed": True, "selected_contract_designer_name": "acme/ant(CoT)#P1"}
        lines = [[{**signed, "moves": moves(seat, "CD", (2, -2))}] for seat in seats[:2]]
        lines += [[{**signed, "all_signed": False, "moves": moves(seat, "CD")}] for seat in seats[2:]]
        contract = {"response": "text", "contract": {NAMES["C"]: 2, NAMES["D"]: 0}, "trace_id": "y"}
        arm = write_arm(run, "paid_pd", "Contracting", lines)
        (arm / "contract_design.json").write_text(json.dumps({"acme/ant(CoT)#P1": contract}))
        claim = [
            {"player": "acme/ant(CoT)#P1", "action": "TravellersDilemmaAction.CLAIM_3", "points": 0.0},
            {"player": "acme/bee(CoT)#P2", "action": "TravellersDilemmaAction.CLAIM_0", "points": 4.0},
        ]
        write_arm(run, "claims", "NoMechanism", [claim], CLAIMS)
    return study


def test_what_others_recorded_is_a_run_as_any_other(records, tmp_path):
    run_folder = tmp_path / "run"
    result = invoke("import", "coopeval", records, "-o", run_folder, "--commit", "abc123")
    assert result.exit_code == 0, result.stderr
    # none 8, again 24, known 16, asked 8, paid 8, claims 2; of the paid ones 4 have a contract that all signed
    assert "62 of 66 plays, and in 66" in " ".join(result.stdout.split())
    run = open_run(run_folder)
    assert run.complete
    mark = run.manifest["imported"]
    assert (mark["of"], mark["commit"], len(mark["files"])) == ("study", "abc123", 26)
    check = verify_run(run_folder)
    assert (check.faults, check.notes, check.replayed) == ([], [], run.total)
    rows = {(e.condition.name, e.seed): e for e in read_episodes(run)}
    # the pair (ant, bee), in the first seat ant, has the number 1 in the first run and 5 in the second
    assert rows["none_pd", 1].policies == {
        "player_0": "recorded:acme/ant(CoT)",
        "player_1": "recorded:acme/bee(CoT)",
    }
    assert [rows["none_pd", seed].metrics["cooperative"] for seed in (1, 5)] == [0.5, 0.0]
    assert rows["again_pd", 1].metrics["payoff"] == pytest.approx((4 + 3 + 2) / 6)
    assert rows["claims", 1].by_type["round"][0]["payoffs"] == [0.0, 4.0]
    kinds = {name: rows[name, seed].metrics["mechanism"] for name, seed in rows}
    assert kinds == {
        "none_pd": "none",
        "again_pd": "repetition",
        "known_pd": "reputation",
        "asked_pd": "mediation",
        "paid_pd": "contracting",
        "claims": "none",
    }
    # Repetition is played by our rules, with the mechanism's own settings; what institutions decided is in the moves.
    settings = {c.name: c.settings for c in run.conditions}
    assert settings["again_pd"]["mechanism"] == {"kind": "repetition", "rounds": 3, "remembered": 2}
    assert "mechanism" not in settings["asked_pd"]
    assert {c.name: c.units for c in run.conditions}["none_pd"] == 3
    assert {c.name: c.units for c in run.conditions}["known_pd"] == 2


def smaller(records, *names):
    """Leave only these arms."""
    for folder in list(records.glob("*/*")):
        if folder.name not in names:
            shutil.rmtree(folder)
    return records


def test_the_report_says_who_recorded_it_and_counts_equal_games_one_by_one(records, tmp_path):
    import_records("coopeval", smaller(records, "none_pd", "asked_pd"), tmp_path / "run", commit="abc123")
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    text = " ".join(page.split())
    assert "<strong>Recorded by others.</strong> By the authors of CoopEval" in text
    assert "commit abc123" in text
    assert "with a mediator than without an institution" in text
    assert "Scripted policies." not in text
    assert "No language model was asked" not in text
    assert "distinct course" not in text.partition('id="methods"')[0]
    assert "played alike" not in text
    for to in ("csv", "html", "otree"):
        assert invoke("export", tmp_path / "run", "--to", to).exit_code == 0


def test_an_import_that_was_broken_off_is_reported_in_part_and_taken_up_again(records, tmp_path, monkeypatch):
    whole = import_records("coopeval", records, tmp_path / "whole", commit="abc").run
    played, play = [], imported._play

    def break_off(*given):
        played.append(given)
        if len(played) > 20:
            raise KeyboardInterrupt
        return play(*given)

    monkeypatch.setattr(imported, "_play", break_off)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        import_records("coopeval", records, folder, commit="abc")
    monkeypatch.setattr(imported, "_play", play)
    assert not open_run(folder).complete
    assert_sentence(invoke("report", folder), "is not complete (20 of 50 episodes)")
    assert invoke("report", folder, "--partial").exit_code == 0
    shutil.rmtree(folder / "report")
    assert "20 of 50 episodes" in invoke("status", folder).stdout
    checked = verify_run(folder)
    assert (checked.faults, checked.replayed) == ([], 20)
    again = import_records("coopeval", records, folder, commit="abc").run
    assert (again.complete, again.content_hash) == (True, whole.content_hash)
    assert verify_run(folder).faults == []


def test_a_run_of_other_records_is_not_written_over(records, tmp_path):
    import_records("coopeval", smaller(records, "none_pd"), tmp_path / "run")
    damage(records / "run1", "none_pd/records.jsonl", "COOPERATE", "DEFECT")
    result = invoke("import", "coopeval", records / "run1", "-o", tmp_path / "run")
    assert_sentence(result, "holds a run of 'coopeval_study' with other settings")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("coopeval", "{tmp}/nowhere"), "is no folder; give the one that coopeval wrote"),
        (("coopeval", "{tmp}/study", "-o", "{tmp}/study"), "is neither empty nor a run folder"),
        (("emergent_collusion", "{tmp}/study"), "no installed scenario reads 'emergent_collusion'"),
    ],
)
def test_bad_input_of_the_command_is_a_sentence(records, tmp_path, words, sentence):
    words = [word.format(tmp=tmp_path) for word in words]
    result = invoke("import", *words, *([] if "-o" in words else ["-o", tmp_path / "run"]))
    assert_sentence(result, sentence)
    assert not (tmp_path / "run").exists()


def test_payments_that_no_rule_explains_are_counted_and_named(records, tmp_path):
    file = records / "run1" / "none_pd" / "records.jsonl"
    file.write_text(file.read_text().replace('"points": 3', '"points": 7'))
    done = import_records("coopeval", records, tmp_path / "run")
    assert done.plays["none_pd"] == [8, 6, 6]
    check = verify_run(tmp_path / "run")
    assert check.faults == []
    assert any("2 plays were paid otherwise" in note for note in check.notes)


def test_verify_finds_moves_that_were_changed_later(records, tmp_path):
    run = import_records("coopeval", records, tmp_path / "run").run
    path = run.events_path("none_pd", 1)
    events = read_lines(path)
    choice = next(event for event in events if event.get("type") == "choice")
    choice["choice"] = 1 - choice["choice"]
    path.write_bytes(pack_lines(events))
    run.write(files={**run.manifest["files"], **run.fingerprints(path)})
    assert any("our rules" in fault for fault in verify_run(run.folder).faults)


def damage(folder, name, old, new):
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("none_pd/config.json", "NoMechanism", "Election"),
        ("none_pd/config.json", "PrisonersDilemma", "Chicken"),
        ("none_pd/config.json", '"name"', '"title"'),
        ("none_pd/config.json", '"name": "none_pd"', '"name": "../../escaped"'),
        ("none_pd/config.json", '"name": "none_pd"', '"name": "a\\u0000b"'),
        ("none_pd/config.json", '"CD": [0, 3]', '"CD": [0]'),
        ("none_pd/config.json", '"CD": [0, 3]', '"CD": [0, NaN]'),
        ("none_pd/config.json", '"CD": [0, 3]', '"CD": [0, 1e308]'),
        ("again_pd/config.json", '"num_rounds": 3', '"num_rounds": 2'),
        ("again_pd/config.json", '"num_rounds": 3', '"num_rounds": 3000000'),
        ("claims/config.json", '"claim_spacing": 1', '"claim_spacing": 2'),
        ("none_pd/records.jsonl", "COOPERATE", "HOPE"),
        ("none_pd/records.jsonl", "#P2", "#P3"),
        ("none_pd/records.jsonl", "acme/bee", "acme/cow"),
        ("none_pd/records.jsonl", '"points": 1', '"points": "1"'),
        ("none_pd/records.jsonl", '"points": 1', '"points": Infinity'),
        ("none_pd/records.jsonl", '"points"', '"score"'),
        ("none_pd/records.jsonl", "[{", "{"),
        ("known_pd/records.jsonl", "[[{", "[{"),
        ("paid_pd/contract_design.json", "acme/ant", "acme/ox"),
        ("paid_pd/contract_design.json", ": 2", ": true"),
        ("paid_pd/contract_design.json", ": 2", ": NaN"),
        ("paid_pd/contract_design.json", f': 2, "{NAMES["D"]}": 0', f': 1e308, "{NAMES["D"]}": 1e308'),
    ],
)
def test_files_of_another_form_are_a_sentence_and_nothing_is_written(records, tmp_path, name, old, new):
    damage(records / "run1", name, old, new)
    result = invoke("import", "coopeval", records, "-o", tmp_path / "run")
    assert_sentence(result, "this version reads what coopeval wrote")
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run" / "events").glob("*/*"))


def test_links_out_of_the_folder_and_other_files_are_not_read(records, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("[]")
    file = records / "run1" / "none_pd" / "records.jsonl"
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(RunError, match="is a link that leads out of the folder"):
        import_records("coopeval", records, tmp_path / "run")
    (tmp_path / "other").mkdir()
    with pytest.raises(RunError, match=r"holds no config\.json"):
        import_records("coopeval", tmp_path / "other", tmp_path / "run")


def test_a_name_that_is_no_text_is_a_sentence(records, tmp_path):
    shutil.copytree(records / "run1" / "none_pd", records / "\udcff")
    assert_sentence(invoke("import", "coopeval", records, "-o", tmp_path / "run"), "is no text; rename it")


def test_folders_in_folders_are_read_or_a_sentence(records, tmp_path, monkeypatch):
    monkeypatch.chdir(records)
    for _ in range(1100):  # by steps: the whole path is too long
        os.mkdir("d")
        os.chdir("d")
    os.chdir(tmp_path)
    result = invoke("import", "coopeval", records, "-o", tmp_path / "run")
    assert result.exit_code in (0, 2), result.stderr
    assert subprocess.run(["rm", "-r", records], check=False).returncode == 0  # shutil's own fails


def test_records_without_an_episode_are_a_sentence(records, tmp_path):
    for path in smaller(records, "none_pd").rglob("records.jsonl"):
        path.write_text("")
    assert_sentence(invoke("import", "coopeval", records, "-o", tmp_path / "run"), "holds no episode")
    assert not (tmp_path / "run").exists()


def test_the_commit_is_that_of_the_repository(records, tmp_path):
    git = records / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{'a1' * 20} refs/heads/main\n")
    run = import_records("coopeval", records / "run1" / "claims", tmp_path / "run").run
    assert run.manifest["imported"]["commit"] == "a1" * 20


def test_a_mechanism_that_there_is_not_cannot_be_recorded():
    with pytest.raises(SettingsError, match="kind='bribery': must be one of"):
        RecordedArm(name="a", title="a", settings={}, mechanism="bribery")


def test_a_format_that_nobody_reads(records, tmp_path):
    with pytest.raises(RunError, match=r"no installed scenario reads 'coopevil'; did you mean 'coopeval'\?"):
        import_records("coopevil", records, tmp_path / "run")


def test_recorded_players_cannot_be_seated():
    text = "name: x\nseed: 1\nconditions: [{name: a, scenario: dilemma, policies: 'recorded:acme/ant', episodes: 1}]"
    with pytest.raises(LlmCoopError, match="was recorded by others"):
        parse_study(text, "x")


def test_damaged_bytes_never_end_in_anything_but_a_sentence(records):
    draw = random.Random(1)
    paths = sorted(path for path in records.rglob("*.json*"))
    outcomes = set()
    for _ in range(120):
        path = draw.choice(paths)
        content = path.read_bytes()
        place = draw.randrange(len(content))
        junk = draw.choice([b"", b'"', b"[", b"{", b"9" * 30, b"-", b"null", b"\xff", b"\\ud800", b"1e999"])
        path.write_bytes(content[:place] + junk + content[place + draw.randrange(4) :])
        try:
            outcomes.add(len(list(read_records(ForeignFolder(records, "coopeval")).episodes)))
        except RunError:
            outcomes.add("refused")
        path.write_bytes(content)
    assert {"refused", 66 - 24 + 8} <= outcomes


def test_a_folder_named_after_many_models_is_not_too_long_for_a_disk():
    names = [", ".join(f"1 recorded:maker/model-{k}" for k in range(count)) for count in (1, 30, 31)]
    assert len(set(map(_plain, names))) == 3
    assert max(len(_plain(name).encode()) for name in names) < 255
