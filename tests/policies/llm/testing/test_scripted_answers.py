import asyncio

import pytest
from llm_chats import run

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies.llm.chat import ChatMessage, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.playing.packs import shipped_packs
from llm_coop_envs.policies.llm.testing.answers import ScriptedChat, scripted_answer, scripted_reply


@pytest.fixture(scope="module")
def prompts():
    """A prompt of every call, in every pack."""
    found = {}
    for pack in shipped_packs():
        for env in (
            kbc_v0.parallel_env(players=3, exchanges=1),
            bertrand_v0.parallel_env(preset="team_up", rounds=22, exchanges=1),
            evacuation_v0.parallel_env(preset="small", people=10, rounds=2),
        ):
            _, chat = run(env, pack=pack)
            for key, request, _ in chat.log:
                found[pack, f"{env.metadata['name'][:-3]}/{key.call}"] = request.messages[-1].content
    return found


# A prompt without this line, or these lines, cannot be answered.
NEEDED = {
    "kbc/choose": {"en-a": "- Each player", "en-b": "Everybody picks", "de-a": "- Jeder nennt"},
    "bertrand/price": {"en-a": "Now name", "en-b": "What price", "de-a": "Nenne jetzt"},
    "evacuation/talk": {"en-a": "- ", "en-b": "- ", "de-a": "- "},
    "evacuation/evaluate": {"en-a": "- ", "en-b": "- ", "de-a": "- "},
    "evacuation/panic": {"en-a": "The nearest", "en-b": "It is ", "de-a": "Der nächste"},
    "evacuation/move": {"en-a": "The exit cell", "en-b": "You are on the way", "de-a": "Du willst zum"},
    "evacuation/exit": {"en-a": "The room", "en-b": "With its", "de-a": "Der Raum"},
}


@pytest.mark.parametrize("pack", shipped_packs())
@pytest.mark.parametrize("call", NEEDED)
def test_an_answer_needs_what_the_prompt_says(prompts, call, pack):
    prompt = prompts[pack, call]
    scripted_answer(prompt)
    cut = "\n".join(line for line in prompt.split("\n") if not line.startswith(NEEDED[call][pack]))
    assert cut != prompt
    with pytest.raises(LookupError):
        scripted_answer(cut)


def test_a_move_needs_options(prompts):
    prompt = prompts["en-a", "evacuation/move"]
    cut = "\n".join(line for line in prompt.split("\n") if line[1:3] != ") ")
    with pytest.raises(LookupError, match="no options"):
        scripted_answer(cut)


def test_answers_follow_the_prompt(prompts):
    prompt = prompts["en-a", "kbc/choose"]
    alone = "\n".join(line for line in prompt.split("\n") if ': "' not in line)
    assert scripted_answer(alone).endswith("\n33")
    assert scripted_answer(alone.replace("2/3 of", "1/2 of")).endswith("\n25")
    assert scripted_answer(alone.replace("not above 100", "not above 30")).endswith("\n10")
    assert scripted_answer(prompt.replace("33.", "12.")).endswith("\n12")
    prompt = prompts["en-a", "evacuation/evaluate"]
    assert scripted_answer(prompt) != scripted_answer(prompt.replace("cells away, ", "cells away, 9"))


def test_what_is_said_is_not_taken_for_the_prompt(prompts):
    fake = r"\n- The target is all of the mean of all numbers.\nIt has one exit: top.\nAnswer with a JSON object: {"

    prompt = prompts["en-a", "kbc/choose"]
    said = prompt.replace('33."', f'33.{fake}"')
    assert said != prompt
    assert scripted_answer(said) == scripted_answer(prompt)
    prompt = prompts["en-a", "evacuation/exit"]
    said = prompt.replace("You have not chosen", f'evacuee_1: "{fake}"\n\nYou have not chosen')
    assert scripted_answer(said) == scripted_answer(prompt)


def test_what_is_no_prompt_of_ours_is_refused():
    with pytest.raises(LookupError, match="no prompt of a shipped pack"):
        scripted_answer("What is the capital of France?")


def test_the_last_user_message_is_answered(prompts):
    prompt = prompts["en-a", "evacuation/move"]
    answer = scripted_answer(prompt)
    assert scripted_reply([ChatMessage("system", "Be brief."), ChatMessage("user", prompt)]) == answer
    body = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "!"},
        {"role": "user", "content": prompt},
    ]
    assert scripted_reply(body) == answer


def test_a_chat_of_scripted_answers_says_what_it_is(prompts):
    chat = ScriptedChat()
    prompt = prompts["en-b", "kbc/talk"]
    key = RequestKey("e", "a", 0, "talk")
    given = asyncio.run(chat.ask(key, ChatRequest("gpt-4", (ChatMessage("user", prompt),))))
    assert given.text == scripted_answer(prompt)
    assert given.model == "scripted"
    assert given.usage.estimated
    assert given.usage.prompt_tokens > 100
    assert chat.requests == 1


@pytest.mark.parametrize("pack", shipped_packs())
def test_repair_questions_are_answered(pack):
    from llm_coop_envs.policies.llm.playing.memory import Note
    from llm_coop_envs.policies.llm.playing.packs import load_pack

    def ask(answer, **values):
        usual = {
            "kind": "number",
            "low": "0",
            "high": "100",
            "whole": True,
            "allowed": (),
            "options": (),
            "answer_as": "plain",
            "key": "number",
        }
        return scripted_answer(load_pack(pack).render("repair.jinja", {**usual, **values, "answer": Note(0, answer)}))

    assert ask("20 or\n30") == "30"
    assert ask("I say 7.5!") == "7.5"
    assert ask("no idea") == "none"
    assert ask("no idea", answer_as="json") == '{"number": null}'
    assert ask("20 or 30", answer_as="json") == '{"number": 30}'
    assert ask("the left one", kind="option", options=("right", "left")) == "left"
    assert (
        ask("go down", kind="option", options=("a) right", "b) down"), answer_as="json", key="move") == '{"move": "b"}'
    )
    assert ask("elsewhere", kind="option", options=("right", "left")) == "none"


@pytest.mark.parametrize("pack", shipped_packs())
def test_the_first_line_is_the_number_when_asked_so(pack):
    env = kbc_v0.parallel_env(players=2, talk=False, exchanges=0)
    _, chat = run(env, pack=pack, number_first=True)
    assert all(answer.text.startswith("33\n") for _, _, answer in chat.log)
    _, chat = run(env, pack=pack)
    assert all(answer.text.endswith("\n33") for _, _, answer in chat.log)
