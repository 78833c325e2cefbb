import pytest
from invoking import invoke

from llm_coop_envs.benchmarks.scorecard import suite

#: Who keeps its word, answers a cut, and finds the way.
RULES = ("announcer", "tit_for_tat", "nearest_exit")


@pytest.fixture(scope="session")
def small():
    """A suite of one set of parameters and one seed in each half."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SIZES, "quick", suite.Size(public=1, held_out=1, seeds=1))
        yield


@pytest.fixture(scope="session")
def rules(tmp_path_factory, small):
    """A scorecard of rules; not to be changed."""
    folder = tmp_path_factory.mktemp("bench") / "rules"
    options = [part for name in RULES for part in ("--policy", name)]
    result = invoke("bench", *options, "--quick", "--held-out", 7, "--workers", 1, "-o", folder)
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def beauty(monkeypatch, small):
    """The suite of the number contest alone."""
    monkeypatch.setattr(suite, "all_scorecard_tasks", lambda: {"kbc": suite.find_scorecard_tasks("kbc")})
