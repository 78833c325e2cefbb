"""Slots in words: loading and rendering of text templates."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import WordingError

if TYPE_CHECKING:
    import jinja2

TEMPLATE = "observation.jinja"
_LINE_BREAKERS = {
    ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}


def quoted(text: str) -> str:
    """Put a message between double quotes on one line.

    Line ends, control characters, quotes, backslashes and direction overrides are escaped as in JSON, so that nothing
    a player writes can leave its quotation or look like another part of the text; all other characters stay.
    """
    return json.dumps(text, ensure_ascii=False).translate(_LINE_BREAKERS)


@functools.lru_cache(maxsize=1 << 14)
def _line(row: tuple[Any, ...], pattern: str) -> str:
    values: list[Any] = []
    for value in row:
        values.extend(value if isinstance(value, tuple) else (value,))
    # -0.0 equals 0.0, so the memory could answer either with the other's text: there is only one zero here.
    return pattern % tuple(value + 0.0 if isinstance(value, float) else value for value in values)


def lines(rows: Sequence[tuple[Any, ...]], pattern: str) -> str:
    """Put rows of numbers into words, one line each.

    The same rows come back in text after text, and formatting their numbers would be most of a text's cost: hence a
    memory, and hence a filter, which Jinja calls many times faster than a loop body.

    Args:
        rows: tuples of numbers; a tuple inside a row stands for its items.
        pattern: a `%` pattern with a numeric place (`%d`, `%.6g`) for each number.
    """
    return "\n".join([_line(row, pattern) for row in rows])


class Wording:
    """One way to say what a player may know.

    Args:
        folder: where `observation.jinja` and the templates it includes are.
        slot_names: the names a template may use.

    Raises:
        WordingError: the folder or template is missing, has a syntax error, or uses a name that is no slot.
    """

    def __init__(self, folder: Path, slot_names: Collection[str]) -> None:
        import jinja2
        import jinja2.meta

        if not (folder / TEMPLATE).is_file():
            raise WordingError(
                f"wording={str(folder)!r}: there is no file {TEMPLATE} in it; give a folder that has one"
            )
        self.folder = folder
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["quoted"] = quoted
        environment.filters["lines"] = lines
        for path in sorted(folder.glob("*.jinja")):
            try:
                tree = environment.parse(path.read_text(encoding="utf-8"))
            except jinja2.TemplateSyntaxError as error:
                raise WordingError(f"{path}, line {error.lineno}: {error.message}") from error
            except UnicodeDecodeError as error:
                raise WordingError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
            unknown = sorted(jinja2.meta.find_undeclared_variables(tree) - set(slot_names))
            if unknown and path.name == TEMPLATE:
                raise WordingError(
                    f"{path}: uses {', '.join(unknown)}, which no player may know; "
                    f"known are {', '.join(sorted(slot_names))}"
                )
        self._template: jinja2.Template = environment.get_template(TEMPLATE)

    def render(self, slots: dict[str, Any]) -> str:
        """The text for one player.

        Args:
            slots: the slots by name.

        Raises:
            WordingError: the template fails on these slots.
        """
        import jinja2

        try:
            return self._template.render(slots).strip()
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise WordingError(f"{self.folder / TEMPLATE}: {error}") from error


@functools.lru_cache(maxsize=64)
def load_wording(name: str, home: Path, slot_names: frozenset[str]) -> Wording:
    """Load one of a scenario's own wordings, or a folder.

    Args:
        name: a name below `home/wordings`, or the path of a folder.
        home: the scenario's folder.
        slot_names: the names a template may use.
    """
    own = home / "wordings" / name
    if "/" not in name and own.is_dir():
        return Wording(own, slot_names)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        names = sorted(p.name for p in (home / "wordings").iterdir() if p.is_dir())
        raise WordingError(
            f"wording={name!r}: is neither one of {', '.join(names)} nor a folder that exists; "
            f"give one of those or a folder with {TEMPLATE}"
        )
    return Wording(folder, slot_names)
