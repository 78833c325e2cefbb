import csv
import json
import os

import pytest
from small import ALL, llm_coop, small_study

from llm_coop_envs.benchmarks.export import export as module
from llm_coop_envs.benchmarks.export.export import FORMS, export_run
from llm_coop_envs.benchmarks.run.folder import open_run
from llm_coop_envs.benchmarks.run.runner import run_study
from llm_coop_envs.benchmarks.run.tables import read_episodes
from llm_coop_envs.core.scenario import load
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.storage.parquet import read_rows


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tables_are_the_runs_and_every_column_is_in_the_code_book(everything, tmp_path):
    out = export_run(everything, "parquet", tmp_path / "out")
    tables = {path.stem: path for path in everything.glob("*.parquet")}
    assert sorted(tables) == sorted(path.stem for path in out.glob("*.parquet"))
    book = {(row["table"], row["column"]): row for row in read_csv(out / "codebook.csv")}
    for name, path in tables.items():
        rows = read_rows(path)
        assert read_rows(out / path.name) == rows
        for column in rows[0] if rows else ():
            assert book.pop((name, column))["meaning"], f"{name}.{column} has no meaning"
    assert not {table for table, _ in book} - {"messages"}


def test_the_code_book_says_units(everything, tmp_path):
    out = export_run(everything, "parquet", tmp_path / "out")
    book = {(row["table"], row["column"]): row for row in read_csv(out / "codebook.csv")}
    assert book["episodes", "mean_price"]["unit"] == "price"
    assert book["episodes", "messages"]["unit"] == "count"
    assert book["episodes", "together_share"]["unit"] == "share"
    assert book["episodes", "mean_price"]["meaning"] == "Mean price of all firms over all rounds, in units of price."


def test_wide_rows_are_one_per_participant_and_round(everything, tmp_path):
    out = export_run(everything, "otree", tmp_path / "out")
    assert sorted(path.name for path in out.iterdir()) == ["bertrand.csv", "evacuation.csv", "kbc.csv"]
    for scenario in ("bertrand", "evacuation", "kbc"):
        rows = read_csv(out / f"{scenario}.csv")
        keys = [(row["participant.code"], row["subsession.round_number"]) for row in rows]
        assert len(set(keys)) == len(keys)
        episodes = [one for one in read_episodes(open_run(everything)) if one.condition.scenario == scenario]
        assert len(rows) == sum(one.metrics["players"] * len(one.rounds) for one in episodes)
    prices = [row for row in read_csv(out / "bertrand.csv") if row["session.code"] == "bertrand-talk/1"]
    episode = next(e for e in read_episodes(open_run(everything)) if (e.condition.name, e.seed) == ("bertrand-talk", 1))
    assert [float(row["player.price"]) for row in prices[1::2]] == [row["price_1"] for row in episode.rounds]
    assert [float(row["player.profit"]) for row in prices[::2]] == [row["profit_0"] for row in episode.rounds]
    said = [text for row in prices for text in json.loads(row["player.messages"])]
    assert sorted(said) == sorted(one["text"] for one in episode.messages)
    chosen = [one["choice"] for one in episode.events if one["type"] == "choice" and one["agent"] == "firm_0"]
    assert [float(row["player.choice"]) for row in prices[::2]] == chosen


def test_every_form_says_what_it_is():
    for place in FORMS.values():
        assert load(place).__doc__.strip()


def test_an_unfinished_run_a_target_in_use_and_an_unknown_form_are_sentences(everything, tmp_path):
    run_study(small_study(ALL), tmp_path / "run", command="llm-coop run everything.yaml")
    next((tmp_path / "run" / "events").rglob("1.jsonl.gz")).unlink()
    with pytest.raises(RunError, match=r"run: is not finished \(11 of 12 episodes are there\); continue it"):
        export_run(tmp_path / "run", "parquet")
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="used: is in use; choose a new or empty folder with -o"):
        export_run(everything, "otree", used)
    assert [path.name for path in used.iterdir()] == ["mine.txt"]
    with pytest.raises(SettingsError, match="to='parket': is no form of export; did you mean 'parquet'"):
        export_run(everything, "parket")


def test_what_fails_leaves_nothing_behind(everything, tmp_path, monkeypatch):
    def half(run, folder):
        (folder / "half.csv").write_text("half")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(module, "load", lambda place: half)
    with pytest.raises(RunError, match="the disk is full"):
        export_run(everything, "otree", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_command_names_what_it_wrote(everything, tmp_path):
    done = llm_coop("export", everything, "--to", "otree", "-o", tmp_path / "out")
    assert done.stdout.splitlines() == [
        str(tmp_path / "out" / f"{one}.csv") for one in ("bertrand", "evacuation", "kbc")
    ]
    again = llm_coop("export", everything, "--to", "otree", "-o", tmp_path / "out")
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
