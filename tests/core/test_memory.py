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


def test_what_a_job_may_have_counts_where_it_is_less(tmp_path):
    def told(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert memory.free_memory(tmp_path) is None
    told("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n")
    assert memory.free_memory(tmp_path) == 4_096_000
    told("proc/self/cgroup", "0::/jobs/7\n")
    told("sys/fs/cgroup/jobs/7/memory.max", "max\n")
    told("sys/fs/cgroup/jobs/7/memory.current", "1000\n")
    assert memory.free_memory(tmp_path) == 4_096_000
    told("sys/fs/cgroup/jobs/memory.max", "3000000\n")
    told("sys/fs/cgroup/jobs/memory.current", "2000000\n")
    told("sys/fs/cgroup/jobs/memory.stat", "anon 1500000\nactive_file 200000\ninactive_file 300000\n")
    assert memory.free_memory(tmp_path) == 1_500_000
