"""One player's conversation, in which a question that was put before is put again with its news alone."""

from __future__ import annotations

from difflib import SequenceMatcher

from llm_coop_envs.policies.llm.chat import ChatRequest, RequestKey

Message = dict[str, str]


def news(previous: str, now: str) -> str:
    """What is new in a prompt: lines that the one before did not have in this place, and the question at its end.

    The last paragraph is kept whole: it asks. Of the others their new lines are, under the paragraph's heading (a first
    line that ends with a colon).
    """
    old, new = previous.split("\n"), now.split("\n")
    fresh = [True] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        fresh[block.b : block.b + block.size] = [False] * block.size
    paragraphs: list[list[int]] = [[]]
    for number, line in enumerate(new):
        if line.strip():
            paragraphs[-1].append(number)
        elif paragraphs[-1]:
            paragraphs.append([])
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    shortened = []
    for numbers in paragraphs[:-1]:
        heading = numbers[0] if new[numbers[0]].rstrip().endswith(":") else None
        lines = [new[number] for number in numbers if fresh[number] or number == heading]
        if any(fresh[number] for number in numbers):
            shortened.append("\n".join(lines))
    shortened += ["\n".join(new[number] for number in numbers) for numbers in paragraphs[-1:]]
    return "\n\n".join(shortened)


class QuestionLog:
    """What was asked of one player, and what it answered.

    Args:
        delta: whether a call's later questions bring only what its last one did not have.

    Attributes:
        messages: all of it, oldest first, as `{"role": ..., "content": ...}`.
    """

    def __init__(self, *, delta: bool) -> None:
        self._delta = delta
        self._last: dict[str, str] = {}
        self.messages: list[Message] = []

    def ask(self, key: RequestKey, request: ChatRequest) -> list[Message]:
        """Add a question; the messages that it adds."""
        system, prompt = request.messages[:-1], request.messages[-1].content
        content = news(self._last[key.call], prompt) if self._delta and key.call in self._last else prompt
        if not key.attempt:
            # What a repair or a second try asks is no turn's prompt: the next turn has news against this one.
            self._last[key.call] = prompt
        added = [] if self.messages else [{"role": message.role, "content": message.content} for message in system]
        added.append({"role": "user", "content": content})
        self.messages += added
        return added

    def answer(self, text: str) -> None:
        """Add an answer."""
        self.messages.append({"role": "assistant", "content": text})
