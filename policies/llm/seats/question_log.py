"""One player's conversation; a question that comes again brings only what is new."""

from __future__ import annotations

from difflib import SequenceMatcher

from llm_coop_envs.policies.llm.chat import ChatRequest, RequestKey

Message = dict[str, str]


def question_in(text: str) -> str:
    """The paragraph of an environment's text that asks: its last one."""
    return text.rpartition("\n\n")[2].strip()


def news(previous: str, current: str, question: str = "") -> str:
    """Shorten a prompt to what is new: lines that the previous one did not have in this place, and its question.

    The last paragraph says how to answer, so it stays whole, as does the one that is the question. Of the others the
    new lines stay, under the paragraph's heading (a first line that ends with a colon).
    """
    old, new = previous.split("\n"), current.split("\n")
    is_new = [True] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        is_new[block.b : block.b + block.size] = [False] * block.size
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
        whole = [new[number] for number in numbers]
        lines = [new[number] for number in numbers if is_new[number] or number == heading]
        if "\n".join(whole).strip() == question:
            shortened.append("\n".join(whole))
        elif any(is_new[number] for number in numbers):
            shortened.append("\n".join(lines))
    shortened += ["\n".join(new[number] for number in numbers) for numbers in paragraphs[-1:]]
    return "\n\n".join(shortened)


class QuestionLog:
    """The questions to one player, and its answers.

    Args:
        delta: whether a call's later questions bring only what its previous one did not have.

    Attributes:
        messages: all messages, oldest first, as `{"role": ..., "content": ...}`.
    """

    def __init__(self, *, delta: bool) -> None:
        self._delta = delta
        self._last: dict[str, str] = {}
        self.messages: list[Message] = []

    def ask(self, key: RequestKey, request: ChatRequest, question: str = "") -> list[Message]:
        """Add a question, and return the messages that it adds; `question` is the paragraph that always stays."""
        system, prompt = request.messages[:-1], request.messages[-1].content
        content = news(self._last[key.call], prompt, question) if self._delta and key.call in self._last else prompt
        if not key.attempt:
            # The prompts of repairs and second tries are no turn's prompt: the next turn is compared with this one.
            self._last[key.call] = prompt
        added = [] if self.messages else [{"role": message.role, "content": message.content} for message in system]
        added.append({"role": "user", "content": content})
        self.messages += added
        return added

    def answer(self, text: str) -> None:
        """Add an answer."""
        self.messages.append({"role": "assistant", "content": text})
