import pytest
from llm_chats import Canned, Recorder, run

from llm_coop_envs import kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc.faces.workflow import reason_of
from llm_coop_envs.policies.llm.playing.settings import LLMSettings


def numbers(env):
    return [event["choices"] for event in env.events if event["type"] == "round"]


def test_a_nested_session_asks_as_published():
    # 24 players: 24 decisions, then three times 24 messages and 24 decisions (Wu et al. 2024, authors' code: 168
    # calls).
    env = kbc_v0.parallel_env(record=True)
    policy, chat = run(env)
    assert len(chat.log) == 24 + 3 * 48 == 168
    assert policy.counters.total().fallbacks == 0
    order = [key.call for key, _, _ in chat.log]
    assert order == (["choose"] * 24) + (["talk"] * 24 + ["choose"] * 24) * 3
    assert all(request.messages == request.messages[:1] for _, request, _ in chat.log)
    assert {message.role for _, request, _ in chat.log for message in request.messages} == {"user"}


def test_keys_are_unique_and_tell_who_when_and_what():
    _, chat = run(kbc_v0.parallel_env(players=4))
    keys = [key for key, _, _ in chat.log]
    assert len(set(keys)) == len(keys)
    assert {key.episode for key in keys} == {"test/0000"}
    assert [(key.step, key.call) for key in keys[:6]] == [(0, "choose")] * 4 + [(1, "talk"), (2, "talk")]
    assert keys[-1].step == 15


def test_before_the_first_talk_nothing_but_the_rules_is_shown():
    _, chat = run(kbc_v0.parallel_env(players=3))
    first = [prompt for key, prompt in chat.prompts("choose") if key.step == 0]
    assert all("talk" not in prompt and "said" not in prompt for prompt in first)


def test_no_number_winner_or_reason_of_an_earlier_decision_is_shown():
    reasons = [f"Reason {k} is mine alone.\n{60 + k}" for k in range(12)]
    chat = Canned(choose=reasons)
    run(kbc_v0.parallel_env(players=3, exchanges=3), chat)
    for _, request, _ in chat.log:
        text = request.messages[-1].content
        assert "mine alone" not in text
        assert not any(str(60 + k) in text for k in range(12))


def test_own_reasons_are_shown_when_asked_for():
    chat = Canned(choose=[f"Reason {k} is mine alone.\n{60 + k}" for k in range(12)])
    policy, _ = run(kbc_v0.parallel_env(players=3, exchanges=3), chat, own_reasons=2)
    last = [prompt for _, prompt in chat.prompts("choose")][-3]
    reasons_shown = [k for k in range(12) if f'- "Reason {k} is mine alone."' in last]
    assert reasons_shown == [3, 6]
    assert [round_ for round_, _ in policy.get_state()["player_0"]["notes"]["choose"]] == [0, 1, 2, 3]
    assert all("mine alone" not in prompt for _, prompt in chat.prompts("talk"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I think that all say 33.\n22", "I think that all say 33."),
        ("22\nI think that all say 33.", "I think that all say 33."),
        ('{"reason": "All say 33.", "number": 22}', "All say 33."),
        ("22", ""),
        ("First I look.\nThen I think again.\nAnswer: 22", "First I look. Then I think again."),
    ],
)
def test_the_reason_in_an_answer(text, reason):
    assert reason_of(text) == reason.replace("First I look. ", "") if "First" in text else reason_of(text) == reason


def test_choices_count_from_the_bottom_of_the_range():
    env = kbc_v0.parallel_env(players=2, low=10, high=20, talk=False, exchanges=0, record=True)
    run(env, Canned(choose=["12", "20"]))
    assert numbers(env) == [[12, 20]]


def test_real_numbers_are_taken_as_they_are():
    env = kbc_v0.parallel_env(players=2, choices="real", talk=False, exchanges=0, record=True)
    run(env, Canned(choose=["12.25", "33,5"]))
    assert numbers(env) == [[12.25, 33.5]]


def test_the_environments_persona_is_shown_where_it_says():
    env = kbc_v0.parallel_env(players=2, personas=["I am one.", "I am two."], persona_from=1, persona_in_talk=False)
    _, chat = run(env)
    for key, request, _ in chat.log:
        text = request.messages[-1].content
        mine = ("I am one.", "I am two.")[key.agent == "player_1"]
        assert (mine in text) == (key.call == "choose" and key.step > 0)
        assert text.count("I am one.") + text.count("I am two.") == (mine in text)


def test_both_personas_stand_together():
    env = kbc_v0.parallel_env(players=2, personas=["I am the environment's."])
    _, chat = run(env, personas="a person of few words")
    for _, prompt in (*chat.prompts("talk"), *chat.prompts("choose")):
        assert "\n\nI am the environment's. a person of few words\n\n" in prompt


def test_repeated_sessions_show_what_was_announced():
    env = kbc_v0.parallel_env(preset="large_scale", players=4, rounds=3)
    _, chat = run(env, Canned(choose=["40", "20", "10", "30"]), preset="large_scale")
    prompts = chat.prompts("choose")
    assert "Round 1" not in prompts[0][1]
    assert "Round 1: target 16.67, your number 40\n" in prompts[4][1]
    assert "Round 1: target 16.67, your number 20\n" in prompts[5][1]
    assert "Round 2: " in prompts[-1][1]
    assert {request.temperature for _, request, _ in chat.log} == {1.0}
    assert isinstance(chat, Recorder)


def test_plan_and_number_may_be_two_calls():
    chat = Canned(plan=[f"Plan {k} is mine alone." for k in range(6)], choose=["31", "32", "33", "34", "35", "36"])
    env = kbc_v0.parallel_env(players=3, exchanges=1, record=True)
    policy, _ = run(env, chat, separate_plan=True, personas="uncooperative")
    assert numbers(env) == [[31, 32, 33], [34, 35, 36]]
    order = [(key.agent, key.call) for key, _, _ in chat.log if key.call != "talk"]
    assert sorted(order[:6]) == [(f"player_{i}", call) for i in range(3) for call in ("choose", "plan")]
    # Each is shown its own plan of this decision, and nobody else's; both calls carry the persona of the decision.
    for k, (_, prompt) in enumerate(chat.prompts("choose")):
        assert [f"Plan {j} is" in prompt for j in range(6)] == [j == k for j in range(6)]
        assert f'Your plan: "Plan {k} is mine alone."' in prompt
        assert prompt.endswith("Answer with the number only.")
    for call in ("plan", "choose"):
        assert all("You dislike joining in" in prompt for _, prompt in chat.prompts(call))
    assert not any("mine alone" in prompt for _, prompt in (*chat.prompts("plan"), *chat.prompts("talk")))
    assert policy.counters.total().fallbacks == 0


def test_an_own_plan_is_the_reason_that_is_remembered():
    chat = Canned(plan=[f"Plan {k} is mine alone." for k in range(4)], choose=["30"] * 4)
    run(kbc_v0.parallel_env(players=2, exchanges=1), chat, separate_plan=True, own_reasons=1)
    last = chat.prompts("plan")[-2:]
    assert ['- "Plan 0 is mine alone."' in last[0][1], '- "Plan 1 is mine alone."' in last[1][1]] == [True, True]


def test_a_plan_that_is_not_given_leaves_a_question_for_the_number():
    policy, chat = run(
        kbc_v0.parallel_env(players=2, talk=False, exchanges=0), Canned(plan=[""] * 4), separate_plan=True
    )
    assert all("Your plan" not in prompt for _, prompt in chat.prompts("choose"))
    assert policy.counters.for_call("plan").fallbacks == 2
    assert policy.counters.for_call("choose").fallbacks == 0


def test_the_papers_text_has_two_prompts_and_its_program_one():
    for preset, calls in (("team_up", {"choose"}), ("team_up_text", {"plan", "choose"})):
        _, chat = run(kbc_v0.parallel_env(players=2, talk=False, exchanges=0), preset=preset)
        assert {key.call for key, _, _ in chat.log} == calls
    with pytest.raises(SettingsError, match="number_first=True: has no effect with separate_plan"):
        LLMSettings.build(model="m", number_first=True, separate_plan=True)


ALONE = {"players": 2, "talk": False, "exchanges": 0}


def test_a_second_call_may_read_the_number_of_every_answer():
    env = kbc_v0.parallel_env(**ALONE, record=True)
    answers = ["First 80, then 40 comes to my mind.\n40", "It is 12.\n12"]
    chat = Canned(choose=[*answers, "80", "none", "It is 9.\n9", "9"])
    policy, _ = run(env, chat, extraction=True)
    attempts = [(key.agent, key.attempt) for key, _, _ in chat.log]
    assert attempts == [
        ("player_0", 0),
        ("player_1", 0),
        ("player_0", 1),
        ("player_1", 1),
        ("player_1", 2),
        ("player_1", 3),
    ]
    assert "First 80, then 40 comes to my mind." in chat.log[2][1].messages[-1].content
    # What the second call says counts, and one that finds nothing is followed by the question once more.
    assert numbers(env) == [[80, 9]]
    counts = policy.counters.for_call("choose")
    assert (counts.answered, counts.retried, counts.repaired, counts.fallbacks, counts.requests) == (1, 1, 0, 0, 6)


def test_a_second_call_makes_no_number_up():
    env = kbc_v0.parallel_env(**ALONE, record=True)
    chat = Canned(choose=["I say 33.\n33"] * 2 + ["3"] * 2 + ["I say 33.\n33"] * 2 + ["33"] * 2)
    policy, _ = run(env, chat, extraction=True)
    assert numbers(env) == [[33, 33]]
    assert policy.counters.for_call("choose").retried == 2


def test_the_number_alone_may_be_asked_for():
    _, chat = run(kbc_v0.parallel_env(**ALONE), number_only=True)
    assert all(prompt.endswith("Answer with the number only.") for _, prompt in chat.prompts("choose"))
    with pytest.raises(SettingsError, match="number_first=True: has no effect with number_only"):
        LLMSettings.build(model="m", number_first=True, number_only=True)


@pytest.mark.parametrize("pack", ["en-a", "en-b", "de-a"])
def test_what_is_said_of_the_others_stands_where_personas_do(pack):
    prompts_by_agent = {}
    for name in ("none", "rational", "adaptive", "variation", "in_role"):
        _, chat = run(kbc_v0.parallel_env(preset="large_scale", players=2, rounds=1), personas=name, pack=pack)
        prompts_by_agent[name] = chat.prompts("choose")[0][1]
    assert len(set(prompts_by_agent.values())) == 5
    # All else is the same, word for word; the second note says what the first says, and more.
    notes = {
        name: [line for line in text.split("\n") if line not in prompts_by_agent["none"].split("\n")]
        for name, text in prompts_by_agent.items()
    }
    assert [len(notes_of_agent) for notes_of_agent in notes.values()] == [0, 1, 1, 1, 1]
    assert notes["adaptive"][0].startswith(notes["rational"][0])
