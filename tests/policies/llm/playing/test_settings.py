import json

import pytest

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.playing.calls import workflow_class
from llm_coop_envs.policies.llm.playing.parameters import ModelParameters
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.presets import presets
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import ScriptedChat


def own(settings, scenario):
    return settings.workflow_settings(workflow_class(find_scenario(scenario)))


def test_the_published_parameters():
    # Wu et al. 2024: the authors' code, the paper's text, Claude 3 Sonnet; "Shall We Talk"; Fish et al. 2024;
    # EconEvals; Pan et al. 2024.
    table = {
        ("team_up", "kbc"): (0.7, 1.0, 128),
        ("team_up", "bertrand"): (0.7, 1.0, 100),
        ("team_up", "evacuation"): (0.0, 1.0, 512),
        ("team_up_text", "kbc"): (0.7, 1.0, 256),
        ("team_up_text", "bertrand"): (0.7, 1.0, 128),
        ("team_up_text", "evacuation"): (0.0, 1.0, 512),
        ("team_up_claude", "kbc"): (1.0, None, 256),
        ("shall_we_talk", "kbc"): (1.0, 1.0, 256),
        ("shall_we_talk", "bertrand"): (0.7, 1.0, 100),
        ("fish", "bertrand"): (1.0, None, None),
        ("econ_evals", "bertrand"): (1.0, None, None),
        ("large_scale", "kbc"): (1.0, None, 1024),
        ("large_scale", "evacuation"): (None, None, None),
    }
    for (preset, scenario), expected in table.items():
        parameters = LLMSettings.build(preset, model="m").parameters_for(scenario, "talk")
        assert (parameters.temperature, parameters.top_p, parameters.max_tokens) == expected
    assert set(presets()) == {preset for preset, _ in table}
    fish = LLMSettings.build("fish", model="m")
    assert (fish.tries, fish.pack) == (10, "fish")
    assert {LLMSettings.build(one, model="m").pack for one in presets() if one != "fish"} == {"en-a"}
    assert own(LLMSettings.build("fish", model="m"), "bertrand").own_files
    assert own(LLMSettings.build("econ_evals", model="m"), "bertrand").tools == 40
    assert own(LLMSettings.build("shall_we_talk", model="m"), "kbc").number_first
    large = LLMSettings.build("large_scale", model="m")
    assert (large.answers, own(large, "kbc").own_reasons) == ("reason", 100)
    assert LLMSettings.build("large_scale", model="m", answers="json").answers == "json"


def test_the_defaults_are_the_published_protocol():
    settings = LLMSettings(model="m")
    assert settings.context_tokens == 8192
    bertrand, evacuation, kbc = (own(settings, scenario) for scenario in ("bertrand", "evacuation", "kbc"))
    assert bertrand.plan_memory == 20
    assert bertrand.talk_plan_order == "talk_first"
    assert bertrand.statistics_in_talk
    assert not bertrand.repeat_planning_prompt
    assert not bertrand.first_firms_persona
    assert evacuation.panic
    assert evacuation.evaluate
    assert not evacuation.feeling_in_talk
    assert not kbc.number_first
    assert kbc.own_reasons == 0
    assert not settings.summarise
    assert settings.persona_from == 0
    assert (settings.repairs, settings.tries) == (1, 1)
    assert settings.parameters_for("kbc", "talk") == ModelParameters()
    assert settings.prompt_tokens("kbc", "talk") == 8192 - 512


def test_the_most_specific_parameters_count():
    table = {
        "default": {"temperature": 0.1},
        "kbc": {"temperature": 0.2},
        "kbc/choose": {"max_tokens": 300},
    }
    settings = LLMSettings(model="m", parameters=table)
    assert settings.parameters_for("bertrand", "price").temperature == 0.1
    assert settings.parameters_for("kbc", "talk").temperature == 0.2
    assert settings.parameters_for("kbc", "choose") == ModelParameters(max_tokens=300)
    assert settings.prompt_tokens("kbc", "choose") == 8192 - 300


@pytest.mark.parametrize("preset", [None, *presets()])
def test_settings_survive_json(preset):
    given = {"model": "m", "personas": ["agreeable", "none"]}
    if preset is None:
        given["parameters"] = {"default": {"stop": "END", "extra": {"top_k": 5}, "seed": 3, "reasoning_effort": "low"}}
    settings = LLMSettings.build(preset, **given)
    data = json.loads(json.dumps(settings.to_json()))
    assert LLMSettings.build(**data) == settings


def test_settings_of_a_scenario_hold_there_and_change_nothing_elsewhere():
    settings = LLMSettings.build(model="m", panic=False, plan_memory=3)
    assert not own(settings, "evacuation").panic
    assert own(settings, "bertrand").plan_memory == 3
    assert own(settings, "kbc") == own(LLMSettings(model="m"), "kbc")
    assert settings.to_json()["panic"] is False
    assert "number_first" not in settings.to_json()
    # What is given wins over the preset's.
    assert not own(LLMSettings.build("shall_we_talk", model="m", number_first=False), "kbc").number_first


def test_one_persona_and_one_stop_text_need_no_list():
    settings = LLMSettings(model="m", personas="agreeable", parameters={"kbc": {"stop": "END"}})
    assert settings.personas == ("agreeable",)
    assert settings.parameters_for("kbc", "talk").stop == ("END",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": " "}, "model=' ': must be a name"),
        ({"pack": ""}, "pack='': must be a name"),
        ({"system": 3}, "system=3: must be a text"),
        ({"answers": "tool"}, "answers='tool': must be one of plain, json, reason"),
        ({"deal": "random"}, "deal='random': must be one of"),
        ({"talk_plan_order": "plan"}, "talk_plan_order='plan': must be one of"),
        ({"summarise": 1}, "summarise=1: must be true or false"),
        ({"panic": "yes"}, "panic='yes': must be true or false"),
        ({"repairs": 2}, "repairs=2: must be between 0 and 1"),
        ({"tries": 11}, "tries=11: must be between 0 and 10"),
        ({"plan_memory": -1}, "plan_memory=-1"),
        ({"own_reasons": 1.5}, "own_reasons=1.5"),
        ({"persona_from": -1}, "persona_from=-1"),
        ({"summary_words": 9}, "summary_words=9: must be between 10 and 5000"),
        ({"answer_tokens": 0}, "answer_tokens=0"),
        ({"context_tokens": 700}, "leaves a prompt less than 256 tokens"),
        ({"feeling_in_talk": True, "panic": False}, "needs panic=True"),
        ({"personas": [""]}, "must be a persona, or a list of personas"),
        ({"personas": 3}, "must be a persona, or a list of personas"),
        ({"parameters": []}, "must be a mapping"),
        ({"parameters": {"kcb": {}}}, "'kcb': is no scenario or call; did you mean 'kbc'"),
        ({"parameters": {"kbc/chose": {}}}, "did you mean 'kbc/choose'"),
        ({"parameters": {"kbc": 3}}, "parameters.kbc=3: must be a mapping"),
        ({"parameters": {"kbc": {"temprature": 1}}}, "is no model parameter; did you mean 'temperature'"),
        ({"parameters": {"kbc": {"temperature": -1}}}, "temperature=-1: must be at least 0"),
        ({"parameters": {"kbc": {"temperature": 5.1}}}, "temperature=5.1: must be at least 0 and at most 5"),
        ({"parameters": {"kbc": {"top_p": 0}}}, "top_p=0"),
        ({"parameters": {"kbc": {"top_p": 1.1}}}, "top_p=1.1"),
        ({"parameters": {"kbc": {"max_tokens": 0}}}, "max_tokens=0"),
        ({"parameters": {"kbc": {"seed": "x"}}}, "seed='x'"),
        ({"parameters": {"kbc": {"stop": [""]}}}, "must be a text, or a list of texts"),
        ({"parameters": {"kbc": {"reasoning_effort": "much"}}}, "reasoning_effort='much'"),
        ({"parameters": {"kbc": {"extra": 3}}}, "extra=3: must be a mapping"),
        ({"pannic": False}, "pannic=False: is no setting of LLMSettings; did you mean 'panic'?"),
        ({"modell": "m"}, "is no setting of LLMSettings; did you mean 'model'"),
        ({"preset": "team"}, "is no preset of LLMSettings; did you mean 'team_up'"),
    ],
)
def test_impossible_settings_are_refused(given, words):
    with pytest.raises(SettingsError) as caught:
        LLMSettings.build(**{"model": "m", **given})
    assert words in str(caught.value)


def test_a_policy_shows_its_model_and_its_pack():
    player = LLMPolicy(ScriptedChat(), LLMSettings.build(None, model="scripted"))
    assert repr(player) == "LLMPolicy, scripted, pack en-a"
