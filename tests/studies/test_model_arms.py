"""What a condition says of the models that are given for its seats, and several models side by side or together."""

import json
from collections import Counter

import pytest
from invoking import assert_sentence, invoke

from llm_coop_envs.errors import StudyError
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.families import comparisons
from llm_coop_envs.studies.seating import read_player, with_each, with_players
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import load_study, parse_study, too_few_seeds

ARMS = """\
name: arms
source: A paper, section 1.
settles: [one way or the other]
conditions:
  - &arm
    name: plain
    scenario: bertrand
    preset: team_up_linear
    pair: market
    policies: price_matching
    episodes: 1
  - name: told
    <<: *arm
    model: {personas: selfish, persona_from: 401}
    variants:
      - {name: cold, model: {temperature: 0}}
  - name: seats
    <<: *arm
    model: {temperature: 1, seats: {firm_0: {personas: explore}, firm_1: }}
"""


def options(study, name):
    (found,) = (one for one in study.conditions if one.name == name)
    return {seat: [(one.policy, dict(one.options)) for one in players] for seat, players in found.seats}


def test_an_arm_is_kept_when_a_model_plays_it_and_changes_nothing_else():
    study = parse_study(ARMS, "arms.yaml")
    assert (study.source, study.settles) == ("A paper, section 1.", ("one way or the other",))
    played = with_players(study, read_player("llm:m {personas: agreeable, answers: json}"))
    assert options(played, "plain") == {"all": [("llm:m", {"personas": "agreeable", "answers": "json"})]}
    cold = {"personas": "selfish", "persona_from": 401, "temperature": 0, "answers": "json"}
    assert options(played, "told-cold") == {"all": [("llm:m", cold)]}
    scripted = with_players(study, read_player("grim_trigger"))
    assert options(scripted, "told-cold") == {"all": [("bertrand/grim_trigger", {})]}


def test_a_seat_has_options_of_its_own_or_keeps_its_player():
    played = with_players(parse_study(ARMS, "arms.yaml"), read_player("llm:m"))
    first = ("llm:m", {"temperature": 1, "personas": "explore"})
    assert options(played, "seats") == {"firm_0": [first], "all": [("bertrand/price_matching", {})]}
    seated = with_players(parse_study(ARMS, "arms.yaml"), None, [("firm_0", read_player("llm:m"))])
    assert options(seated, "seats") == options(played, "seats")


def test_what_models_are_told_is_no_part_of_what_rules_play():
    study = parse_study(ARMS, "arms.yaml")
    without = parse_study(ARMS.replace("model: {personas: selfish, persona_from: 401}", "model: {}"), "arms.yaml")
    assert study.digest == without.digest
    assert Condition.from_json(study.conditions[1].to_json()).model == {}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("model: {persona: selfish}", "conditions[1].model.persona: 'selfish': is no setting"),
        ("model: {personas: selfsh}", "'selfsh': is no persona of pack en-a; did you mean 'selfish'?"),
        ("model: {seats: {player_0: {}}}", "'player_0' is not a seat; seats are firm_0 to firm_1"),
        ("model: {temperature: warm}", "model.temperature: 'warm': must be a finite number"),
    ],
)
def test_an_error_names_the_line(line, told):
    text = ARMS.replace("model: {personas: selfish, persona_from: 401}", line)
    with pytest.raises(StudyError) as caught:
        parse_study(text.replace("      - {name: cold, model: {temperature: 0}}", "      - {name: cold}"), "arms.yaml")
    assert str(caught.value).startswith("arms.yaml, line 14: ")
    assert told in str(caught.value)


def test_a_temperature_replaces_that_of_every_question():
    settings = LLMSettings.build("team_up", model="m", temperature=1.2)
    assert settings.parameters_for("bertrand", "price").to_json() == {
        "temperature": 1.2,
        "top_p": 1.0,
        "max_tokens": 100,
    }
    assert settings.parameters_for("kbc", "talk").temperature == 1.2
    assert LLMSettings.build(**settings.to_json()) == settings


def test_several_players_stand_side_by_side():
    study = parse_study(ARMS, "arms.yaml")
    played = with_each(study, [read_player("llm:a/b"), read_player("llm:c")])
    assert [one.name for one in played.conditions if one.name.startswith("plain")] == ["plain-a_b", "plain-c"]
    assert [one.title for one in played.conditions if one.name.startswith("plain")] == ["plain, a/b", "plain, c"]
    assert played.conditions[0].pair != played.conditions[-1].pair
    assert played.given == ("--policy llm:a/b", "--policy llm:c")
    with pytest.raises(StudyError, match="give each player once"):
        with_each(study, [read_player("llm:a/b"), read_player("llm:a-b")])


def test_rules_follow_rules_but_no_model():
    change = "    changes: [{from_round: 401, policy: best_reply}]\n"
    text = ARMS.replace("    model: {personas: selfish", change + "    model: {personas: selfish")
    told = parse_study(text, "arms.yaml").conditions[1]
    assert told.players[-1].policy == "bertrand/best_reply"
    played = with_players(parse_study(text, "arms.yaml"), read_player("llm:m")).conditions[1]
    assert played.policies == ("llm:m",)
    forced = text.replace("policy: best_reply", "policy: {name: forced, options: {choice: 6}}")
    played = with_players(parse_study(forced, "arms.yaml"), read_player("llm:m")).conditions[1]
    assert played.policies == ("llm:m", "forced")


MEETING = """\
name: meeting
conditions:
  - &alike {name: alike, scenario: bertrand, settings: {talk: false}, pair: firms, policies: best_reply, seeds: [0]}
  - <<: *alike
    name: models
    model: {seats: {firm_1: {personas: explore}}}
    policies: {firm_0: given_model_1, firm_1: given_model_2}
"""


def met(study):
    """Who sits where in the conditions in which two models meet."""
    return {
        one.name: [(seat, player.policy) for seat, players in one.seats for player in players]
        for one in study.conditions
        if one.name.startswith("models")
    }


def test_two_models_meet_where_a_study_says_so():
    study = parse_study(MEETING, "meeting.yaml")
    assert [one.name for one in study.conditions] == ["alike"]
    played = with_each(study, [read_player("llm:a"), read_player("llm:b")])
    assert [(one.name, one.pair) for one in played.conditions] == [
        ("alike-a", "firms-a"),
        ("alike-b", "firms-b"),
        ("models-a-b", "firms-a"),
    ]
    assert met(played) == {"models-a-b": [("firm_0", "llm:a"), ("firm_1", "llm:b")]}
    assert played.conditions[-1].title == "models, a and b"
    assert options(played, "models-a-b")["firm_1"] == [("llm:b", {"personas": "explore"})]
    # Each two of three models; a rule beside them meets nobody.
    three = with_each(study, [read_player(one) for one in ("llm:a", "llm:b", "grim_trigger", "llm:c")])
    assert list(met(three)) == ["models-a-b", "models-a-c", "models-b-c"]
    # Somebody else's seat is no model's.
    seated = with_each(study, [read_player("llm:a"), read_player("llm:b")], [("firm_0", read_player("grim_trigger"))])
    assert met(seated) == {}


def test_one_model_meets_nobody():
    for players in ([], [read_player("llm:a")], [read_player("llm:a"), read_player("grim_trigger")]):
        study = with_each(parse_study(MEETING, "meeting.yaml"), players)
        assert met(study) == {}
        with pytest.raises(StudyError, match="'models' of 'meeting' needs two language models: --model NAME --model"):
            select(study, only=["mod*"])
    with pytest.raises(StudyError, match=r"line 7.*names given_model_2; two models that meet are given_model_1 and"):
        parse_study(MEETING.replace("firm_0: given_model_1", "firm_0: best_reply"), "meeting.yaml")


def test_the_shipped_study_of_unlike_firms_has_two_models_meet():
    study = load_study("heterogeneity")
    assert [one.name for one in study.optional] == ["models"]
    played = with_each(study, [read_player("llm:a"), read_player("llm:b")])
    [models] = [one for one in played.conditions if one.name in met(played)]
    assert [(seat, one.policy, one.options["preset"]) for seat, [one] in models.seats] == [
        ("firm_0", "llm:a", "fish"),
        ("firm_1", "llm:b", "fish"),
    ]
    assert (models.pair, models.settings) == ("heterogeneity-a", study.conditions[0].settings)
    # Three tests of each model, and one of the two: the study's seeds are enough for them.
    assert len(comparisons(played.conditions)) == 7
    assert too_few_seeds(played) == ""


class Counting(ScriptedServer):
    """Counts who asked which model: the firm by its prompt."""

    def _completed(self, body, fault):
        [prompt] = [message["content"] for message in body["messages"]]
        vars(self).setdefault("by_model", Counter())[body["model"], prompt.partition(" sells one product")[0]] += 1
        return super()._completed(body, fault)


def test_two_models_are_asked_as_often_as_the_estimate_says(tmp_path):
    """Over HTTP: each model is asked for the prices of its own firm, and of no other."""
    flags = ["--only", "models*", "--reduced", "--model", "one", "--model", "two"]
    cost = json.loads(invoke("cost", "heterogeneity", *flags, "--json").stdout)
    [row] = cost["conditions"]
    assert (row["name"], row["calls"]) == ("models-one-two", 4)
    text = "OBSERVATIONS: none\nPLANS: one\nINSIGHTS: two\nPRICE: 1.5"
    with in_thread(Counting(lambda prompt, metadata: text)) as server:
        done = invoke("run", "heterogeneity", *flags, "--base-url", server.base_url, "-o", tmp_path / "run")
        assert done.exit_code == 0, done.stderr
        assert server.by_model == {("one", "firm_0"): 2, ("two", "firm_1"): 2}
    # One that is given alone plays all but this.
    assert_sentence(invoke("run", "heterogeneity", *flags[:-2], "-o", tmp_path / "alone"), "needs two language models")
    dry = invoke("run", "heterogeneity", *flags, "--dry")
    assert dry.stdout.startswith("Condition models-one-two, ")
