import json
import subprocess
import sys
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from llm_coop_envs.errors import StudyError
from llm_coop_envs.runs.folder import make_run, open_run
from llm_coop_envs.runs.remaining import missing_episodes
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies import study as studies
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.dealing import assign_seats
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import load_study, parse_study

GOOD = """\
name: tiny
seed: 3
conditions:
  - name: silent
    scenario: kbc
    settings:
      talk: false
      players: 4
    policies: uniform
    seeds: [1, 2]
  - name: talking
    title: with talk
    scenario: kbc
    settings: {players: 4}
    policies:
      all: {name: level_k, options: {k: 2}}
      player_0: announcer
      player_[12]: kbc/follower
    episodes: 3
measures: [variance_last]
"""


def test_a_good_study():
    study = parse_study(GOOD, "tiny.yaml")
    assert (study.name, study.seed, study.measures) == ("tiny", 3, ("variance_last",))
    silent, talking = study.conditions
    assert (silent.title, talking.title) == ("silent", "with talk")
    assert silent.seeds == (1, 2)
    assert silent.settings["players"] == 4
    assert silent.settings["high"] == 100
    assert silent.changed == {"talk": False, "players": 4}
    assert silent.policies == ("kbc/uniform",)
    assert [pattern for pattern, _ in talking.seats] == ["player_0", "player_[12]", "all"]
    seats = assign_seats(talking, [f"player_{i}" for i in range(4)], np.random.default_rng(0))
    assert [p.policy for p in seats.values()] == ["kbc/announcer", "kbc/follower", "kbc/follower", "kbc/level_k"]
    assert dict(seats["player_3"].options) == {"k": 2}


def test_derived_seeds_are_shared_by_conditions_and_follow_the_study_seed():
    text = GOOD.replace("seeds: [1, 2]", "episodes: 3")
    first = parse_study(text, "x")
    assert first.conditions[0].seeds == first.conditions[1].seeds
    assert len(set(first.conditions[0].seeds)) == 3
    assert parse_study(text, "x", seed=4).conditions[0].seeds != first.conditions[0].seeds
    assert parse_study(text, "x").conditions[0].seeds == first.conditions[0].seeds


def test_the_digest_is_of_what_is_played_only():
    digest = parse_study(GOOD, "x").digest
    told = GOOD.replace("title: with talk", "title: other").replace("name: tiny", "name: other") + "# remark\n"
    assert parse_study(told, "elsewhere").digest == digest
    for old, new in [("players: 4}", "players: 5}"), ("k: 2", "k: 3"), ("[1, 2]", "[1, 3]"), ("seed: 3", "seed: 4")]:
        assert parse_study(GOOD.replace(old, new), "x").digest != digest


def test_the_digest_does_not_depend_on_the_hash_seed():
    code = f"from llm_coop_envs.studies.study import parse_study; print(parse_study({GOOD!r}, 'x').digest)"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_conditions_survive_json():
    for condition in parse_study(GOOD, "x").conditions:
        assert Condition.from_json(condition.to_json()) == condition


def test_episodes_take_turns(tmp_path):
    run = make_run(parse_study(GOOD, "x"), tmp_path / "run")
    assert [index for index, _ in missing_episodes(run)] == [0, 1, 0, 1, 1]


# (what to replace, with what, the line that must be named, words that must occur)
WRONG = [
    ("name: tiny", "nam: tiny", 1, ["nam", "did you mean 'name'?"]),
    ("name: tiny\n", "", 1, ["'name' is missing"]),
    ("name: tiny", "name: a b", 1, ["name", "'a b'", "letters"]),
    ("name: tiny", "name: yes", 1, ["name", "must be text", "true"]),
    ("seed: 3", "seed: -1", 2, ["seed", "-1"]),
    ("seed: 3", "seed: x", 2, ["seed", "integer", "'x'"]),
    ("seed: 3", "seed: 3\nseed: 4", 3, ["'seed' is given twice", "line 2"]),
    (
        "scenario: kbc\n    settings:\n",
        "scenario: kcb\n    settings:\n",
        5,
        ["conditions[0].scenario", "'kcb'", "'kbc'"],
    ),
    ("      players: 4\n", "      players: 1\n", 8, ["conditions[0].settings.players", "1", "2"]),
    ("      players: 4\n", "      playres: 4\n", 8, ["conditions[0].settings.playres", "did you mean 'players'?"]),
    ("      talk: false", "      talk: maybe", 7, ["settings.talk", "'maybe'"]),
    ("    policies: uniform", "    policies: unifrom", 9, ["conditions[0].policies", "'unifrom'", "'uniform'"]),
    ("    policies: uniform", "    polices: uniform", 9, ["conditions[0].polices", "'policies'"]),
    ("    policies: uniform\n", "", 4, ["conditions[0]", "'policies' is missing"]),
    ("seeds: [1, 2]", "seeds: [1, 1]", 10, ["seeds[1]", "listed twice"]),
    ("seeds: [1, 2]", "seeds: [1, x]", 10, ["seeds[1]", "integer"]),
    ("seeds: [1, 2]", "seeds: []", 10, ["seeds", "not be empty"]),
    ("seeds: [1, 2]", "seeds: 1", 10, ["seeds", "list"]),
    ("    seeds: [1, 2]\n", "", 4, ["either 'seeds'", "'episodes'"]),
    ("seeds: [1, 2]", "seeds: [1]\n    episodes: 2", 4, ["not both"]),
    ("name: talking", "name: SILENT", 11, ["already", "line 4"]),
    ("options: {k: 2}", "options: {k: -2}", 16, ["all.options.k", "-2"]),
    ("options: {k: 2}", "options: {kk: 2}", 16, ["options", "kk"]),
    ("player_0: announcer", "player_9: announcer", 17, ["player_9", "not a seat", "player_0 to player_3"]),
    ("      all: {name: level_k, options: {k: 2}}\n", "", 15, ["nobody plays player_3"]),
    ("player_0: announcer", "player_0: {mix: [{name: announcer, share: 0}]}", 17, ["mix[0].share", "0"]),
    ("episodes: 3", "episodes: 0", 19, ["episodes", "0"]),
    ("episodes: 3", "preset: nosuch\n    episodes: 3", 19, ["preset", "nosuch"]),
    ("measures: [variance_last]", "measures: [1]", 20, ["measures[0]", "must be text"]),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), WRONG)
def test_errors_name_file_line_and_field(old, new, line, words):
    assert GOOD.count(old) == 1
    with pytest.raises(StudyError) as caught:
        parse_study(GOOD.replace(old, new), "some/tiny.yaml")
    message = str(caught.value)
    assert message.startswith(f"some/tiny.yaml, line {line}: ")
    for word in words:
        assert word in message
    assert "\n" not in message


BROKEN = {
    "name: [": ["line 1", "not valid YAML"],
    "a: b: c": ["line 1", "not valid YAML"],
    "\tname: x": ["line 1", "not valid YAML"],
    "name: \x00": ["not valid YAML"],
    "": ["empty"],
    "# only a remark": ["empty"],
    "- a\n- b": ["line 1", "mapping", "list"],
    "just text": ["mapping", "'just text'"],
    "42": ["mapping", "42"],
    "--- \nname: a\n---\nname: b": ["not valid YAML"],
    "name: &a [*a]\nconditions: []": ["contains itself"],
    "? [1, 2]\n: 3": ["plain text"],
    "name: !!python/object/apply:os.system ['true']": ["line 1", "name", "tag"],
    "name: !!binary aGFsbG8=": ["line 1", "name", "tag"],
    'name: "a\\ud800"': ["line 1", "name", "surrogate"],
    '"a\\ud800": x': ["line 1", "surrogate"],
    "conditions: [}": ["line 1", "not valid YAML"],
}


@pytest.mark.parametrize(("text", "words"), BROKEN.items())
def test_what_is_no_study_at_all(text, words):
    with pytest.raises(StudyError) as caught:
        parse_study(text, "bad.yaml")
    for word in ("bad.yaml", *words):
        assert word in str(caught.value)


def test_large_files_are_refused():
    with pytest.raises(StudyError, match="larger than"):
        parse_study("a: " + "x" * 2_000_000, "big.yaml")
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    with pytest.raises(StudyError, match="more than"):
        parse_study(bomb, "bomb.yaml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(StudyError, match=r"no study 'team_pu'.*did you mean 'team_up'"):
        load_study("team_pu")
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(str(tmp_path))
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: \xe9".encode("latin-1"))
    with pytest.raises(StudyError, match=r"latin\.yaml: is not UTF-8"):
        load_study(str(latin))
    with pytest.raises(StudyError, match="seed=-1"):
        load_study("team_up", seed=-1)


def test_scientific_numbers_and_byte_order_marks(tmp_path):
    file = tmp_path / "bom.yaml"
    text = GOOD.replace("settings: {players: 4}", "settings: {players: 4, unit: 1e2}")
    file.write_text(text, encoding="utf-8-sig")
    assert load_study(str(file)).conditions[1].settings["unit"] == 100.0


def test_shipped_studies_load_and_hold_the_published_protocol():
    assert "team_up" in studies.shipped_studies()
    study = load_study("team_up")
    played = {c.name: c for c in study.conditions}
    assert {(c.scenario, c.settings["talk"]) for c in played.values()} == {
        (scenario, talk) for scenario in ("kbc", "bertrand", "evacuation") for talk in (False, True)
    }
    for condition in played.values():
        if condition.scenario == "evacuation":
            assert condition.seeds == (0, 1, 2, 3, 4)
            assert condition.settings["people"] == 100
        else:
            assert len(condition.seeds) == {"kbc": 15, "bertrand": 5}[condition.scenario]


def test_mixes_are_dealt_at_random_and_repeatably():
    text = dedent("""\
        name: mixed
        conditions:
          - name: one
            scenario: kbc
            policies:
              mix:
                - {name: announcer, share: 1}
                - {name: follower, share: 3}
            episodes: 1
        """)
    condition = parse_study(text, "x").conditions[0]
    agents = [f"player_{i}" for i in range(24)]
    deals = [
        [p.policy for p in assign_seats(condition, agents, np.random.default_rng(seed)).values()] for seed in (0, 0, 1)
    ]
    assert deals[0] == deals[1]
    assert deals[0] != deals[2]
    assert all(deal.count("kbc/announcer") == 6 for deal in deals)


PAIRED = """\
name: paired
conditions:
  - {name: silent, pair: one, scenario: kbc, settings: {players: 4, talk: false}, policies: poisson, seeds: [1, 2]}
  - {name: talking, pair: one, scenario: kbc, settings: {players: 4}, policies: poisson, seeds: [1, 2]}
"""


def test_arms_of_one_comparison_draw_the_same_random_numbers():
    silent, talking = parse_study(PAIRED, "x").conditions
    assert silent.streams == talking.streams == "one"
    assert Condition.from_json(silent.to_json()) == silent
    alone = parse_study(PAIRED.replace("pair: one, ", ""), "x")
    assert [one.streams for one in alone.conditions] == ["silent", "talking"]
    assert "pair" not in alone.conditions[0].to_json()
    # Who is paired with whom decides what is drawn, so it is part of what the run is known by.
    assert alone.digest != parse_study(PAIRED, "x").digest


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("seeds: [1, 2]}\n  -", "seeds: [1, 3]}\n  -", "seeds"),
        ("kbc, settings: {players: 4, talk: false}, policies: poisson", "bertrand, policies: uniform", "scenario"),
    ],
)
def test_arms_of_one_comparison_play_the_same_scenario_with_the_same_seeds(old, new, what):
    with pytest.raises(StudyError, match=rf"line 4.*pair.*'silent'.*other {what}"):
        parse_study(PAIRED.replace(old, new, 1), "x")


def test_variants_keep_the_pair_of_their_condition():
    text = PAIRED.replace(", seeds: [1, 2]}", ", seeds: [1], variants: [{name: a}, {name: b, settings: {players: 5}}]}")
    assert [one.pair for one in parse_study(text, "x").conditions] == ["one"] * 4


FIELDS = {
    "scenario": "kbc",
    "preset": "two_thirds",
    "settings": "{players: 4}",
    "policies": "uniform",
    "seeds": "[3, 4]",
    "episodes": "3",
    "after": None,
    "changes": "[{from_round: 2, policy: uniform}]",
    "pair": "contest",
    "when": "when it is played",
    "family": "contests",
    "cluster": "2",
    "model": "{temperature: 0}",
    "population": None,
    "tournament": None,
}


@pytest.mark.parametrize("field", FIELDS)
def test_grid_and_variants_treat_every_field_alike(field):
    """What a condition is given, all that a grid or variants make of it has; the others need more."""
    from llm_coop_envs.studies.study_file import _PLAIN_FIELDS

    assert set(FIELDS) == {*_PLAIN_FIELDS} - {"name", "title"}
    if FIELDS[field] is None:
        return
    given = {"scenario": "kbc", "policies": "poisson", "episodes": "2", "pair": "p", field: FIELDS[field]}
    if field == "seeds":
        del given["episodes"]
    body = ", ".join(f"{name}: {value}" for name, value in given.items())
    other = body.replace("when: when it is played", "when: when something else is played")
    texts = {
        "plain": f"{{name: a, {body}}}\n  - {{name: b, {other}}}",
        "grid": f"{{name: a, {body}, grid: {{talk: [true]}}}}\n  - {{name: b, {other}}}",
        "variants": f"{{name: a, {body}, variants: [{{name: v}}]}}\n  - {{name: b, {other}}}",
    }
    made = {kind: parse_study(f"name: s\nconditions:\n  - {text}\n", "x").conditions[0] for kind, text in texts.items()}
    for kind in ("grid", "variants"):
        plain = made["plain"]
        alike = replace(made[kind], name=plain.name, title=plain.title, variant="", changed=plain.changed)
        assert alike == plain, kind


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "talking, pair: one",
            "talking, pair: two",
            r"line 3: conditions\[0\]\.pair: 'one' is the pair of this cond",
        ),
        ("talking, pair: one", "talking, pair: One", r"line 4.*'One' and 'one' differ by their spelling only"),
        ("talking, pair: one", "talking, pair: null", r"line 3.*'one' is the pair of this condition alone"),
    ],
)
def test_a_pair_of_one_condition_is_refused_with_its_line(old, new, words):
    with pytest.raises(StudyError, match=words):
        parse_study(PAIRED.replace(old, new), "x")


def test_a_cluster_is_read_by_size_or_by_label():
    by_size = parse_study(PAIRED.replace("seeds: [1, 2]", "seeds: [1, 2, 3, 4, 5], cluster: 3"), "x").conditions[0]
    assert by_size.cluster == {1: "0", 2: "0", 3: "0", 4: "1", 5: "1"}
    assert by_size.units == 2
    assert Condition.from_json(json.loads(json.dumps(by_size.to_json()))) == by_size
    with pytest.raises(StudyError, match="has 1 labels for 2 seeds"):
        parse_study(PAIRED.replace("seeds: [1, 2]", "seeds: [1, 2], cluster: [a]"), "x")


def test_talk_is_all_that_differs_between_the_arms_of_the_shipped_study():
    conditions = load_study("team_up").conditions
    assert len({one.pair for one in conditions}) == 3
    for silent, talking in zip(conditions[::2], conditions[1::2], strict=True):
        assert (silent.pair, silent.seats, silent.seeds) == (talking.pair, talking.seats, talking.seeds)
        assert {**silent.settings, "talk": True} == talking.settings


def test_numbers_before_any_talk_are_the_same_with_and_without(tmp_path):
    study = select(load_study("team_up"), only=["kbc-*"], episodes=3)
    run_study(study, tmp_path / "run")
    run = open_run(tmp_path / "run")
    for seed in study.conditions[0].seeds:
        first = [
            next(e["choices"] for e in run.read_events(name, seed)[1] if e["type"] == "round")
            for name in ("kbc-no-talk", "kbc-talk")
        ]
        assert first[0] == first[1]


def test_ties_in_the_division_of_seats_go_to_the_earlier_player():
    mix = "{mix: [{name: announcer}, {name: uniform}, {name: poisson}]}"
    text = f"name: x\nconditions: [{{name: a, scenario: kbc, policies: {mix}, episodes: 1}}]\n"
    (condition,) = parse_study(text, "x").conditions
    for players, counts in ((4, (2, 1, 1)), (5, (2, 2, 1))):
        agents = [f"player_{i}" for i in range(players)]
        seated = [one.policy for one in assign_seats(condition, agents, np.random.default_rng(0)).values()]
        assert tuple(seated.count(f"kbc/{name}") for name in ("announcer", "uniform", "poisson")) == counts


def test_a_preset_among_the_settings_is_refused_with_its_line():
    text = "name: x\nconditions:\n  - name: a\n    scenario: kbc\n    policies: level_k\n    settings: {preset: half}\n"
    with pytest.raises(StudyError, match=r"line 6: .*preset: is no setting; write 'preset' beside 'settings'"):
        parse_study(text, "x.yaml")


@pytest.mark.parametrize(
    ("players", "words"),
    [
        ("[poisson, uniform]", r"policies: must be a policy, or a mapping from seats .*all: NAME.*not a list"),
        ("{name: poisson, tau: 2}", r"policies\.tau: is not known here; .*stand under 'options: \{tau: ...\}'"),
    ],
)
def test_players_in_the_wrong_form_are_told_the_right_one(players, words):
    with pytest.raises(StudyError, match=words):
        parse_study(f"name: s\nconditions:\n  - {{name: a, scenario: kbc, policies: {players}, seeds: [1]}}\n", "x")
