"""A little of `make fuzz`, for every loader and reader; and what it has found."""

import fuzz_targets
import fuzzing
import pytest

from llm_coop_envs.errors import LlmCoopError, StudyError
from llm_coop_envs.studies.study import load_study

NAMES = (
    *("run.json", "events", "events, lines", "journal", "journal, lines", "ledger", "table", "commands"),
    *("study", "study, values", "population", "population, values", "prices", "prices, values", "arms"),
    *("scorecard", "records"),
    *("pack", "pack, templates", "pack, values", "network", "Q table", "tabular", "settings of learners"),
    *("option values", "control", "orders", "labels", "lease", "commitments", "completion", "answers", "state"),
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    made = fuzz_targets.make_targets(tmp_path_factory.mktemp("fuzz"))
    assert sorted(made) == sorted(NAMES)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_no_error_but_our_own(targets, name):
    counts, found = fuzzing.fuzz(targets[name], 0.5)
    assert counts["inputs"] > 0
    assert not found, "\n".join(found.values())


@pytest.mark.parametrize("name", ["study", "pack", "population", "prices"])
def test_brackets_are_refused(targets, name):
    with pytest.raises(LlmCoopError):
        targets[name].read(b"[" * 100_000)


@pytest.mark.parametrize("content", [b'{"name": "0123456789abcdef"}', b'{"name": [], "host": {}}', b"[" * 100_000])
def test_a_session_that_is_none_is_nobody(targets, content):
    targets["control"].read(content)


@pytest.mark.parametrize("options", ["step: x", "preset: [1]"])
def test_study_options_of_another_type(tmp_path, options):
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nconditions:\n  - name: a\n    scenario: bertrand\n    "
        + (f"{options}\n" if options.startswith("preset") else f"settings: {{{options}}}\n")
        + "    policies: price_matching\n    episodes: 1\n"
    )
    with pytest.raises(StudyError, match="line"):
        load_study(str(path))
