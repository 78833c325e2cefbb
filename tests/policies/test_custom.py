"""Policies of somebody else's, by `module:Class`."""

import re

import pytest

from llm_coop_envs import bertrand_v0, policies
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import custom
from llm_coop_envs.runs.provenance import program_of
from llm_coop_envs.studies import players
from llm_coop_envs.studies.study import parse_study

SOURCE = """
from abc import abstractmethod

from llm_coop_envs.policies import Policy, ScriptedPolicy

class Base(ScriptedPolicy):
    @abstractmethod
    def price(self): ...

    def decide(self, request):
        return {"choice": self.price()}

class Fixed(Base):
    def __init__(self, price=5.0):
        self._price = price

    def price(self):
        return self._price
"""

STUDY = """
name: own
conditions:
  - {name: one, scenario: bertrand, settings: {talk: false, rounds: 2}, episodes: 1, policies: MODULE:Fixed}
"""


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """A module in the working directory, of another name in every test."""
    name = re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    custom.source_hash.cache_clear()
    return name


def test_a_class_of_the_working_directory_plays(module):
    policy = policies.make(f"{module}:Fixed", price=2.0)
    env = bertrand_v0.parallel_env(talk=False, rounds=2, record=True, force_first_price=False)
    policies.play(env, policy, seed=0)
    assert {event["choice"] for event in env.events if event["type"] == "choice"} == {2.0}


def test_studies_know_it_by_one_name(module):
    assert players.full_name("bertrand", f"own:{module}:Fixed") == f"{module}:Fixed"
    assert players.policy_label(f"{module}:Fixed") == "own policy"
    assert players.may_learn(f"{module}:Fixed")
    assert not players.asks_a_model(f"{module}:Fixed")


def test_the_manifest_says_which_source_played(module, tmp_path):
    (condition,) = parse_study(STUDY.replace("MODULE", module), "own.yaml").conditions
    before = program_of(condition)
    assert set(before) == {"bertrand", f"{module}:Fixed"}
    custom.source_hash.cache_clear()
    (tmp_path / f"{module}.py").write_text(SOURCE + "# changed\n")
    after = program_of(condition)
    assert after["bertrand"] == before["bertrand"]
    assert after[f"{module}:Fixed"] != before[f"{module}:Fixed"]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("MODULE:Fixd", {}, "did you mean 'Fixed'"),
        ("MODULE:Base", {}, "is no class of a policy"),
        ("json:JSONDecoder", {}, r"derive it from llm_coop_envs\.policies\.ScriptedPolicy"),
        ("MODULE:Fixed", {"cost": 1}, "it takes: price"),
        ("no_such_module_here:Fixed", {}, "cannot be imported from .* No module named"),
        (":Fixed", {}, "cannot be imported"),
        ("./own_agent.py:Fixed", {}, "names a file; give its module, from the file's folder: 'own_agent:Fixed'"),
    ],
)
def test_mistakes_are_sentences(module, name, options, said):
    with pytest.raises(SettingsError, match=said):
        policies.make(name.replace("MODULE", module), **options)
