"""Backgrounds written by a language model: requested all at once, checked, and rewritten or replaced."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.policies.llm.chat import Chat, ChatMessage, ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.parsing.tokens import remove_template_tokens
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.player import build_settings
from llm_coop_envs.policies.llm.playing.prompter import SCRIPTED
from llm_coop_envs.policies.llm.totals import TotalsByCall
from llm_coop_envs.policies.population.audit import diversity
from llm_coop_envs.policies.population.grammar import fill
from llm_coop_envs.policies.population.population import People

CALL = "background"
#: How many times an unusable background is requested again, before sentences of the grammar replace it.
TRIES = 1
#: The most words of a background, as a multiple of those requested, and the most characters per word.
TOO_LONG = 3
SIGNS_A_WORD = 12
_AGAIN = "\n\nAn earlier answer could not be used: {why}. Write another one."


class Writer:
    """Lets a model write the backgrounds of an episode's people.

    Every question has its own sampling seed, so that people with equal attributes differ. A text that does not name all
    attributes, is empty or far too long, or repeats another person's is requested again once. If the second text is
    unusable too, the grammar's sentences replace it, which counts as a fallback. The result does not depend on the
    order of the answers.

    Args:
        people: the people.
        chat: answers requests.
        policy: the full name of the model as a policy, `llm:MODEL`.
        options: the model's options, as for a player.
    """

    def __init__(self, people: People, chat: Chat, policy: str, options: Mapping[str, Any]) -> None:
        assert people.population.background is not None, "nobody asks for backgrounds otherwise"
        self._people = people
        self._background = people.population.background
        self._policy = policy
        self._chat = TotalsByCall(chat)
        self._settings = build_settings(policy.partition(":")[2], options)
        self._scripted = bool(getattr(chat, "scripted", False)) or self._settings.model.startswith(SCRIPTED)
        self._counts = AnswerCounts()
        self._texts: dict[str, str] = {}

    async def write(self, episode: str, seats: Mapping[str, int]) -> dict[str, str]:
        """Let the model write the backgrounds.

        Args:
            episode: the episode's name.
            seats: the person in each seat.

        Returns:
            Backgrounds by seat.

        Raises:
            ChatError: a question failed; raised after all answers have arrived.
        """
        counts = self._counts.for_call(CALL)
        counts.asked = len(seats)
        texts: dict[str, str] = {}
        accepted: set[str] = set()
        faults = dict.fromkeys(seats, "")
        for attempt in range(TRIES + 1):
            replies = await self._ask(episode, {seat: seats[seat] for seat in faults}, attempt, faults)
            faults = {}
            # In the order of seats, so that the order of the answers does not matter.
            for seat, reply in replies.items():
                text = " ".join(remove_template_tokens(reply.text)[0].split())
                wrong = self._wrong(seats[seat], text, reply, accepted)
                counts.truncated += reply.finish_reason == "length"
                counts.empty += not text
                counts.answered += not wrong and not attempt
                counts.retried += not wrong and attempt > 0
                if wrong:
                    faults[seat] = wrong
                else:
                    texts[seat] = text
                    accepted.add(text)
        counts.fallbacks = len(faults)
        texts |= {seat: self._people.sentences(seats[seat]) for seat in faults}
        self._texts = {seat: texts[seat] for seat in seats}
        return self._texts

    def record(self) -> dict[str, Any]:
        """Counts of answers and the diversity of texts, as plain data that depends on the episode alone."""
        used = self._chat.to_json()
        calls = {call: {**counts, **used.get(call, {})} for call, counts in self._counts.to_json().items()}
        return {
            "policy": self._policy,
            "seats": list(self._texts),
            "models": dict(sorted(self._chat.models.items())),
            "calls": calls,
            "texts": diversity(list(self._texts.values())),
        }

    async def _ask(
        self, episode: str, seats: Mapping[str, int], attempt: int, faults: Mapping[str, str]
    ) -> dict[str, ChatReply]:
        """Request some backgrounds at the same time."""
        self._counts.for_call(CALL).requests += len(seats)
        pending = (
            self._chat.ask(RequestKey(episode, seat, 0, CALL, attempt), self._request(person, attempt, faults[seat]))
            for seat, person in seats.items()
        )
        replies = await asyncio.gather(*pending, return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return dict(zip(seats, (reply for reply in replies if isinstance(reply, ChatReply)), strict=True))

    def _request(self, person: int, attempt: int, fault: str) -> ChatRequest:
        attributes = json.dumps(self._people.profile(person), ensure_ascii=False)
        prompt = fill(self._background.prompt, {"attributes": attributes, "words": self._background.words})
        if fault:
            prompt += fill(_AGAIN, {"why": fault})
        parameters = self._settings.parameters_for("", CALL)
        extra = dict(parameters.extra)
        if self._scripted:
            question = {"kind": "text", "key": CALL, "form": "plain", "says": self._people.sentences(person)}
            extra["metadata"] = {"question": json.dumps(question, ensure_ascii=False)}
        return ChatRequest(
            model=self._settings.model,
            messages=(ChatMessage("user", prompt.strip()),),
            temperature=parameters.temperature,
            top_p=parameters.top_p,
            max_tokens=parameters.max_tokens,
            stop=parameters.stop,
            seed=self._people.sampling_seed(person) + attempt if parameters.seed is None else parameters.seed + person,
            reasoning_effort=parameters.reasoning_effort,
            extra=extra,
        )

    def _wrong(self, person: int, text: str, reply: ChatReply, others: set[str]) -> str:
        """Why a text is unusable, as part of a sentence; empty if it is usable."""
        if not text or reply.refusal or reply.finish_reason == "content_filter":
            return "it was empty"
        max_words = TOO_LONG * self._background.words
        if len(text.split()) > max_words or len(text) > max_words * SIGNS_A_WORD:
            return "it was far too long"
        missing = missing_attributes(self._people, person, text)
        if missing:
            return f"it does not say this: {', '.join(missing)}"
        return "it was the same as another person's" if text in others else ""


def missing_attributes(people: People, person: int, text: str) -> list[str]:
    """The attributes that a text does not name in any of their forms."""
    columns = {column.name: column for column in people.population.attributes}
    missing = []
    for name, value in people.profile(person).items():
        forms: Sequence[str] = columns[name].forms.get(str(value), (str(value),))
        if not any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text, re.IGNORECASE) for form in forms):
            missing.append(f"{name}: {value}")
    return missing
