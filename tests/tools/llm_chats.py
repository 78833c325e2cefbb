"""Chats for tests: scripted answers that are remembered, and answers given in advance."""

import asyncio

from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.chat import ChatReply, Usage
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import ScriptedChat


def reply(text, finish="stop", refusal=None):
    return ChatReply(text, Usage(0, 0), finish, "canned", 0.0, refusal=refusal)


class Recorder(ScriptedChat):
    """Scripted answers; keeps every key, request and reply."""

    def __init__(self):
        super().__init__()
        self.log = []

    async def ask(self, key, request):
        given = await super().ask(key, request)
        self.log.append((key, request, given))
        return given

    def prompts(self, call):
        """All prompts of a kind of call, with their keys, in the order in which they were asked."""
        return [(key, request.messages[-1].content) for key, request, _ in self.log if key.call == call]


class Canned(Recorder):
    """Answers given in advance for some calls, scripted ones for the others.

    `answers` maps a call to the answers to its requests, in order; each is a text, a reply, or an exception. When
    they are used up, scripted answers follow.
    """

    def __init__(self, **answers):
        super().__init__()
        self.answers = {call: list(given) for call, given in answers.items()}

    async def ask(self, key, request):
        # Everybody asks before anybody is answered, as with a provider.
        await asyncio.sleep(0)
        if not self.answers.get(key.call):
            return await super().ask(key, request)
        given = self.answers[key.call].pop(0)
        given = reply(given) if isinstance(given, str) else given
        self.log.append((key, request, given))
        if isinstance(given, Exception):
            raise given
        return given


def run(env, chat=None, *, seed=0, **settings):
    """Play an episode with the model policy in all seats; return the policy and the chat."""
    chat = Recorder() if chat is None else chat
    policy = LLMPolicy(chat, LLMSettings.build(**{"model": "scripted", **settings}))
    play(env, policy, seed=seed, name="test/0000")
    return policy, chat
