"""Whatever happens to the bytes of a run: it is told in a sentence, and no number is silently another."""

import random

import damaging
import pytest


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Runs of rules and of models; not to be changed."""
    folder = tmp_path_factory.mktemp("sound")
    damaging.sound_runs(folder)
    return folder


@pytest.mark.parametrize("name", ["rules", "models"])
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.rare) for seed in range(8, 15))])
def test_random_damage_is_told_and_changes_no_number(sound, tmp_path, name, seed):
    damaging.check(sound / name, tmp_path / "run", name, random.Random(f"{name} {seed}"))
