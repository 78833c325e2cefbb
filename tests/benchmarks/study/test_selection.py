"""Parts of studies, variants of conditions, and players that are waited for."""

import pytest
from small import small_study

from llm_coop_envs.benchmarks.study.seating import read_player, with_players
from llm_coop_envs.benchmarks.study.selection import select
from llm_coop_envs.benchmarks.study.study import parse_study
from llm_coop_envs.errors import StudyError

VARIANTS = """\
name: grid
conditions:
  - name: level
    title: level-k
    scenario: kbc
    policies: level_k
    settings: {talk: false, players: 4}
    episodes: 2
    variants: &sizes
      - {name: small, settings: {players: 3}}
      - {name: long, title: many rounds, settings: {rounds: 7}, seeds: [5]}
  - {name: given, title: "{policy}", scenario: kbc, policies: given, settings: {talk: false}, episodes: 1}
"""


def test_variants_are_conditions_of_their_own():
    text = VARIANTS.replace(", seeds: [5]", "")
    small, long = parse_study(text, "grid.yaml").conditions
    assert (small.name, small.title, small.variant) == ("level-small", "level-k, small", "small")
    assert (long.name, long.title, long.variant) == ("level-long", "level-k, many rounds", "many rounds")
    assert (small.settings["players"], long.settings["players"]) == (3, 4)
    assert long.settings["rounds"] == 7
    assert not small.settings["talk"]


def test_a_variant_is_checked_as_a_condition_is():
    with pytest.raises(StudyError, match=r"needs either 'seeds' .* or 'episodes'"):
        parse_study(VARIANTS, "grid.yaml")
    with pytest.raises(StudyError, match=r"line 10: conditions\[0\].variants\[0\]: 'name' is missing"):
        parse_study(VARIANTS.replace("name: small, ", ""), "grid.yaml")


def test_conditions_wait_for_a_player_and_are_not_played_without():
    study = parse_study(VARIANTS.replace(", seeds: [5]", ""), "grid.yaml")
    assert [one.name for one in study.optional] == ["given"]
    assert len(study.conditions) == 2
    joined = with_players(study, read_player("uniform"))
    assert [one.policies for one in joined.conditions] == [("kbc/level_k",)] * 2 + [("kbc/uniform",)]
    assert (joined.conditions[2].title, joined.given) == ("uniform", ("--policy uniform",))
    with pytest.raises(StudyError, match="has no place for such a player"):
        with_players(study, read_player("llm:m"))


def test_anchors_with_merges_may_be_used_again():
    text = VARIANTS.replace(", seeds: [5]", "").replace("  - name: level\n", "  - &level\n    name: level\n")
    text += "  - &other {<<: *level, name: other}\n  - {<<: *other, name: third}\n"
    assert len(parse_study(text, "grid.yaml").conditions) == 6


def test_a_part_of_a_study():
    study = small_study()
    part = select(study, only=["sil*"], episodes=2, rounds=4)
    (condition,) = part.conditions
    assert (condition.name, condition.seeds, condition.settings["rounds"]) == ("silent", (1, 2), 4)
    assert part.given == ("--only sil*", "--episodes 2", "--rounds 4")
    assert part.digest != study.digest
    assert select(study) is study


def test_more_episodes_need_derived_seeds():
    derived = parse_study(VARIANTS.replace(", seeds: [5]", ""), "grid.yaml")
    more = select(derived, episodes=5)
    assert all(len(one.seeds) == 5 and one.seeds[:2] == derived.conditions[0].seeds for one in more.conditions)
    with pytest.raises(StudyError, match="--episodes 4: condition 'silent' lists 3 seeds only"):
        select(small_study(), episodes=4)
    with pytest.raises(StudyError, match="--only 'loud': fits no condition of 'small'; it has silent, talking"):
        select(small_study(), only=["loud"])
