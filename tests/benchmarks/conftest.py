import pytest


@pytest.fixture
def study_file(tmp_path):
    """Write a study and return its path."""

    def write(text, name="small.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """A finished run of all scenarios; not to be changed."""
    from small import ALL, small_study

    from llm_coop_envs.benchmarks.run.runner import run_study

    folder = tmp_path_factory.mktemp("everything") / "run"
    run_study(small_study(ALL), folder, command="llm-coop run everything.yaml")
    return folder
