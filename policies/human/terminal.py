"""A person at a terminal, who reads what the player may know and types answers."""

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

# Characters that a terminal could take for commands: C0 except line ends and tabs, DEL, C1, changes of text direction,
# line separators and lone surrogates. ESC, for example, begins sequences that clear the screen.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


def make_visible(text: str) -> str:
    """Replace control characters by visible signs, so that a terminal does not obey them: ESC becomes U+241B."""

    def sign(match: re.Match[str]) -> str:
        code = ord(match[0])
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"

    return _COMMANDS.sub(sign, text)


class Terminal:
    """Reads lines from a person and shows texts.

    Args:
        read: shows a prompt and returns the next line without its end. It raises `EOFError` after the last line.
            Standard input by default.
        write: shows a text and a line end.
        width: the longest line in characters; `None` for the terminal's width, or no limit if there is no terminal.
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
        """Show a text, wrapped, with control characters made visible."""
        width = self._width
        if width is None and sys.stdout.isatty():
            width = shutil.get_terminal_size().columns
        for line in make_visible(text).split("\n"):
            if width is None or len(line) <= width:
                self._write(line)
            else:
                indent = "  " if line.startswith("- ") else ""
                for part in textwrap.wrap(line, max(20, width - 1), subsequent_indent=indent, replace_whitespace=False):
                    self._write(part)

    def ask(self, prompt: str) -> str:
        """Show a prompt and return the line that was typed.

        Raises:
            PlayerLeft: the input has ended, or Ctrl-C was pressed.
        """
        try:
            return self._read(make_visible(prompt))
        except EOFError:
            raise PlayerLeft("the input has ended") from None
        except KeyboardInterrupt:
            raise PlayerLeft("Ctrl-C was pressed") from None
        except UnicodeDecodeError:
            self.say("That line is no readable text (UTF-8); type it again.")
            return self.ask(prompt)


class TerminalHuman(Policy):
    """A person at a terminal, for one seat or several.

    The first question of a seat shows everything. Later questions show what is new; `?` shows everything again.

    Args:
        terminal: the terminal; standard input and output by default.
    """

    def __init__(self, terminal: Terminal | None = None) -> None:
        self.terminal = terminal or Terminal()

    def begin(self, episode: Episode) -> None:
        """Start an episode."""
        super().begin(episode)
        self._last_shown: dict[str, list[str]] = {}
        self.terminal.say(
            f"You play {', '.join(episode.seats)}. {HELP} shows everything again; {QUIT}, Ctrl-C or Ctrl-D ends the "
            "game. What was played is kept."
        )

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask for each action until the answer is usable.

        Raises:
            PlayerLeft: the person has left.
        """
        # Asking blocks the event loop. First let the other players of this step send their questions to models.
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
            except Unusable as error:
                self.terminal.say(str(error))

    def _news(self, agent: str, text: str) -> str:
        """The paragraphs that are new since the last question, and the question itself."""
        paragraphs = text.strip().split("\n\n")
        earlier = self._last_shown.get(agent, [])
        self._last_shown[agent] = paragraphs
        fresh = [abbreviate_list(paragraph, earlier) for paragraph in paragraphs[:-1] if paragraph not in earlier]
        return "\n\n".join([*fresh, paragraphs[-1]])


def abbreviate_list(paragraph: str, earlier: Sequence[str]) -> str:
    """Shorten a list of which a beginning was shown earlier to its head, "..." and the new lines."""
    lines = paragraph.split("\n")
    for old in earlier:
        old_lines = old.split("\n")
        if 2 < len(old_lines) < len(lines) and lines[: len(old_lines)] == old_lines:
            return "\n".join([lines[0], "...", *lines[len(old_lines) :]])
    return paragraph
