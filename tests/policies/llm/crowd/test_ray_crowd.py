"""One episode's crowd spread over actors of Ray."""

import functools
import os
import sys
from collections import Counter

import pytest
from text_crowds import crowd_rounds, dying_once, number

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.crowd import TextCrowd, policy

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = pytest.mark.ray


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Actors find the tests' helpers, too."""
    tools = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=tools)
    yield
    ray.shutdown()


def played(source, folder, **given):
    env = kbc_v0.parallel_env(preset="large_scale", players=41, rounds=2, record=True)
    with TextCrowd(source, folder=folder, **given) as crowd:
        play(env, crowd, seed=5)
    return crowd_rounds(env)


def test_actors_answer_as_one_process_does(tmp_path):
    assert played(number, tmp_path / "ray", processes=2, ray="auto") == played(number, tmp_path / "one")
    names = [path.name.split(".")[0] for path in sorted((tmp_path / "ray" / "crowd").glob("*.jsonl.*[tz]"))]
    assert names == ["part-0", "part-1"]


def test_an_actor_that_dies_is_replaced_and_nothing_kept_is_asked_again(tmp_path):
    source = functools.partial(dying_once, tmp_path)
    assert played(source, tmp_path / "ray", processes=2, ray="auto", hands=2) == played(number, tmp_path / "one")
    assert (tmp_path / "died").exists()
    asked = Counter((tmp_path / "asked").read_text().split())
    assert {player for player, times in asked.items() if times > 2} == {"19"}  # in two rounds


def test_actors_of_another_version_answer_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(policy, "__version__", "9.9")
    with pytest.raises(RunError, match=r"^a Ray worker has llm-coop-envs \S+, the driver 9.9; install the same$"):
        played(number, tmp_path, processes=2, ray="auto")
