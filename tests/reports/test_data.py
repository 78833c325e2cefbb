"""Every number of a report leads to its episodes, and the folder is a data package that describes itself."""

import csv
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from small import small_study

from llm_coop_envs.reports import data
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.util.quoting import table_cell

HOSTILE = '=1+1, "quoted",\nin two lines \u2028 </td>'


class Rows(HTMLParser):
    """Collects links, and for each row of a table its link and the texts of its cells."""

    def __init__(self, text):
        super().__init__()
        self.links, self.rows, self._cells, self._link = [], [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs)["href"])
            if self._cells is not None and self._link is None:
                self._link = self.links[-1]
        if tag == "tr":
            self._cells, self._link = [], None
        if tag in ("td", "th") and self._cells is not None:
            self._cells.append("")

    def handle_endtag(self, tag):
        if tag == "tr":
            self.rows.append((self._link, self._cells))
            self._cells = None

    def handle_data(self, data):
        if self._cells:
            self._cells[-1] += data


@pytest.fixture(scope="module")
def reported(everything, tmp_path_factory):
    return write_report(everything, tmp_path_factory.mktemp("data")).parent


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def rows_of(fragment):
    """The numbers of the rows that `row=2-4;7` names (RFC 7111)."""
    for part in fragment.removeprefix("row=").split(";"):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def test_every_link_leads_to_rows_that_are_there(reported):
    page = Rows((reported / "index.html").read_text(encoding="utf-8"))
    files = {link for link in page.links if not link.startswith("#")}
    assert len([link for link in files if "#" in link]) > 40
    for link in files:
        name, _, fragment = link.partition("#")
        assert (reported / name).is_file(), link
        if fragment:
            assert max(rows_of(fragment)) <= len(table(reported / name)), link


def test_the_rows_behind_a_tables_row_are_its_cells(reported):
    page = Rows((reported / "index.html").read_text(encoding="utf-8"))
    followed = 0
    for link, cells in page.rows:
        if link is None or not link.startswith("tables/"):
            continue
        name, _, fragment = link.partition("#")
        head, *lines = table(reported / name)
        found = [dict(zip(head, lines[row - 2], strict=True)) for row in rows_of(fragment)]
        assert [one["text"] + one["about"] for one in found] == cells[1:], link
        assert {one["name"] + one["below"] for one in found} == {cells[0]}
        followed += 1
    assert followed > 40


def test_means_are_those_of_the_episodes_that_they_lead_to(reported):
    (path,) = (reported / "tables").glob("kbc_measures_*.csv")
    head, *lines = table(path)
    names, *episodes = table(reported / "episodes.csv")
    checked = 0
    for line in lines:
        cell = dict(zip(head, line, strict=True))
        played = [dict(zip(names, episodes[row - 2], strict=True)) for row in rows_of(cell["episodes"])]
        assert {one["condition"] for one in played} == set(cell["conditions"].split())
        values = [float({"TRUE": 1, "FALSE": 0}.get(v, v)) for one in played if (v := one[cell["name"]]) != ""]
        if not values:
            assert cell["text"] == "\N{EN DASH}"
            assert cell["value"] == cell["n"] == ""
            continue
        assert int(cell["n"]) == len(values)
        assert float(cell["value"]) == pytest.approx(np.mean(values))
        checked += 1
    assert checked > 20


def test_episodes_name_the_files_that_they_were_computed_from(everything, reported):
    head, *lines = table(reported / "episodes.csv")
    run = open_run(everything)
    assert len(lines) == run.total
    for line in lines:
        one = dict(zip(head, line, strict=True))
        assert hashlib.sha256((everything / one["events"]).read_bytes()).hexdigest() == one["sha256"]
        assert one["events"] == f"events/{one['condition']}/{one['seed']}.jsonl.gz"


def test_a_figures_file_holds_what_is_drawn(everything, reported):
    section = next(one for one in read_run(open_run(everything))[0] if one.scenario.name == "bertrand")
    for drawing in section.prices():
        head, *lines = table(reported / f"{drawing.name}.csv")
        rows = [dict(zip(head, line, strict=True)) for line in lines]
        (axes,) = drawing.figure.axes
        labels = [line.get_label() for line in axes.lines if "n = " in str(line.get_label())]
        assert len(labels) == 2
        for label in labels:
            drawn = next(line for line in axes.lines if line.get_label() == label)
            told = [(float(row["x"]), float(row["y"])) for row in rows if row["series"] == label]
            assert np.array(told) == pytest.approx(drawn.get_xydata())
        assert {row["series"] for row in rows if row["kind"] == "horizontal line"} == {"Nash", "cartel"}


CONVERT = {
    "integer": int,
    "number": float,
    "boolean": ("TRUE", "FALSE").index,
    "string": str,
    "any": lambda text: pytest.fail(text) if text else None,
}


def check_package(folder):
    """Every file is described: its size, its hash, its columns and their types."""
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert len({one["name"] for one in package["resources"]}) == len(package["resources"])
    for one in package["resources"]:
        content = (folder / one["path"]).read_bytes()
        assert one["bytes"] == len(content)
        assert one["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert re.fullmatch(r"[-a-z0-9._]+", one["name"])
        if one["format"] == "csv":
            head, *lines = table(folder / one["path"])
            fields = one["schema"]["fields"]
            assert [field["name"] for field in fields] == head
            for line in lines:
                assert len(line) == len(head)
                for field, text in zip(fields, line, strict=True):
                    if text:
                        CONVERT[field["type"]](text)
    described = {one["path"] for one in package["resources"]}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    others = {name for name in there if name.endswith((".png", ".html", ".bib"))} | {"datapackage.json"}
    assert there == described | others
    return package


def test_the_folder_is_a_data_package(everything, reported):
    package = check_package(reported)
    assert package["$schema"].startswith("https://datapackage.org/profiles/2.0/")
    assert package["versions"]["llm-coop-envs"]
    configuration = yaml.safe_load((reported / "configuration.yaml").read_text(encoding="utf-8"))
    assert configuration["conditions"] == [one.to_json() for one in open_run(everything).conditions]
    assert (reported / "study.yaml").read_text() == open_run(everything).study_text


def test_the_code_book_describes_every_column(reported):
    head, *lines = table(reported / "codebook.csv")
    book = {(line[0], line[1]): dict(zip(head, line, strict=True)) for line in lines}
    for file in reported.rglob("*.csv"):
        if file.stem == "codebook":
            continue
        kind = "tables" if file.parent.name == "tables" else file.stem
        kind = "figures" if (reported / f"{file.stem}.png").is_file() else kind
        for column in table(file)[0]:
            assert book[kind, column]["meaning"], (file.name, column)


UNFINISHED = """\
name: unfinished
conditions:
  - {name: talking, scenario: kbc, settings: {players: 3, exchanges: 1}, policies: announcer, seeds: [4, 9]}
"""


def test_data_of_an_unfinished_run_and_of_hostile_talk(tmp_path, monkeypatch):
    monkeypatch.setattr("llm_coop_envs.kbc.scripted.Announcer.say", lambda *_: HOSTILE)
    run_study(small_study(UNFINISHED), tmp_path / "run", limit=1)
    folder = write_report(tmp_path / "run", tmp_path / "report", partial=True).parent
    check_package(folder)
    assert len(table(folder / "episodes.csv")) == 2
    head, *messages = table(folder / "messages.csv")
    assert {row[head.index("text")] for row in messages} == {f"'{HOSTILE}"}  # no formula
    # What the run wrote is used where it is untouched, and else made from the events: the same bytes.
    run_study(small_study(UNFINISHED), tmp_path / "run")
    write_report(tmp_path / "run", folder)
    (tmp_path / "run" / "messages.parquet").write_bytes(b"damaged")
    other = shutil.copytree(folder, tmp_path / "other")
    write_report(tmp_path / "run", folder)
    for name in ("messages.csv", "rounds_kbc.csv"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()


@given(st.lists(st.one_of(st.none(), st.text("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20\0 1a", max_size=3)), max_size=4))
def test_texts_are_left_alone_only_where_no_cell_changes(texts):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    assert data._may_change(column) or [table_cell(text) for text in texts] == texts
