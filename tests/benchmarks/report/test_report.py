import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from small import ALL, KBC, contents, events_in, record_again, small_study, write_manifest

from llm_coop_envs.benchmarks.report.build import write_report
from llm_coop_envs.benchmarks.report.figures import draw_figures
from llm_coop_envs.benchmarks.report.page_parts import Cell, decimals_for, excerpt, interval_cell
from llm_coop_envs.benchmarks.report.reading import colours, read_run
from llm_coop_envs.benchmarks.report.section import bounds, comparable, values_of
from llm_coop_envs.benchmarks.run.folder import open_run
from llm_coop_envs.benchmarks.run.runner import run_study
from llm_coop_envs.benchmarks.run.tables import read_episodes
from llm_coop_envs.benchmarks.study.selection import select
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.statistics import Interval, mean_interval
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.style import plotted
from llm_coop_envs.storage.files import pack_lines, read_lines

PNG = b"\x89PNG\r\n\x1a\n"
EVIL = "</q><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;{{ 7*7 }}{% raw %}\u202e\"'\n<!-- -->"


class Page(HTMLParser):
    """Collects tags, attributes, and the text of quotations."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.quotations = [], [], []
        self._quoting = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "q":
            self._quoting = True
            self.quotations.append("")

    def handle_endtag(self, tag):
        if tag == "q":
            self._quoting = False

    def handle_data(self, data):
        if self._quoting:
            self.quotations[-1] += data


@pytest.fixture(scope="module")
def reported(everything, tmp_path_factory):
    return write_report(everything, tmp_path_factory.mktemp("reported"))


@pytest.fixture
def text(reported):
    return reported.read_text(encoding="utf-8")


def test_the_page_holds_everything_itself(text):
    page = Page(text)
    shown = [value for _, name, value in page.attributes if name == "src"]
    assert shown
    assert all(value.startswith("data:image/png;base64,") for value in shown)
    # Links lead into the page and to the data beside it, never out; tests/benchmarks/report/test_data.py follows them.
    assert not [value for _, name, value in page.attributes if name == "href" and ("//" in value or "\\" in value)]
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_every_picture_is_a_file_too_and_says_what_it_shows(reported, text):
    files = sorted(reported.parent.glob("*.png"))
    assert len(files) == text.count("<img ") == 3 + 2 + 3
    assert all(file.read_bytes().startswith(PNG) for file in files)
    alts = [value for tag, name, value in Page(text).attributes if (tag, name) == ("img", "alt")]
    assert len(alts) == len(files)
    assert all(len(alt) > 40 for alt in alts)


def test_the_page_says_who_played(text):
    assert "Scripted policies." in text
    assert "No language model was run" in text
    assert "kbc/poisson (scripted)" in text


def test_the_page_says_how_it_was_made(everything, text):
    manifest = json.loads((everything / "run.json").read_text())
    assert "llm-coop run everything.yaml" in text
    assert manifest["digest"] in text
    assert f"numpy {np.__version__}" in text
    assert html.escape(ALL.splitlines()[4], quote=False) in text
    assert "10.18653" in text or "arXiv 2402.12327" in text


def test_the_same_run_gives_the_same_report(everything, reported, tmp_path):
    again = write_report(everything, tmp_path)
    for file in (path for path in reported.parent.rglob("*") if path.is_file()):
        # The page says where it was written.
        found = (
            (again.parent / file.relative_to(reported.parent))
            .read_bytes()
            .replace(str(tmp_path).encode(), str(reported.parent).encode())
        )
        assert found == file.read_bytes()


def sections_of(run):
    return {section.scenario.name: section for section in read_run(run)[0]}


PUBLISHED = """\
name: published
conditions:
  - {name: kbc, scenario: kbc, preset: two_thirds, policies: poisson, seeds: [0]}
  - {name: kbc-half, scenario: kbc, preset: half, policies: poisson, seeds: [0]}
  - {name: kbc-twelve, scenario: kbc, settings: {players: 12}, policies: poisson, seeds: [0]}
  - {name: kbc-repeated, scenario: kbc, settings: {session: repeated, rounds: 4, talk_turns: 1}, policies: poisson,
     seeds: [0]}
  - {name: bertrand, scenario: bertrand, preset: team_up_linear, policies: price_matching, seeds: [0]}
  - {name: bertrand-short, scenario: bertrand, preset: team_up_linear, settings: {rounds: 40}, policies: price_matching,
     seeds: [0]}
  - {name: bertrand-logit, scenario: bertrand, preset: team_up, settings: {rounds: 40}, policies: price_matching,
     seeds: [0]}
  - {name: evacuation, scenario: evacuation, settings: {talk: false}, policies: nearest_exit, seeds: [0, 4]}
  - {name: evacuation-47, scenario: evacuation, settings: {talk: false, people: 47}, policies: nearest_exit,
     seeds: [0]}
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "run"
    run_study(small_study(PUBLISHED), folder)
    return folder


def test_published_values_stand_beside_what_they_can_be_compared_with(published):
    sections = sections_of(open_run(published))
    evacuation = sections["evacuation"].tables()
    assert [table.title for table in evacuation] == ["People who have left, of 100", "People who have left, of 47"]
    assert evacuation[0].head[1:] == [str(r) for r in range(5, 51, 5)]
    silent = find_scenario("evacuation").published["table_2"]["rows"][0]
    (row,) = [row for row in evacuation[0].rows if row.published]
    assert row.name == "GPT-4, no communication"
    assert [float(cell.text) for cell in row.cells] == silent["escaped"]
    kbc = sections["kbc"].tables()
    assert [[row.name for row in table.rows if not row.published] for table in kbc] == [
        ["kbc"],
        ["kbc-half", "kbc-twelve"],
        ["kbc-repeated"],
    ]
    arms = [row for row in kbc[0].rows if row.published]
    for row, arm in zip(arms, find_scenario("kbc").published["variance"]["arms"], strict=True):
        assert [float(cell.text) for cell in row.cells] == arm["mean"]
    assert [table.head[1] for table in kbc] == ["k = 0", "k = 0", "decision 1"]
    assert "(two thirds of it or half of it)" in sections["kbc"].intro()[0]
    bertrand = sections["bertrand"].tables()
    assert any("6 and 8" in note for note in bertrand[0].notes)
    prices = dict(zip(bertrand[0].head[1:], bertrand[0].rows[-1].cells, strict=True))
    assert prices["round 300"].text == "7.50"
    for tables in (evacuation, kbc, bertrand):
        for table in tables[1:]:
            assert not any(row.published for row in table.rows)
            assert "ublished" not in "".join(table.notes)
        for table in tables:
            assert all(len(row.cells) == len(table.head) - 1 for row in table.rows)


def test_published_curves_are_drawn_beside_the_same_only(published):
    """In no axes does a dashed curve stand beside one that was played otherwise."""
    for section in sections_of(open_run(published)).values():
        for drawing in section.drawings():
            dashed = [any(line.get_markerfacecolor() == "white" for line in axes.lines) for axes in drawing.figure.axes]
            alone = drawing.name.split("_")[-1] in ("bertrand", "1") or drawing.name == "kbc_variance"
            assert any(dashed) == (alone and "snapshots" not in drawing.name)
            assert drawing.published == ("Dashed: " in drawing.caption) == any(dashed)
    (variance,) = sections_of(open_run(published))["kbc"].variance()
    ours = [
        [line.get_label() for line in axes.lines if "here" in str(line.get_label())] for axes in variance.figure.axes
    ]
    assert [len(labels) for labels in ours] == [1, 2, 1]
    assert [axes.get_xlabel() for axes in variance.figure.axes] == ["k (talks so far)", "k (talks so far)", "decision"]


def test_our_numbers_are_those_of_the_events(everything):
    run = open_run(everything)
    sections = sections_of(run)
    variances = [
        [np.var(e["choices"]) for e in run.read_events("kbc-silent", seed)[1] if e["type"] == "round"]
        for seed in (0, 1)
    ]
    row = next(r for r in sections["kbc"].tables()[0].rows if r.name == "kbc-silent")
    assert [float(cell.text) for cell in row.cells] == pytest.approx(np.mean(variances, axis=0), abs=0.5)
    left = []
    for seed in (0, 1):
        rounds = [e for e in run.read_events("evacuation-silent", seed)[1] if e["type"] == "round"]
        left.append(sum(len(e["escaped"]) for e in rounds if e["round"] <= 10))
    row = next(r for r in sections["evacuation"].tables()[0].rows if r.name == "evacuation-silent")
    assert float(row.cells[1].text) == pytest.approx(np.mean(left), abs=0.05)
    prices = [
        np.mean([e["prices"] for e in run.read_events("bertrand-silent", seed)[1] if e["type"] == "round"][:20])
        for seed in (0, 1)
    ]
    row = next(r for r in sections["bertrand"].tables()[0].rows if r.name == "bertrand-silent")
    assert float(row.cells[0].text) == pytest.approx(np.mean(prices), abs=0.005)


def say(folder, message):
    """Put a message into every message event of a run."""
    for path in events_in(folder):
        header, *events = read_lines(path)
        for event in events:
            if event["type"] == "message":
                event["text"] = message
        path.write_bytes(pack_lines([header, *events]))
    record_again(folder)


def test_messages_are_data_never_markup(everything, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(everything, folder)
    plain = Page(write_report(folder, tmp_path / "plain").read_text(encoding="utf-8"))
    say(folder, EVIL)
    text = write_report(folder, tmp_path / "evil").read_text(encoding="utf-8")
    page = Page(text)
    assert set(page.tags) == set(plain.tags)
    assert page.tags.count("img") == plain.tags.count("img")
    assert {name for _, name, _ in page.attributes} == {name for _, name, _ in plain.attributes}
    assert page.quotations
    assert set(page.quotations) == {EVIL}
    assert "49" not in "".join(page.quotations).replace("7*7", "")


SOURCE = 'source: "<script>3</script>"\nsettles: ["<script>this</script> or that"]'


def test_study_texts_are_data_too(tmp_path):
    text = KBC.replace("name: silent", 'name: silent\n    title: "<b>bold</b>"')
    text = (
        text.replace("name: small", 'name: small\ndescription: "<script>1</script>"\n' + SOURCE)
        + "# </pre><script>2</script>\n"
    )
    run_study(small_study(text), tmp_path / "run")
    page = Page(write_report(tmp_path / "run").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert "b" not in page.tags
    shown = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;3" in shown
    assert "&lt;script&gt;this&lt;/script&gt; or that" in shown


def test_a_study_that_was_only_tried_out_says_so(text, tmp_path):
    assert "Only tried out." not in text
    run_study(select(small_study(), reduced=True), tmp_path / "run", workers=1)
    told = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "<strong>Only tried out.</strong>" in told


def test_incomplete_runs_need_to_be_asked_for(everything, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(everything, folder)
    events_in(folder)[0].unlink()
    write_manifest(folder, status="interrupted")
    with pytest.raises(RunError, match=r"not complete \(11 of 12 episodes\).*everything\.yaml -o .*--partial"):
        write_report(folder)
    assert not (folder / "report").exists()
    text = write_report(folder, partial=True).read_text(encoding="utf-8")
    assert "Not complete." in text
    assert "11 of 12 episodes" in text
    for path in events_in(folder):
        path.unlink()
    with pytest.raises(RunError, match="no finished episode"):
        write_report(folder, partial=True)


ODD = """\
name: odd
conditions:
  - {name: one-decision, scenario: kbc, preset: shall_we_talk, settings: {players: 4}, policies: level_k, seeds: [1]}
  - {name: many-rounds, scenario: kbc, preset: large_scale, settings: {players: 9, groups: 3}, policies: uniform,
     seeds: [1, 2]}
  - {name: three-firms, scenario: bertrand, preset: calvano, settings: {firms: 3, rounds: 7}, policies: best_reply,
     seeds: [1]}
  - {name: one-person, scenario: evacuation, preset: single, policies: nearest_exit, seeds: [1, 2]}
  - {name: too-short, scenario: evacuation, preset: small, settings: {rounds: 3, people: 9, extra_round: true},
     policies: random, seeds: [5]}
measures: [mean_round, variance_last]
"""


def test_other_protocols_are_reported_without_false_comparison(tmp_path):
    run_study(small_study(ODD), tmp_path / "run")
    sections = sections_of(open_run(tmp_path / "run"))
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    measures = ["mean_round", "variance_last"]
    assert "n = 1" in page
    # What a study names is what is shown.
    assert [row.name for row in sections["evacuation"].measures(measures).rows] == ["mean_round"]
    assert [row.name for row in sections["kbc"].measures(measures).rows] == ["variance_last"]
    assert sections["bertrand"].measures(measures) is None
    assert "variance_first" not in page
    # Newspaper readers were asked what one of these contests asks; no model was.
    text = page.partition("</style>")[2].replace("as the published curve is", "")
    assert "ublished" not in text
    single, short = sections["evacuation"].tables()
    assert (single.title, short.title) == ("People who have left, of 1", "People who have left, of 9")
    assert short.head[1:] == ["1", "2", "3"]
    (table,) = sections["bertrand"].tables()
    assert table.head == ["", "the last"]
    assert table.rows[0].cells[0].text != "\N{EN DASH}"


@pytest.mark.parametrize("which", ["*-silent", "*"])
def test_episodes_that_ended_before_a_round_are_no_error(everything, tmp_path, which):
    folder = tmp_path / "run"
    shutil.copytree(everything, folder)
    for path in events_in(folder):
        if path.parent.match(which):
            header, *events = read_lines(path)
            path.write_bytes(pack_lines([header, *(e for e in events if e["type"] in ("start", "end"))]))
    record_again(folder)
    assert write_report(folder).is_file()
    only = ("evacuation-escapes", "bertrand-prices", "kbc-choices", "seeds")
    outcome = draw_figures(folder, formats=("png",), only=only)
    assert "evacuation-escapes" in outcome.drawn
    assert ("bertrand-prices" in outcome.drawn) == (which != "*")
    assert ("kbc-choices" in outcome.drawn) == (which != "*")


def test_a_damaged_episode_is_named(everything, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(everything, folder)
    path = events_in(folder)[0]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RunError, match=re.escape(str(path))):
        write_report(folder)


def test_a_report_changes_nothing_in_the_run(everything, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(everything, folder)
    before = contents(folder)
    write_report(folder)
    assert contents(folder) == before


def test_excerpts_show_no_message_twice(everything):
    for episode in read_episodes(open_run(everything)):
        part = excerpt(episode)
        said = [m for m in episode.messages if m["text"]]
        if not said:
            assert part is None
            continue
        lines = [(m["speaker"], m["text"]) for m in part.messages]
        assert len(lines) == len({text for _, text in lines}) <= 8
        assert set(lines) <= {(m["speaker"], m["text"]) for m in said}
        assert part.left_out == len(said) - len(lines)


def test_colours_follow_talk_and_differ():
    conditions = small_study(ALL).conditions
    chosen = colours(conditions)
    assert (chosen["kbc-silent"], chosen["kbc-talk"]) == ("#0072b2", "#d55e00")
    assert len(set(chosen.values())) == 6


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0, 0], 0),
        ([12.0, 3], 0),
        ([0.1234], 3),
        ([1.234, 0.5], 2),
        ([12.34, 1.2], 1),
        ([1234.5], 0),
        ([-0.5], 3),
        ([0.0012], 4),
        ([1e-9], 6),
    ],
)
def test_decimals_follow_the_size(values, decimals):
    assert decimals_for(values) == decimals


def test_interval_cells():
    found = Interval(mean=1.26, low=1.0, high=1.5, n=4)
    assert interval_cell(None) == Cell(text="\N{EN DASH}")
    assert interval_cell(found, 1) == Cell(text="1.3", below="1.0 to 1.5")
    assert interval_cell(found) == Cell(text="1.26", below="1.00 to 1.50")
    assert interval_cell(found, of=4) == interval_cell(found)
    assert interval_cell(found, of=5).below == "1.00 to 1.50; 4 of 5"
    assert interval_cell(Interval(mean=-0.07, low=-0.072, high=-0.067, n=4)).below == "-0.072 to -0.067"
    assert interval_cell(Interval(mean=0.5, low=-1e-17, high=1.0, n=2), 1).below == "0.0 to 1.0"
    assert interval_cell(Interval(mean=1.26, low=None, high=None, n=1), 1) == Cell(text="1.3")
    assert interval_cell(Interval(mean=1.26, low=None, high=None, n=1), of=3) == Cell(text="1.26", below="1 of 3")
    assert interval_cell(Interval(mean=3.0, low=3.0, high=3.0, n=4)) == Cell(text="3", below="always")
    assert interval_cell(Interval(mean=3.0, low=3.0, high=3.0, n=4), 2) == Cell(text="3.00", below="always")
    near = Interval(mean=0.5, low=0.49999, high=0.50001, n=4)
    assert interval_cell(near) == Cell(text="0.500", below="0.500 when rounded")
    wide = Interval(mean=0.96, low=0.7, high=1.02, n=4)
    assert interval_cell(wide, 2, within=(0, 1)) == Cell(text="0.96", below="0.70 to 1.00")
    assert interval_cell(wide, 2, within=(0.8, None)).below == "0.80 to 1.02"
    assert interval_cell(Interval(mean=2.0, low=None, high=None, n=1), within=(0, 1)).below == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_the_screen(reported, tmp_path, width):
    """In a real browser nothing sticks out sideways, and the pictures are drawn."""
    # Headless Chromium windows are at least 500 pixels wide; a frame can be as narrow as a phone.
    outer = tmp_path / "outer.html"
    outer.write_text(
        f"<iframe src='{reported.as_uri()}' style='width:{width}px;height:900px;border:0'></iframe>"
        "<script>document.querySelector('iframe').onload = event => {"
        "const page = event.target.contentDocument, r = page.documentElement;"
        "const images = [...page.images].every(i => i.naturalWidth > 100);"
        "const style = getComputedStyle(page.querySelector('main')).maxWidth !== 'none';"
        "document.title = `wide ${r.scrollWidth <= r.clientWidth} images ${images} style ${style}`; }</script>"
    )
    dumped = browse(outer, tmp_path, "--dump-dom", "--allow-file-access-from-files")
    assert "<title>wide true images true style true</title>" in dumped


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_nothing_that_got_into_a_page_runs_or_asks_elsewhere(reported, tmp_path):
    evil = (
        "<script>document.title += ' script'</script><img src='data:,' onerror=\"document.title += ' handler'\">"
        "<style>title { display: block }</style><p id='styled' style='position: fixed'>x</p>"
        "<iframe src='data:text/html,x' onload=\"document.title += ' frame'\"></iframe>"
    )
    text = reported.read_text(encoding="utf-8").replace("</body>", f"{evil}</body>")
    policy = re.search(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", text).group()
    for name, content in (("guarded", text), ("open", text.replace(policy, ""))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "page.html").write_text(content, encoding="utf-8")
        dumped = browse(folder / "page.html", folder, "--dump-dom")
        (title,) = re.findall("<title>(.*?)</title>", dumped)
        assert [word for word in ("script", "handler") if word in title] == (
            [] if name == "guarded" else ["script", "handler"]
        )


def browse(path: Path, folder: Path, *options: str) -> str:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
    flags += ["--virtual-time-budget=10000"]
    profile = folder / "profile"
    profile.mkdir()
    done = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={profile}", *options, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("treatment", ["delivery: drop", "information: own", "observation_noise: 0.1"])
def test_published_values_do_not_stand_beside_what_no_paper_did(treatment):
    played = "name: a, scenario: bertrand, preset: team_up_linear, policies: uniform, seeds: [1]"
    text = "{name: x, conditions: [{" + played + "%s}]}"
    rule = {"comparable": {"preset": "team_up_linear", "except": ["rounds"]}}
    (usual,) = small_study(text % ", settings: {rounds: 5}").conditions
    (treated,) = small_study(text % f", settings: {{{treatment}}}").conditions
    assert comparable(usual, rule)
    assert not comparable(treated, rule)


def test_measures_of_many_conditions_stand_in_columns(tmp_path):
    """The page cut what did not fit beside each other; the numbers are the same either way."""
    arms = "".join(f"  - {{<<: *one, name: c{i}, settings: {{players: {i}}}}}\n" for i in range(4, 10))
    text = "name: many\nconditions:\n  - &one {name: c3, scenario: kbc, settings: {players: 3}, policies: poisson, "
    run = run_study(small_study(text + f"seeds: [0, 1]}}\n{arms}"), tmp_path / "run").run
    ((section,), _) = read_run(run)
    table = section.measures(["mean_last", "variance_last"])
    assert table.head == ["", "mean_last", "variance_last"]
    assert [row.name for row in table.rows] == [f"c{i}" for i in range(3, 10)]
    assert [row.conditions for row in table.rows] == [(f"c{i}",) for i in range(3, 10)]
    assert any(note.startswith("mean_last: Mean of the players' numbers") for note in table.notes)
    for name, place in (("mean_last", 0), ("variance_last", 1)):
        means = [np.mean([row[name] for row in one.metrics]) for one in section.conditions]
        assert [row.cells[place].number.mean for row in table.rows] == pytest.approx(means)
    section.conditions = section.conditions[:3]
    assert section.measures(["mean_last", "variance_last"]).head[0] == "measure"


@pytest.mark.parametrize(
    ("definition", "least", "most"),
    [
        ("Share of messages that speak of it, by a list of words, 0 to 1; missing without any.", 0, 1),
        ("People who left the room, a count from 0.", 0, None),
        ("Rounds that were played, a count from 0 to the settings' limit.", 0, None),
        ("Entropy over the greatest possible, from 0 to 1 (all by one exit); missing if nobody left.", 0, 1),
        ("Correlation of two firms' price changes, -1 to 1; missing where prices do not move.", -1, 1),
        ("Share of a single firm's rounds from 101 on with 99 % of the monopoly profit, 0 to 1.", 0, 1),
        ("Place of the mean price of rounds 250 to 300 between two prices; below and above possible.", None, None),
        ("Mean profit: 0 at the Nash, 1 at the joint-profit price (Delta of Calvano et al. 2020).", None, None),
    ],
)
def test_a_definition_says_what_a_measure_can_be(definition, least, most):
    assert bounds(definition) == (least, most)


def test_no_interval_of_a_measure_leaves_what_it_can_be(tmp_path):
    """With few skewed values intervals reached below 0 people and above all of them."""
    text = """\
name: bounds
conditions:
  - {name: contest, scenario: kbc, settings: {players: 3}, episodes: 5,
     policies: {mix: [{name: announcer}, {name: poisson, share: 2}]}}
"""
    run = run_study(small_study(text), tmp_path / "run").run
    ((section,), _) = read_run(run)
    (one,) = section.conditions
    raw = {name: mean_interval(values_of(one.metrics, name)) for name in one.metrics[0] if name not in ("seed", "talk")}
    outside = {
        name
        for name, found in raw.items()
        if found is not None
        and found.low is not None
        and any(bound is not None for bound in section.bounds(name))
        and found != found.within(*section.bounds(name))
    }
    assert outside
    cells = {row.name: row.cells[0] for row in section.measures(()).rows}
    for name in outside:
        low, high = section.bounds(name)
        assert low is None or cells[name].number.low >= low
        assert high is None or cells[name].number.high <= high
    assert all(row["low"] >= 0 for row in plotted(section.variance()[0].figure) if "low" in row)
