"""A person at a terminal: reads what its player may know, and types."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import PlayerLeft
from llm_coop_envs.policies.human.answers import Unusable, hint, read_answer

HELP, QUIT = "?", "/quit"

# Whatever a terminal could take for a command: C0 but line ends and tabs, DEL, C1, and what turns text around.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


def shown(text: str) -> str:
    """A text that a terminal shows and does not obey: control characters become visible signs."""

    def sign(found: re.Match[str]) -> str:
        code = ord(found[0])
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"

    return _COMMANDS.sub(sign, text)


class Terminal:
    """Where a person reads and types.

    Args:
        read: gives the next line without its end, and raises `EOFError` after the last; standard input by default.
        write: shows a text; a line end follows.
        width: how wide lines may be; `None` for as wide as the terminal is, or unlimited if there is none.
    """

    def __init__(
        self,
        read: Callable[[str], str] | None = None,
        write: Callable[[str], None] = print,
        width: int | None = None,
    ) -> None:
        self._read = read or input
        self._write = write
        self._width = width

    def say(self, text: str) -> None:
        """Show a text, control characters made visible."""
        width = self._width
        if width is None and sys.stdout.isatty():
            width = shutil.get_terminal_size().columns
        for line in shown(text).split("\n"):
            if width is None or len(line) <= width:
                self._write(line)
            else:
                indent = "  " if line.startswith("- ") else ""
                for part in textwrap.wrap(line, max(20, width - 1), subsequent_indent=indent, replace_whitespace=False):
                    self._write(part)

    def ask(self, prompt: str) -> str:
        """The next line that was typed.

        Raises:
            PlayerLeft: there is none, or Ctrl-C was pressed.
        """
        try:
            return self._read(shown(prompt))
        except EOFError:
            raise PlayerLeft("the input has ended") from None
        except KeyboardInterrupt:
            raise PlayerLeft("Ctrl-C was pressed") from None
        except UnicodeDecodeError:
            self.say("That line is no readable text (UTF-8); type it again.")
            return self.ask(prompt)


class TerminalHuman(Policy):
    """A person at a terminal, for one seat or several.

    The first question of a seat shows everything; later ones what has changed since, and `?` everything again.

    Args:
        terminal: where; standard input and output by default.
    """

    def __init__(self, terminal: Terminal | None = None) -> None:
        self.terminal = terminal or Terminal()

    def begin(self, episode: Episode) -> None:
        """Start an episode."""
        super().begin(episode)
        self._known: dict[str, list[str]] = {}
        self.terminal.say(
            f"You play {', '.join(episode.seats)}. {HELP} shows everything again; {QUIT}, Ctrl-C or Ctrl-D ends the "
            "game. What was played is kept."
        )

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask for each action until it is one.

        Raises:
            PlayerLeft: the person is gone.
        """
        # Others are asked in the same step: their questions to models go out before everything waits for a person.
        await asyncio.sleep(0.02)
        return [self._ask(request) for request in requests]

    def _ask(self, request: Request) -> Action:
        question = request.info["slots"].question
        text = request.observation["text"]
        self.terminal.say("")
        if len(self.episode.seats) > 1:
            self.terminal.say(f"--- {request.agent} ---")
        self.terminal.say(self._news(request.agent, text))
        prompt = f"{request.agent}: {hint(question)} > "
        while True:
            typed = self.terminal.ask(prompt)
            if typed.strip() == QUIT:
                raise PlayerLeft(f"{QUIT} was typed")
            if typed.strip() == HELP:
                self.terminal.say(text)
                continue
            try:
                return read_answer(question, typed)
            except Unusable as why:
                self.terminal.say(str(why))

    def _news(self, agent: str, text: str) -> str:
        """What was not there at the last question, and always the question itself."""
        paragraphs = text.strip().split("\n\n")
        before = self._known.get(agent, [])
        self._known[agent] = paragraphs
        fresh = [grown(one, before) for one in paragraphs[:-1] if one not in before]
        return "\n\n".join([*fresh, paragraphs[-1]])


def grown(paragraph: str, before: Sequence[str]) -> str:
    """A paragraph as it is shown to somebody who knows others: of a list that has grown, its head and the new lines."""
    lines = paragraph.split("\n")
    for old in before:
        known = old.split("\n")
        if 2 < len(known) < len(lines) and lines[: len(known)] == known:
            return "\n".join([lines[0], "...", *lines[len(known) :]])
    return paragraph
