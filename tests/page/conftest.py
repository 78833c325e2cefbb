import pytest
from browser import CHROMIUM, Browser
from model_studies import answering, play
from small import ALL, small_study
from viewing import Asking, viewed

from llm_coop_envs.runs.runner import run_study


@pytest.fixture(autouse=True, scope="session")
def caches(tmp_path_factory):
    """Indexes of tests lie among their temporary files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder of two runs, one of rules and one of a model; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    run_study(small_study(ALL), folder / "rules", command="llm-coop run everything.yaml")
    with answering() as server:
        play(server, folder / "deep" / "model")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One browser for a module's tests."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def asks(runs):
    with viewed(runs) as found:
        yield Asking(*found)
