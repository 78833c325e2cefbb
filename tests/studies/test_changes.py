"""Changes in study files: what is played, what is recorded, and what is refused with its place."""

import pytest
from model_studies import answering, play

from llm_coop_envs.errors import StudyError
from llm_coop_envs.policies.llm.journal import read_questions
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.seating import read_player, read_seat, with_players
from llm_coop_envs.studies.study import parse_study

STUDY = """\
name: treated
conditions:
  - name: prices
    scenario: bertrand
    settings: {rounds: 6, collusion_window: 0, exchanges: 1}
    policies: uniform
    seeds: [0, 1]
    variants:
      - {name: untreated, pair: prices}
      - name: silent
        pair: prices
        changes:
          - from_round: 4
            settings: {talk: false}
      - name: forced
        pair: prices
        changes:
          - from_round: 4
            until_round: 5
            players: firm_0
            policy: {name: forced, options: {choice: 1.5}}
          - {from_round: 6, players: [firm_1], policy: price_matching, settings: {history_window: 1}}
"""


def prices(run, condition):
    return [event["prices"] for event in run.read_events(condition, 1)[1] if event["type"] == "round"]


def test_conditions_with_changes_are_played_beside_the_untreated_one(tmp_path):
    study = parse_study(STUDY, "x.yaml")
    assert [Condition.from_json(one.to_json()) for one in study.conditions] == list(study.conditions)
    untreated, silent, forced = study.conditions
    assert "changes" not in untreated.to_json()
    assert "changes" not in untreated.settings
    assert forced.policies == ("bertrand/uniform", "forced", "bertrand/price_matching")
    run = run_study(study, tmp_path / "run").run
    usual, other = prices(run, untreated.name), prices(run, forced.name)
    assert other[:3] == usual[:3]
    assert prices(run, silent.name) == usual  # uniform prices do not hang on talk
    assert [price[0] for price in other] == [*[p[0] for p in usual[:3]], 1.5, 1.5, usual[5][0]]
    assert [price[1] for price in other[:5]] == [price[1] for price in usual[:5]]
    told = [event for event in run.read_events(forced.name, 1)[1] if event["type"] == "change"]
    assert [(event["round"], sorted(event.keys() & {"changes", "policies"})) for event in told] == [
        (4, ["policies"]),
        (6, ["changes"]),
        (6, ["policies"]),
    ]
    assert told[0]["policies"][0]["options"] == {"choice": 1.5}


MODEL = STUDY.replace(
    "policy: price_matching",
    "policy: {options: {personas: [uncooperative], parameters: {default: {temperature: 1.2}}}}",
)


def test_a_model_goes_on_as_somebody_else():
    study = with_players(
        parse_study(MODEL.replace("policies: uniform", "policies: 'llm:m'"), "x"),
        None,
        [read_seat("firm_0=llm:other {base_url: 'http://127.0.0.1:1/v1'}")],
    )
    (_, before, after) = study.conditions[2].successors[-1]
    assert (before.policy, after.policy) == ("llm:m", "llm:m")
    assert after.options["personas"] == ["uncooperative"]
    assert {one.policy for one in study.models} == {"llm:m", "llm:other"}
    assert study.digest == parse_study_digest(study)


def parse_study_digest(study):
    """The digest hangs on what is played alone, not on where models are reached."""
    reached = tuple(one.with_endpoints(lambda player: {"base_url": "http://elsewhere"}) for one in study.conditions)
    assert all(player.endpoint for one in reached for player in one.players if "llm" in player.policy)
    return type(study)(**{**vars(study), "conditions": reached}).digest


def test_what_is_for_models_leaves_others_as_they_are():
    text = STUDY.replace("policy: price_matching", "model: {personas: [uncooperative]}")
    scripted = parse_study(text, "x")
    assert scripted.conditions[2].policies == ("bertrand/uniform", "forced")
    model = with_players(scripted, read_player("llm:m"))
    personas = [after.options.get("personas") for _, _, after in model.conditions[2].successors]
    assert personas == [None, ["uncooperative"]]
    assert Condition.from_json(model.conditions[2].to_json()).successors == model.conditions[2].successors
    with pytest.raises(StudyError, match="did you mean 'personas'"):
        parse_study(text.replace("personas", "persnas"), "x")


def test_options_that_do_not_fit_who_is_given_are_refused():
    with pytest.raises(StudyError, match="condition 'prices-forced': what changes does not fit who plays"):
        with_players(parse_study(MODEL.replace("policies: uniform", "policies: 'llm:m'"), "x"), read_player("uniform"))


EVERYWHERE = """\
name: everywhere
conditions:
  - name: kbc
    scenario: kbc
    settings: {players: 3, session: repeated, rounds: 3, talk_turns: 1}
    policies: "llm:scripted"
    seeds: [0]
    changes:
      - {from_round: 2, players: player_0, policy: {name: forced, options: {choice: 7}}}
      - &another
        from_round: 2
        players: player_1
        policy: {options: {model: scripted-b, personas: [uncooperative], temperature: 1.25}}
  - name: bertrand
    scenario: bertrand
    settings: {rounds: 3, exchanges: 1, collusion_window: 0}
    policies: "llm:scripted"
    seeds: [0]
    changes:
      - {from_round: 2, players: firm_0, policy: {name: forced, options: {choice: 1.5}}}
      - {<<: *another, players: firm_1}
  - name: evacuation
    scenario: evacuation
    settings: {rows: 12, cols: 12, people: 3, rounds: 3, control: exit, replan_probability: 1.0}
    policies: "llm:scripted"
    seeds: [0]
    changes:
      - {from_round: 2, players: evacuee_0, policy: {name: forced, options: {choice: left}}}
      - {<<: *another, players: evacuee_1}
"""


def test_some_are_forced_and_others_another_model_in_every_scenario(tmp_path):
    folder = tmp_path / "run"
    with answering() as server:
        assert play(server, folder, EVERYWHERE).complete
    run = open_run(folder)
    for scenario, one in (("kbc", 7), ("bertrand", 1.5), ("evacuation", 1)):
        events = [event for event in run.read_events(scenario, 0)[1] if event["type"] == "choice"]
        assert [event["choice"] for event in events if event["agent"].endswith("_0")][1:] == [one, one]
    asked = {}
    for key, line in read_questions(folder):
        seat = asked.setdefault((key.episode.partition("/")[0], key.agent[-1]), [])
        seat.append((line["reply"]["model"], line["request"]["temperature"] == 1.25))
    other = ("scripted:scripted-b", True)
    for (_, seat), found in asked.items():
        assert found == sorted(found, key=other.__eq__)  # nobody goes back
        assert set(found) - {("scripted:scripted", False)} == ({other} if seat == "1" else set())
    assert len(asked) == 8  # of two firms and twice three others


FIRST = "from_round: 4\n            settings"
WRONG = [
    (
        "from_round: 4\n            settings",
        "from_rond: 4\n            settings",
        13,
        ["changes[0].from_rond", "'from_round'"],
    ),
    (
        "from_round: 4\n            settings",
        "from_round: x\n            settings",
        13,
        ["changes[0].from_round", "'x'"],
    ),
    ("settings: {talk: false}", "settings: {tlak: false}", 14, ["changes[0].settings.tlak", "'talk'"]),
    ("settings: {talk: false}", "settings: {talk: 5}", 14, ["changes[0].settings.talk", "5"]),
    ("            settings: {talk: false}\n", "", 13, ["changes[0]", "needs 'settings'"]),
    ("players: firm_0", "players: firm_7", 20, ["changes[0].players", "'firm_7'", "'firm_"]),
    ("until_round: 5", "until_round: 3", 19, ["changes[0].until_round", "3", "4 or more"]),
    (
        "name: forced, options",
        "name: forcd, options",
        21,
        ["policy.name", "'forcd'", "did you mean 'forced'"],
    ),
    ("{choice: 1.5}", "{choise: 1.5}", 21, ["changes[0].policy.options.choise", "'choice'"]),
    ("history_window: 1", "history_window: -1", 22, ["changes[1].settings.history_window", "-1"]),
    (
        "policy: price_matching",
        "policy: {name: best_reply, options: {toleranse: 1}}",
        22,
        ["changes[1].policy.options.toleranse", "takes none"],
    ),
    ("[firm_1]", "[frm_1]", 22, ["changes[1].players", "did you mean 'firm_1'"]),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), WRONG)
def test_errors_name_file_line_field_value_and_the_nearest(old, new, line, words):
    assert STUDY.count(old) == 1
    with pytest.raises(StudyError) as caught:
        parse_study(STUDY.replace(old, new), "some.yaml")
    message = str(caught.value)
    assert message.startswith(f"some.yaml, line {line}: conditions[0].variants[")
    for word in words:
        assert word in message
