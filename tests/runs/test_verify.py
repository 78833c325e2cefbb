"""What `llm-coop verify`, a report and a continued run make of folders that are not what was written."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from invoking import assert_sentence, invoke
from model_studies import TINY, answering, play, study_with_model
from small import KBC, contents, events_in, record_again, small_study, write_manifest

from llm_coop_envs.core.registry import find_scenario, shipped_names
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs import provenance as program
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.storage.files import pack_lines, read_lines, write_whole


class Listening(Watcher):
    def __init__(self):
        self.said = []

    def say(self, sentence):
        self.said.append(sentence)


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A run of rules; not to be changed."""
    folder = tmp_path_factory.mktemp("rules") / "run"
    run_study(small_study(), folder, command="llm-coop run small.yaml")
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two runs of one study, in which a model answered differently; not to be changed."""
    folder = tmp_path_factory.mktemp("models")
    with answering() as server:
        play(server, folder / "one", TINY)
    with answering(lambda prompt, metadata: scripted_answer(prompt + "!", metadata)) as server:
        play(server, folder / "other", TINY)
    return folder / "one", folder / "other"


@pytest.fixture
def copy(rules, tmp_path):
    return shutil.copytree(rules, tmp_path / "run")


@pytest.fixture
def asked(models, tmp_path):
    return shutil.copytree(models[0], tmp_path / "run")


def faults(folder, **more):
    return verify_run(folder, **more).faults


def rewrite(path, change):
    """Change an episode's records, in a file that is whole."""
    records = read_lines(path)
    change(records)
    write_whole(path, pack_lines(records))


def test_a_run_as_it_was_written_has_no_faults(rules, models):
    found = verify_run(rules)
    assert (found.faults, found.episodes, found.replayed, found.tables) == ([], 5, 0, 3)
    assert "5 episodes without a model" in found.notes[0]
    assert verify_run(rules, again=True).replayed == 5
    for folder in models:
        found = verify_run(folder)
        assert (found.faults, found.notes, found.replayed, found.tables) == ([], [], 2, 5)
    done = invoke("verify", models[0])
    assert done.exit_code == 0
    assert "no faults" in done.stdout


def test_other_versions_of_python_and_numpy_are_named(copy):
    assert verify_run(copy).versions == []
    (session,) = open_run(copy).manifest["sessions"]
    old = {**session["versions"], "python": "3.9.1", "numpy": "1.0"}
    write_manifest(copy, json.loads((copy / "run.json").read_text()), sessions=[session, {**session, "versions": old}])
    done = invoke("verify", copy)
    assert done.exit_code == 0
    assert f"played with Python 3.9.1, and is checked with {session['versions']['python']}." in done.stderr
    assert f"played with NumPy 1.0, and is checked with {session['versions']['numpy']}." in done.stderr


def test_checking_changes_nothing(models):
    before = {path: path.read_bytes() for path in models[0].rglob("*") if path.is_file()}
    verify_run(models[0], again=True)
    assert {path: path.read_bytes() for path in models[0].rglob("*") if path.is_file()} == before


def test_one_seeds_episode_in_place_of_anothers(copy, rules):
    one, other = events_in(copy)[:2]
    shutil.copy(other, one)
    (found,) = faults(copy)
    assert f"{one}: holds another episode (condition 'silent', seed 2)" in found
    done = invoke("verify", copy)
    assert done.exit_code == 2
    assert f"Fault: {one}" in done.stderr
    for command in ("report", "figures", "watch"):
        assert_sentence(invoke(command, copy), str(one), "another episode")
    watcher = Listening()
    assert run_study(small_study(), copy, watcher=watcher).played == 1
    assert "1 episodes (events/silent/1.jsonl.gz) are damaged or not what this run wrote" in watcher.said[0]
    assert faults(copy) == []
    assert contents(copy) == contents(rules)


def test_an_episode_with_another_name_in_its_header(copy):
    """Whoever changes the header, too, still has another file than was written, and other events than its seed's."""
    one, other = events_in(copy)[:2]
    shutil.copy(other, one)
    rewrite(one, lambda records: records[0].update(seed=1))
    (found,) = faults(copy)
    assert f"{one}: is not what this run wrote" in found
    record_again(copy)
    assert any("its events are those of another episode (seed is 2 there and 1 here)" in one for one in faults(copy))


def test_an_episode_of_another_study(copy, tmp_path):
    run_study(small_study(KBC.replace("players: 5", "players: 6")), tmp_path / "six")
    shutil.copy(events_in(tmp_path / "six")[0], events_in(copy)[0])
    (found,) = faults(copy)
    assert "was played in another study, or with other settings" in found


def test_an_episode_of_another_run_of_the_same_study(models, asked):
    ours = events_in(asked)
    for mine, theirs in zip(ours, events_in(models[1]), strict=True):
        assert mine.read_bytes() != theirs.read_bytes()
        shutil.copy(theirs, mine)
    found = faults(asked)
    assert len(found) == 2
    assert all("an episode of another run of the same study" in one for one in found)
    with pytest.raises(RunError, match="another run of the same study"):
        write_report(asked)
    # Even if the manifest knew nothing of them: the journal does.
    record_again(asked)
    assert all("is not what the journal make of it: event" in one for one in faults(asked)[:2])


@pytest.mark.parametrize(("name", "words"), [("kbc", "the rules of 'kbc'"), ("readers", "the readers of answers")])
def test_an_episode_of_another_version(asked, monkeypatch, tmp_path, name, words):
    real = program.program_of
    with monkeypatch.context() as changed:
        changed.setattr("llm_coop_envs.runs.folder.program_of", lambda condition: {**real(condition), name: "older"})
        with answering() as server:
            play(server, tmp_path / "older", TINY)
    episode = asked / "events" / "kbc" / "0.jsonl.gz"
    shutil.copy(tmp_path / "older" / "events" / "kbc" / "0.jsonl.gz", episode)
    (found,) = faults(asked)
    assert f"{episode}: was played by another version of {words} than this run" in found


def test_a_program_that_changed_while_a_run_was_played(tmp_path, monkeypatch):
    run_study(small_study(), tmp_path / "run")
    events_in(tmp_path / "run")[0].unlink()
    monkeypatch.setattr("llm_coop_envs.runs.folder.program_of", lambda condition: {"kbc": "newer"})
    watcher = Listening()
    run_study(small_study(), tmp_path / "run", watcher=watcher)
    assert "The rules of 'kbc' changed while the run was being played" in watcher.said[0]
    (found,) = faults(tmp_path / "run")
    assert "(episodes: 4 by" in found
    assert "changed while the run was being played" in write_report(tmp_path / "run").read_text(encoding="utf-8")


def test_programs_are_told_apart_by_their_source(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    first = program.hash_of_files(tmp_path / "a.py")
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "a.py"
    other.write_bytes(b"x = 2\n")
    assert program.hash_of_files(other) != first
    condition = small_study().conditions[0]
    assert list(program.program_of(condition)) == ["kbc"]


@pytest.mark.parametrize("scenario", shipped_names())
def test_what_decides_no_episode_is_none_of_the_rules(scenario):
    found = find_scenario(scenario)
    files = {f"{path.parent.name}/{path.name}" for path in program._rule_files(found.env_class)}
    assert {f"{scenario}/env.py", f"{scenario}/scripted.py", "faces/workflow.py", "core/array_env.py"} <= files
    others = (found.scene, found.picture, found.page, found.report, found.scorecard, found.synthetic_worlds)
    assert not {f"faces/{reference.partition(':')[0].rpartition('.')[2]}.py" for reference in others} & files
    assert not {"util/ray_cluster.py", "core/rendering.py"} & files
    assert not {"faces/comparison_report.py", "faces/drawing_room.py", "faces/report_crowd.py"} & files


def test_events_that_do_not_follow_from_the_journal(asked):
    episode = asked / "events" / "kbc" / "0.jsonl.gz"

    def change(records):
        choice = next(event for event in records if event.get("type") == "choice")
        choice["flags"] = ["illegal_choice"]

    rewrite(episode, change)
    record_again(asked)
    found = faults(asked)
    assert f"{episode}: is not what the journal make of it: event " in found[0]
    assert "(choice, round" in found[0]
    assert "flags" in found[0]
    # And the tables no longer follow from the events.
    assert any("episodes.parquet: column corrected, row 1 is 0, from the events 1 follows" in one for one in found)


def test_what_became_of_answers_follows_from_the_journal(asked):
    episode = asked / "events" / "kbc" / "0.jsonl.gz"
    rewrite(episode, lambda records: next(iter(records[0]["answers"][0]["calls"].values())).update(fallbacks=7))
    record_again(asked)
    assert "fallbacks is 7 there and 0 here" in faults(asked)[0]


def test_rules_are_played_again_when_asked(copy):
    episode = events_in(copy)[0]
    rewrite(episode, lambda records: records[-1].update(reason="x"))
    record_again(copy)
    (table,) = faults(copy)
    assert "episodes.parquet" in table
    assert f"{episode}: is not what the rules make of it: event" in faults(copy, again=True)[0]


def test_events_of_which_no_tables_can_be_made(copy):
    episode = events_in(copy)[0]
    rewrite(episode, lambda records: records[2].clear() or records[2].update(type="choice", step=0, round=1))
    record_again(copy)
    assert faults(copy)[-1] == f"{copy}: no tables can be made of its events (KeyError('flags'))"


def test_tables_that_do_not_follow_from_the_events(copy):
    path = copy / "episodes.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("players")
    pq.write_table(table.set_column(place, "players", pa.array([9, *table["players"].to_pylist()[1:]])), path)
    written, followed = faults(copy)
    assert f"{path}: is not what this run wrote" in written
    assert f"{path}: column players, row 1 is 9, from the events 5 follows" in followed
    pq.write_table(table.slice(1), path)
    assert "has 4 rows, from the events 5 follow" in faults(copy)[1]
    pq.write_table(table.drop_columns(["players"]), path)
    assert "its columns are not those that follow from the events (players)" in faults(copy)[1]
    path.write_bytes(b"no table")
    assert "cannot be read" in faults(copy)[1]
    assert "is not what this run wrote" in write_report(copy).read_text(encoding="utf-8")
    path.unlink()
    assert "was written, and cannot be read now" in faults(copy)[0]


def test_a_deleted_episode_of_a_complete_run_is_said(copy):
    path = events_in(copy)[1]
    path.unlink()
    (found,) = faults(copy)
    assert found == f"{path}: is not there, although the run is complete"
    with pytest.raises(RunError, match=r"was complete, and episodes are gone \(4 of 5 episodes\).*small\.yaml -o"):
        write_report(copy)
    assert "4 of 5 episodes" in write_report(copy, partial=True).read_text(encoding="utf-8")
    assert run_study(small_study(), copy).played == 1
    assert faults(copy) == []


def test_files_that_nobody_wrote(copy):
    shutil.copy(events_in(copy)[0], copy / "events" / "silent" / "77.jsonl.gz")
    shutil.copy(copy / "episodes.parquet", copy / "more.parquet")
    assert [one.split(": ")[1] for one in faults(copy)] == [
        "is no episode of this study",
        "is no table that this run wrote",
    ]


def test_a_journal_that_is_not_the_one(models, asked):
    (path,) = (asked / "journal").glob("main.jsonl.*")
    whole = path.read_bytes()
    path.write_bytes((models[1] / "journal" / path.name).read_bytes())
    found = faults(asked)
    assert f"{path}: is not what this run wrote" in found[0]
    assert any("cannot be played again" in one or "make of it" in one for one in found[1:])
    path.write_bytes(whole + b"abc")
    assert f"{path}: is not what this run wrote (it had {len(whole)} bytes, now {len(whole) + 3})" in faults(asked)[0]
    shutil.rmtree(asked / "journal")
    found = faults(asked)
    assert "cannot be read now" in found[0]
    assert "cannot be compared with the journal" in found[1]


def test_settings_in_a_manifest_that_its_digest_does_not_stand_for(copy):
    manifest = json.loads((copy / "run.json").read_text())
    manifest["conditions"][0]["settings"]["players"] = 6
    (copy / "run.json").write_text(json.dumps(manifest))
    assert_sentence(invoke("verify", copy), "run.json: is damaged", "rebuild")
    write_manifest(copy, manifest)
    assert "not those of its digest" in faults(copy)[0]


def test_a_run_that_is_not_complete_is_checked_as_far_as_it_is(copy):
    events_in(copy)[0].unlink()
    write_manifest(copy, status="interrupted")
    found = verify_run(copy)
    assert (found.faults, found.episodes, found.tables) == ([], 4, 0)
    assert "is not complete (4 of 5 episodes)" in found.notes[0]


def test_a_replay_is_compared_with_the_journal_that_it_replayed(models, tmp_path):
    run_study(study_with_model(TINY), tmp_path / "again", access=ModelAccess(replay=models[0]))
    found = verify_run(tmp_path / "again")
    assert (found.faults, found.replayed) == ([], 2)


def test_mistakes_are_sentences(tmp_path):
    assert_sentence(invoke("verify", tmp_path), "is no run folder")


# A manifest that was lost or damaged.


@pytest.mark.parametrize("damage", ["{", "", "[]", None, b"\xff\xfe", "flipped"])
def test_a_damaged_manifest_is_rebuilt_and_nothing_is_paid_twice(models, asked, damage):
    path = asked / "run.json"
    before = json.loads(path.read_text())
    if damage is None:
        path.unlink()
    elif damage == "flipped":
        path.write_text(path.read_text().replace("two", "twp").replace('"players": 3', '"players": 2'))
    else:
        path.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    watcher = Listening()
    # Nobody is there to be asked.
    access = ModelAccess(endpoint={"base_url": "http://127.0.0.1:9/v1"})
    outcome = run_study(study_with_model(TINY), asked, access=access, watcher=watcher)
    assert (outcome.complete, outcome.played) == (True, 0)
    assert "was damaged or lost, and has been rebuilt" in watcher.said[0]
    assert contents(asked) == contents(models[0])
    assert open_run(asked).manifest["files"] == before["files"]
    assert faults(asked) == []
    assert len(list(asked.glob("run.json.damaged-*"))) == (damage is not None)


def test_a_damaged_manifest_and_lost_episodes_are_rebuilt_from_the_journal(models, asked):
    (asked / "run.json").write_text("{")
    shutil.rmtree(asked / "events")
    access = ModelAccess(endpoint={"base_url": "http://127.0.0.1:9/v1"})
    assert run_study(study_with_model(TINY), asked, access=access).played == 2
    assert contents(asked) == contents(models[0])


def test_a_damaged_manifest_is_not_rebuilt_as_another_study(copy):
    (copy / "run.json").write_text("{")
    before = contents(copy)
    with pytest.raises(RunError, match=r"run\.json: is damaged or lost, and .*gz belongs to another study"):
        run_study(small_study(KBC.replace("players: 5", "players: 6")), copy)
    shutil.rmtree(copy / "events")
    with pytest.raises(RunError, match=r"run\.json: is damaged or lost, and .*study\.yaml belongs to another study"):
        run_study(small_study(KBC.replace("players: 5", "players: 6")), copy)
    assert {name: one for name, one in before.items() if not name.startswith("events")} == contents(copy)


def test_commands_say_how_a_damaged_manifest_is_rebuilt(copy):
    (copy / "run.json").write_text("{")
    for command in ("report", "verify", "run"):
        assert_sentence(invoke(command, copy), "run.json", "to rebuild it", "study.yaml", "llm-coop run")


# Texts, and addresses.


def test_a_study_file_that_is_no_text(copy):
    (copy / "study.yaml").write_bytes(b"name: \xff\n")
    assert_sentence(invoke("report", copy), "study.yaml", "no UTF-8 text")
    assert_sentence(invoke("run", copy), "study.yaml", "no UTF-8 text")
    assert any("study.yaml: is not what this run wrote" in one for one in faults(copy))


def test_a_flipped_setting_is_a_sentence(copy, tmp_path):
    path = copy / "run.json"
    path.write_text(path.read_text().replace('"players"', '"plavers"'))
    for command in ("run", "report", "verify", "figures", "watch"):
        assert_sentence(invoke(command, copy), "run.json: is damaged")
    (tmp_path / "flipped.yaml").write_text(KBC.replace("players", "plavers"))
    assert_sentence(invoke("run", tmp_path / "flipped.yaml", "-o", tmp_path / "x"), "plavers", "players")


def test_a_run_that_lost_its_address_asks_nobody_else(asked, monkeypatch):
    """As after a disk that filled up just when the first session was to be noted."""
    episode = events_in(asked)[0]
    episode.unlink()
    write_manifest(asked, sessions=[], status="running")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-anything")
    assert_sentence(invoke("run", asked), "does not say where scripted is reached", "--base-url")
    assert not episode.exists()
    with answering() as server:
        done = invoke("run", asked, "--base-url", server.base_url)
        assert done.exit_code == 0, done.stderr
        assert not server.asked
    assert faults(asked) == []
