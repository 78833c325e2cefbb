import pytest
from llm_chats import Canned, run

from llm_coop_envs import evacuation_v0
from llm_coop_envs.policies.llm.playing.packs import load_pack


def room(**settings):
    return evacuation_v0.parallel_env(**{"preset": "small", "people": 16, "record": True, **settings})


def calls(chat, **fields):
    return [key.call for key, _, _ in chat.log if all(getattr(key, name) == value for name, value in fields.items())]


def test_a_round_asks_as_published():
    # Everybody talks, feels, weighs up and chooses in the first round: five calls each with the move (Wu et al. 2024,
    # code).
    env = room(people=10, rounds=1)
    policy, chat = run(env)
    assert len(chat.log) == 50
    assert calls(chat, agent="evacuee_3") == ["talk", "panic", "evaluate", "exit", "move"]
    assert policy.counters.total().fallbacks == 0
    _, chat = run(room(people=10, rounds=1, talk=False))
    assert calls(chat, agent="evacuee_3") == ["panic", "evaluate", "exit", "move"]


def test_only_those_who_re_plan_are_asked_again():
    env = room()
    _, chat = run(env)
    planners = {event["round"]: event["planners"] for event in env.events if event["type"] == "round"}
    exits = [key for key, _ in chat.prompts("exit")]
    assert len(exits) == sum(map(len, planners.values()))
    assert len(chat.prompts("panic")) == len(chat.prompts("evaluate")) == len(chat.prompts("talk")) == len(exits)
    assert len(chat.prompts("move")) > len(exits)


def marked(chat_calls=("talk", "panic", "evaluate")):
    """Answers that can be found again, for the first round of 16 people."""
    return Canned(**{call: [f"{call} number {k}, says the left exit" for k in range(16)] for call in chat_calls})


def test_each_question_shows_its_own_slots_and_no_others():
    env = room(rounds=1)
    chat = marked()
    run(env, chat)
    answers = {(key.agent, key.call): answer.text for key, _, answer in chat.log}
    for key, request, _ in chat.log:
        prompt = request.messages[-1].content
        feeling, judged = answers[key.agent, "panic"], answers[key.agent, "evaluate"]
        assert (feeling in prompt) == (key.call in ("evaluate", "exit"))
        assert (judged in prompt) == (key.call == "exit")
        assert ("people in that direction" in prompt) == (key.call in ("talk", "evaluate"))
        assert ("The nearest exit is" in prompt) == (key.call == "panic")
        assert ("In the nine cells around you" in prompt) == (key.call == "panic")
        assert ("About you:" in prompt) == (key.call != "move")
        assert ("(row, column)" in prompt) == (key.call == "move")
        assert ("earlier choices" in prompt or "not chosen an exit before" in prompt) == (key.call == "exit")
        # Nobody sees what others feel or think.
        others = [
            text for (agent, call), text in answers.items() if agent != key.agent and call in ("panic", "evaluate")
        ]
        assert not any(text in prompt for text in others)
        if "talk number" in prompt:
            assert key.call in ("talk", "exit")


def test_without_talk_the_choice_says_nothing_of_voices():
    _, chat = run(room(rounds=1, talk=False))
    assert not any("near you" in prompt for _, prompt in chat.prompts("exit"))
    _, chat = run(room(people=1, rounds=1))
    assert "Nobody near you is saying anything." in chat.prompts("exit")[0][1]


def test_the_feeling_may_come_before_the_talk():
    _, chat = run(room(people=10, rounds=1), feeling_in_talk=True)
    assert calls(chat, agent="evacuee_3") == ["panic", "talk", "evaluate", "exit", "move"]
    for _, prompt in chat.prompts("talk"):
        assert "How you feel: " in prompt
    _, chat = run(room(people=10, rounds=1))
    assert not any("How you feel" in prompt for _, prompt in chat.prompts("talk"))


def test_feelings_are_of_this_round():
    env = room(rounds=6, replan_probability=1.0)
    chat = marked()
    run(env, chat)
    later = [prompt for key, prompt in chat.prompts("exit") if key.step > 20]
    assert later
    assert not any("panic number" in prompt or "evaluate number" in prompt for prompt in later)


def test_feelings_and_judgements_can_be_left_out():
    _, chat = run(room(people=10, rounds=1), panic=False, evaluate=False)
    assert calls(chat, agent="evacuee_3") == ["talk", "exit", "move"]
    assert not any("How you" in prompt for _, prompt in chat.prompts("exit"))


def test_a_feeling_that_does_not_come_is_not_shown():
    chat = Canned(panic=["", ""], evaluate=["", ""])
    policy, _ = run(room(people=1, rounds=1), chat)
    assert policy.counters.for_call("panic").fallbacks == policy.counters.for_call("evaluate").fallbacks == 1
    assert "How you" not in chat.prompts("exit")[0][1]
    assert policy.get_state()["evacuee_0"]["notes"] == {}


def test_exits_and_moves_reach_the_environment():
    env = room(people=1, rounds=1, talk=False)
    slots = env.reset(seed=0)[1]["evacuee_0"]["slots"]
    assert slots.exit_names == ("bottom", "left", "right")
    run(env, Canned(exit=["I choose the right exit."], move=["stay"]))
    choices = [(event["phase"], event["choice"]) for event in env.events if event["type"] == "choice"]
    assert choices == [("exit", 2), ("move", 3 + 4)]


@pytest.mark.parametrize("pack", ["en-a", "en-b", "de-a"])
def test_names_of_exits_and_moves_are_understood_in_both_languages(pack):
    word = load_pack(pack).prompts("evacuation").word
    for answer in (word("left"), "left", word("left").upper()):
        env = room(people=1, rounds=1, talk=False)
        run(env, Canned(exit=[answer], move=[word("stay")]), pack=pack)
        assert [event["choice"] for event in env.events if event["type"] == "choice"] == [1, 3 + 4]
    for answer in ("down-left", "Down and left.", word("down and left")):
        env = room(people=1, rounds=1, talk=False)
        run(env, Canned(move=[answer]), pack=pack)
        assert [event["choice"] for event in env.events if event["type"] == "choice"][1] == 3 + 6


def test_one_may_only_walk():
    env = room(control="exit")
    policy, chat = run(env)
    assert set(calls(chat)) == {"talk", "panic", "evaluate", "exit"}
    assert policy.counters.total().fallbacks == 0


def test_taken_cells_are_marked_when_all_move_at_once():
    _, chat = run(room(people=60, engine="simultaneous", rounds=1))
    prompts = [prompt for _, prompt in chat.prompts("move")]
    assert any("somebody is there now" in prompt for prompt in prompts)
    assert all("All people move at the same time" in prompt for prompt in prompts)
    _, chat = run(room(people=60, rounds=1))
    assert not any("somebody is there now" in prompt for _, prompt in chat.prompts("move"))


TRAITS = {
    "en-a": ("strong and in", "not strong", "of yourself only", "stay positive", "anxious"),
    "en-b": ("fit and powerfully", "rather frail", "put yourself first", "spirits up", "fearful"),
    "de-a": ("kräftig", "nicht stark", "nur an dich", "zuversichtlich", "ängstlich"),
}


@pytest.mark.parametrize("pack", TRAITS)
def test_personas_are_put_into_the_packs_words(pack):
    strong, weak, selfish, confident, afraid = TRAITS[pack]
    env = room(personas="selfish", persona_swap=False, rounds=1, wording=pack)
    observations, infos = env.reset(seed=0)
    _, chat = run(env, pack=pack)
    texts = [(key.agent, prompt) for key, prompt in chat.prompts("panic")]
    # The environment's own text says the same.
    texts += [(agent, observation["text"]) for agent, observation in observations.items()]
    for agent, text in texts:
        mine = infos[agent]["slots"]
        body, mind = strong if mine.strong else weak, confident if mine.confident else afraid
        [line] = [line for line in text.split("\n") if body in line]
        assert line.index(body) < line.index(selfish) < line.index(mind)
    _, chat = run(room(personas="none", rounds=1), pack=pack)
    assert not any(trait in request.messages[-1].content for trait in TRAITS[pack] for _, request, _ in chat.log)


def test_the_own_persona_follows_the_environments():
    _, chat = run(room(rounds=1), personas="agreeable")
    persona = load_pack("en-a").prompts("evacuation").personas["agreeable"].text("exit")
    assert all(f" {persona}\n" in prompt for _, prompt in chat.prompts("exit"))
    assert not any(persona in prompt for _, prompt in chat.prompts("move"))


def test_the_prompts_say_who_is_counted():
    for counted in (True, False):
        env = evacuation_v0.parallel_env(
            rows=11, cols=11, people=6, rounds=2, desks=[[5, 5]], crowd_count="visible",
            count_self=counted, count_desks=counted,
        )  # fmt: skip
        _, chat = run(env)
        for call in ("talk", "evaluate"):
            for _, prompt in chat.prompts(call):
                sentence = "People were counted when this round began"
                ending = ", yourself included; towards the exits, desks count as people." if counted else "."
                assert sentence + ending in prompt
        assert all(("on all sides together, yourself included." in p) == counted for _, p in chat.prompts("panic"))
