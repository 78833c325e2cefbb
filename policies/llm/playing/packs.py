"""Prompt packs: folders of templates that put a call's slots into words, in one language and one paraphrase.

A pack holds `manifest.yaml`, `personas.yaml`, a folder per scenario with a template per call, and three templates
that all share. It is checked when it
is loaded: every template there, no name used that the call may not show, every text that somebody wrote inside
    quotation marks.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.core.slots import Heard
from llm_coop_envs.core.wording import check_names, check_quotation, read_templates, template_environment
from llm_coop_envs.errors import WordingError
from llm_coop_envs.policies.llm.playing.calls import COMMON_TEMPLATES, SCENARIOS, Call, calls_of
from llm_coop_envs.policies.llm.playing.personas import Persona, read_personas

if TYPE_CHECKING:
    import jinja2
    from jinja2 import nodes

HOME = Path(__file__).parents[1] / "packs_data"
_FIELDS = {"name": str, "language": str, "paraphrase": str, "version": int, "scenarios": list, "words": dict}
_OPTIONAL = {"words"}
_INCLUDE = re.compile(r"^[ \t]*\{%-?\s*include\s+['\"]([^'\"]+)['\"]\s*-?%\}[ \t]*\n?", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Manifest:
    """What a pack says about itself.

    Attributes:
        name: its name.
        language: the language's code, such as `"en"`.
        paraphrase: which of several ways to say the same.
        version: counts up with each change of words.
        scenarios: the scenarios it has templates for.
        words: translations of the names of exits and moves, and of "and".
    """

    name: str
    language: str
    paraphrase: str
    version: int
    scenarios: tuple[str, ...]
    words: Mapping[str, str]


class Pack:
    """A loaded pack.

    Args:
        folder: the pack's folder.

    Attributes:
        manifest: what it says about itself.
        digest: SHA-256 over its files, 16 hexadecimal digits: recorded with every run.
        personas: its personas by name.
        traits: the words of the evacuation's own personas.

    Raises:
        WordingError: the folder is no complete pack, or a template shows what it must not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = _read_manifest(folder)
        environment = template_environment(folder)
        # A part that another template includes ends its last line itself.
        environment.keep_trailing_newline = True
        words = self.manifest.words
        environment.filters["word"] = lambda name: words.get(name, name)
        environment.filters["listed"] = lambda names: _listed(names, words.get("and", "and"))
        environment.filters["price"] = _price
        environment.filters["spoken"] = _spoken
        trees = read_templates(environment, folder)
        self._check(trees)
        sources = {name: (folder / name).read_text(encoding="utf-8") for name in trees}
        self.personas, self.traits = read_personas(_read_yaml(folder / "personas.yaml"), str(folder / "personas.yaml"))
        self.digest = _digest(folder)
        self._templates: dict[str, jinja2.Template] = {
            name: environment.from_string(_inlined(name, sources))
            for name in trees
            if not name.rpartition("/")[2].startswith("_")
        }
        self._globals = dict(environment.globals)
        self._context = environment.context_class

    def word(self, name: str) -> str:
        """A name of an exit or a move, in the pack's language."""
        return self.manifest.words.get(name, name)

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """A template in words.

        Args:
            template: its path in the pack.
            values: the names it may use; no others are seen.

        Raises:
            WordingError: the template fails on these values.
        """
        import jinja2

        try:
            # What Template.render does, without merging Jinja's globals anew for every prompt.
            chosen = self._templates[template]
            context = self._context(chosen.environment, {**self._globals, **values}, template, chosen.blocks)
            text = "".join(chosen.root_render_func(context))
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise WordingError(f"{self.folder / template}: {error}") from error
        # Paragraphs that are not there leave no gap. What players wrote is quoted and has no line ends.
        text = text.strip()
        return _GAP.sub("\n\n", text) if "\n\n\n" in text else text

    def persona(self, name: str) -> Persona | None:
        """A persona by name, or `None`."""
        return self.personas.get(name)

    def describe(self) -> dict[str, Any]:
        """What is recorded with a run."""
        manifest = self.manifest
        return {
            "name": manifest.name,
            "language": manifest.language,
            "paraphrase": manifest.paraphrase,
            "version": manifest.version,
            "digest": self.digest,
        }

    def _check(self, trees: Mapping[str, nodes.Template]) -> None:
        wanted: dict[str, frozenset[str]] = dict(COMMON_TEMPLATES)
        for scenario in self.manifest.scenarios:
            wanted.update({call.template: call.names for call in calls_of(scenario)})
        for name, allowed in wanted.items():
            if name not in trees:
                raise WordingError(f"{self.folder}: the template {name} is missing; add it, or take its scenario out")
            check_names(trees, self.folder, name, allowed)
        check_quotation(trees, self.folder)


def values_for(call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
    """What a call's template is given: of all that is known, the names the call may show."""
    names, take = call.taken
    try:
        return dict(zip(names, take(known), strict=True))
    except KeyError:
        return {name: known[name] for name in names if name in known}


def shipped_packs() -> tuple[str, ...]:
    """The names of the packs that come with the package."""
    return tuple(sorted(path.name for path in HOME.iterdir() if (path / "manifest.yaml").is_file()))


@functools.lru_cache(maxsize=64)
def load_pack(name: str) -> Pack:
    """Load a shipped pack, or a folder of one's own.

    Args:
        name: a shipped pack's name, or the path of a folder.

    Raises:
        WordingError: there is no such pack, or it is not complete.
    """
    if "/" not in name and (HOME / name / "manifest.yaml").is_file():
        return Pack(HOME / name)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        hint = suggestion(name, shipped_packs())
        raise WordingError(f"pack={name!r}: is neither a shipped pack nor a folder that exists; {hint}")
    return Pack(folder)


def _listed(names: Sequence[str], last: str) -> str:
    """Names as in a sentence, with a word before the last one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def _spoken(messages: Iterable[Heard], you: str) -> str:
    """Messages in their quotation marks, one line each; `you` stands for the listener's own name.

    A filter, because Jinja calls one many times faster than the body of a loop.
    """
    return "\n".join([f"{you}: {m.quotation}" if m.own else m.line for m in messages])


def _inlined(name: str, sources: Mapping[str, str]) -> str:
    """A template with the parts it includes put in their places: rendered at once, it costs half."""
    return _INCLUDE.sub(lambda match: _inlined(match[1], sources), sources[name])


def _price(value: float) -> str:
    return f"{value:.6g}"


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WordingError(f"{path}: cannot be read ({error.strerror}); a pack needs this file") from error
    except UnicodeDecodeError as error:
        raise WordingError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise WordingError(f"{path}{line}: is no YAML ({getattr(error, 'problem', error)})") from error


def _read_manifest(folder: Path) -> Manifest:
    path = folder / "manifest.yaml"
    data = _read_yaml(path)
    if not isinstance(data, dict):
        raise WordingError(f"{path}: must hold {', '.join(_FIELDS)}")
    for field in data:
        if field not in _FIELDS:
            raise WordingError(f"{path}: there is no field '{field}'; {suggestion(str(field), _FIELDS)}")
    for field, kind in _FIELDS.items():
        if field not in data and field in _OPTIONAL:
            continue
        if not isinstance(data.get(field), kind) or isinstance(data[field], bool):
            raise WordingError(f"{path}: the field '{field}' is missing or no {kind.__name__}")
    scenarios = data["scenarios"]
    for scenario in scenarios:
        if scenario not in SCENARIOS:
            raise WordingError(f"{path}: there is no scenario {scenario!r}; {suggestion(str(scenario), SCENARIOS)}")
    words = {str(name): str(word) for name, word in data.get("words", {}).items()}
    return Manifest(
        name=data["name"],
        language=data["language"],
        paraphrase=data["paraphrase"],
        version=data["version"],
        scenarios=tuple(scenarios),
        words=MappingProxyType(words),
    )


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".jinja", ".yaml")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
