"""A crowd that does not fit into memory is refused before it is played."""

import pytest

from llm_coop_envs import kbc_v0
from llm_coop_envs.core import memory
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import make, play


def contest(players, **given):
    return kbc_v0.parallel_env(players=players, **{"session": "repeated", "rounds": 5, "talk": False, **given})


@pytest.mark.parametrize("given", [{}, {"record": True}, {"talk": True}])
def test_too_little_memory_is_said_before_anybody_is_asked(given, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1_000_000)
    env = contest(10_000, **given)
    with pytest.raises(SettingsError, match=r"players=10000: take about 0\.\d GB of memory, and 0\.0 GB are"):
        play(env, make("kbc/uniform"), seed=0)
    assert env.cycles == 0
    assert ("without recording" in refused(env)) == bool(given.get("record"))


def refused(env):
    with pytest.raises(SettingsError) as error:
        memory.check_memory(env)
    return str(error.value)


def test_the_estimate_grows_with_what_is_kept():
    plain, recorded, talking = (contest(10_000, **given) for given in ({}, {"record": True}, {"talk": True}))
    assert memory.memory_for(plain) < memory.memory_for(recorded) < memory.memory_for(contest(20_000, record=True))
    assert memory.memory_for(talking) > 5 * memory.memory_for(plain)


@pytest.mark.parametrize("free", [None, 10**12])
def test_small_tables_and_unknown_memory_are_played(free, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: free)
    memory.check_memory(contest(10_000))
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    memory.check_memory(contest(24, record=True))
