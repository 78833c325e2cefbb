"""What docs/scorecard.md says is so: version, tasks, reference rows, files and commands."""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from llm_coop_envs.benchmarks.doc_pages.markdown import table
from llm_coop_envs.benchmarks.scorecard.references import RECORDED, references
from llm_coop_envs.benchmarks.scorecard.suite import NAME, VERSION, parts, suite_hash
from llm_coop_envs.benchmarks.scorecard.tasks import TENDENCIES
from llm_coop_envs.kbc.faces.scorecard import READERS_THEMSELVES
from llm_coop_envs.kbc.reference import distances, nyt_density

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "scorecard.md"


def suite_line():
    return f"Suite `{NAME}`, version {VERSION}, hash `{suite_hash()}`."


def tasks_table():
    """Every task with what it measures; tasks of several scenarios that measure the same share a row."""
    tasks = {part.key: part.task for part in parts(0, "quick")}
    names = {}
    for tendency in TENDENCIES:
        for (scenario, name), task in tasks.items():
            if tendency in task.about:
                names.setdefault((tendency, task.about[tendency]), []).append(f"{scenario}-{name}")
    rows = [[tendency, ", ".join(named), about] for (tendency, about), named in names.items()]
    rows.insert(1, ["legality", "all but the questions", TENDENCIES["legality"]])
    return table(["tendency", "task", "what 0 and 1 are"], without_repeats(rows))


def without_repeats(rows):
    """Leave out a row's first cell where it is that of the row above."""
    return [
        ["" if above is not None and above[0] == row[0] else row[0], *row[1:]] for above, row in pairwise([None, *rows])
    ]


def reference_table():
    rows = references({"version": VERSION, "sha256": suite_hash()})
    names = [row["name"] for row in rows]
    scores = [{(line["tendency"], line["scenario"]): line for line in row["lines"]} for row in rows]
    keys = sorted(
        {key for by_key in scores for key in by_key}, key=lambda key: (list(TENDENCIES).index(key[0]), key[1])
    )

    def format_score(line):
        if line is None or line["score"] is None:
            return "-"
        return f"{line['score']:.2f} ({line['low']:.2f}-{line['high']:.2f})"

    body = [[*key, *(format_score(by_key.get(key)) for by_key in scores)] for key in keys]
    sources = [
        f"- **{row['name']}**: `{row['command']}`, {row['date']}, {row['size']}, held-out seed {row['held_out']}"
        + "".join(f", prompts of pack `{pack['name']}`, version {pack['version']}" for pack in row["packs"])
        for row in rows
    ]
    former = [
        f"- **{row['name']}** was played in version {row['version']} ({row['date']}) and is in no table."
        for row in json.loads(RECORDED.read_text())
        if row["sha256"] != suite_hash()
    ]
    return "\n".join([table(["tendency", "scenario", *names], without_repeats(body)), "", *sources, *former])


GENERATED = {"SUITE": suite_line, "TASKS": tasks_table, "REFERENCES": reference_table}


def marked(name):
    return f"<!-- {name} -->\n{GENERATED[name]()}\n<!-- end -->"


def test_version_tasks_and_rows_are_those_of_the_suite():
    page = PAGE.read_text(encoding="utf-8")
    for name in GENERATED:
        assert marked(name) in page, f"run: python {Path(__file__).relative_to(ROOT)}"


def test_rows_were_played_in_this_version_and_say_how():
    rows = json.loads(RECORDED.read_text())
    of_now = {row["name"] for row in rows if (row["version"], row["sha256"]) == (VERSION, suite_hash())}
    assert {"random", "rules"} <= of_now
    assert all(row["version"] < VERSION for row in rows if row["name"] not in of_now)
    for row in rows:
        assert row["command"].startswith("llm-coop bench --")
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"])
        assert "numpy" in row["versions"]
        assert bool(row["packs"]) == any(player["name"].startswith("llm:") for player in row["players"].values())
        assert all(line["score"] is None or 0.0 <= line["score"] <= 1.0 for line in row["lines"])


def test_what_people_themselves_would_score():
    readers, rng = nyt_density(), np.random.default_rng(0)
    drawn = rng.choice(len(readers), p=readers, size=(4000, 24)).astype(float)
    come_to = np.mean([1 - distances(numbers)[1] for numbers in drawn])
    (random,) = (
        line["score"]
        for row in json.loads(RECORDED.read_text())
        for line in row["lines"]
        if (row["name"], line["tendency"]) == ("random", "likeness to people")
    )
    sentence = f"come to {come_to:.2f} on average. That, and random play's {random:.2f},"
    assert f"{come_to:.2f}" == f"{READERS_THEMSELVES:.2f}"
    assert sentence in PAGE.read_text(encoding="utf-8")


def test_practices_that_are_not_met_are_named_and_their_files_exist():
    part = PAGE.read_text(encoding="utf-8").split("## BetterBench")[1]
    answers = dict(re.findall(r"^- (not|in part): (.+)$", part, re.MULTILINE))
    assert {answer: len(practices.split(", ")) for answer, practices in answers.items()} == {"not": 5, "in part": 5}
    assert "`" not in answers["not"]
    for practice in answers["in part"].split(", "):
        (path,) = re.findall(r"\(`([^`]+)`\)", practice)
        assert (ROOT / path).exists(), practice


def test_files_and_options_that_are_named_exist():
    page = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:benchmarks|llm_coop_envs|tests|docs)/[^`]+)`", page):
        assert (ROOT / path).exists(), path
    options = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", page))
    from llm_coop_envs.cli.bench import bench_command

    known_options = {name.replace("_", "-") for name in bench_command.__annotations__}
    assert options <= known_options


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for name in GENERATED:
        text = re.sub(f"^{name}$|<!-- {name} -->.*?<!-- end -->", lambda _, n=name: marked(n), text, flags=re.S | re.M)
    sys.stdout.write(f"{PAGE}: {PAGE.write_text(text, encoding='utf-8')} characters\n")
