"""Prompt packs: templates that turn a call's slots into a prompt, in one language and one paraphrase.

The templates of a scenario's calls stand in the scenario's own room, `prompts/PACK`, beside the `observation.jinja` of
its environment; what all scenarios share stands in `policies/llm/packs/PACK`: `manifest.yaml`, `personas.yaml`, the
templates for repair, second tries and summaries, and in `generic` those for scenarios without any of their own. A pack
of the user's is one folder that holds all of this, with the scenarios as folders inside. A pack may name a shipped one
as its `base`: the base's templates stand in for those that it does not hold.

Templates are checked when they are loaded: each must exist, may use only the names that its call may show, and must put
texts of players into quotation marks.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.errors import SettingsError, WordingError
from llm_coop_envs.interface.slots import constant_names
from llm_coop_envs.interface.wording import MAX_TEMPLATE, PROMPTS, Templates, read_words, translate_name
from llm_coop_envs.policies.llm.playing.calls import GENERIC, names, workflow_class
from llm_coop_envs.policies.llm.playing.personas import ANY, Persona, read_personas
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.opening import DAMAGED, read_file
from llm_coop_envs.util.references import load
from llm_coop_envs.util.trust import check_folder

HOME = Path(__file__).parents[1] / "packs"
MANIFEST = "manifest.yaml"
PERSONAS = "personas.yaml"
GENERIC_FOLDER = "generic"
_FIELDS = {"name": str, "language": str, "paraphrase": str, "version": int}
_OPTIONAL = {"base": str}

_LEGAL = "kind low high integer allowed options passing pattern"
#: The templates that belong to no scenario, and the names that each may use.
COMMON_TEMPLATES = {
    # Asks what an answer that could not be read was meant to say.
    "repair.jinja": names(f"{_LEGAL} answer answer_as key"),
    # Added to the question when it is asked again.
    "again.jinja": names(f"{_LEGAL} why value"),
    # Asks for a shorter account of what was said.
    "summary.jinja": names("me heard summary words"),
}


@dataclass(frozen=True)
class Manifest:
    """A pack's description of itself.

    Attributes:
        name: its name.
        language: the language's code, such as `"en"`.
        paraphrase: which of several wordings in this language.
        version: increases with each change of the texts.
        base: the shipped pack whose templates stand in for missing ones; empty for none.
    """

    name: str
    language: str
    paraphrase: str
    version: int
    base: str = ""


class Prompts:
    """A pack's templates and personas for one scenario.

    Args:
        pack: the pack.
        scenario: the scenario's name.
        generic: whether the templates are those for scenarios without any of their own.

    Attributes:
        pack: the pack.
        templates: those of the scenario's calls.
        personas: who players can be told to be, by name.

    Raises:
        SettingsError: the pack has no words for the scenario.
        WordingError: they are not complete, or a template shows what it must not.
    """

    def __init__(self, pack: Pack, scenario: str, *, generic: bool = False) -> None:
        self.pack = pack
        self.scenario = scenario
        folder = pack.folder / GENERIC_FOLDER if generic else pack.folder_for(scenario)
        if not folder.is_dir():
            raise SettingsError("pack", pack.name, f"has no templates for {scenario}")
        calls = (load(GENERIC) if generic else workflow_class(find_scenario(scenario))).calls
        base = None if pack.base is None else pack.base.prompts(scenario, generic=generic)
        names_by_template = {call.template: call.names for call in calls}
        self.templates: Templates = Templates(
            folder,
            names_by_template,
            base=None if base is None else base.templates,
            words=read_words(pack.folder_for(scenario)),
            constant=constant_names(find_scenario(scenario).env_class.slots_type),
        )
        own = folder / PERSONAS
        self.personas: dict[str, Persona] = {**({} if base is None else base.personas), **pack.personas}
        if own.is_file():
            self.personas |= read_personas(_read_yaml(own), [call.name for call in calls], str(own))

    def word(self, name: str) -> str:
        """The name of an option in the pack's language."""
        return translate_name(name, self.templates.words)

    def persona(self, name: str) -> Persona | None:
        """Find the persona that a setting names.

        Args:
            name: a name; `"none"` for no persona; or, if it holds a space, the words themselves.

        Raises:
            SettingsError: there is no such persona, or it has no text for this scenario.
        """
        if name == "none":
            return None
        if " " in name.strip():
            return Persona("own", {ANY: name.strip()})
        if name in self.personas:
            return self.personas[name]
        others = {persona for prompts in self.pack.all_prompts() for persona in prompts.personas}
        if name in others:
            reason = f"has no words for {self.scenario} in pack {self.pack.name}; choose another one"
        else:
            reason = f"is no persona of pack {self.pack.name}; {suggestion(name, ['none', *self.personas])}"
        raise SettingsError("personas", name, reason)


class Pack:
    """A loaded pack.

    Args:
        folder: holds what belongs to no scenario; a pack of the user's also holds the scenarios' folders.
        shipped: whether the scenarios' templates are in the scenarios' own rooms.

    Attributes:
        manifest: its description.
        base: the pack whose templates stand in for missing ones; `None` without one.
        personas: the personas that are the same in all scenarios, by name.
        templates: the templates that belong to no scenario.

    Raises:
        WordingError: the folder is no complete pack, or a template shows what it must not.
    """

    def __init__(self, folder: Path, *, shipped: bool = False) -> None:
        self.folder = folder
        self.shipped = shipped
        self.manifest = _read_manifest(folder / MANIFEST)
        self.base: Pack | None = load_pack(self.manifest.base) if self.manifest.base else None
        own = folder / PERSONAS
        self.personas: dict[str, Persona] = dict(self.base.personas) if self.base else {}
        if self.base is None or own.is_file():
            self.personas |= read_personas(_read_yaml(own), (), str(own))
        shared = self.base.templates if self.base else None
        self.templates: Templates = Templates(folder, COMMON_TEMPLATES, base=shared)
        self._prompts: dict[tuple[str, bool], Prompts] = {}

    @property
    def name(self) -> str:
        """The name in its manifest."""
        return self.manifest.name

    def folder_for(self, scenario: str) -> Path:
        """The folder of its templates for a scenario, whether or not it exists."""
        descriptor = find_scenario(scenario)
        if descriptor.workflow is None:
            return self.folder / GENERIC_FOLDER
        return descriptor.env_class.home / PROMPTS / self.folder.name if self.shipped else self.folder / scenario

    def prompts(self, scenario: str, *, generic: bool = False) -> Prompts:
        """Its templates for a scenario, or with `generic` those for any scenario.

        Raises:
            SettingsError: it has none.
            WordingError: they are not complete, or a template shows what it must not.
        """
        key = scenario, generic
        if key not in self._prompts:
            own = self.folder / GENERIC_FOLDER if generic else self.folder_for(scenario)
            if self.base is not None and not own.is_dir():
                return self.base.prompts(scenario, generic=generic)
            self._prompts[key] = Prompts(self, scenario, generic=generic)
        return self._prompts[key]

    def all_prompts(self) -> list[Prompts]:
        """Its templates for every scenario for which it has some."""
        return [self.prompts(name) for name in scenarios() if self.base or self.folder_for(name).is_dir()]

    def digest(self, played: Iterable[str] | None = None) -> str:
        """SHA-256 over its files, and its base's, for these scenarios (by default for all), 16 hexadecimal digits."""
        played = tuple(scenarios() if played is None else played)
        digest = hashlib.sha256()
        folders = {"": self.folder}
        folders |= {name: self.folder_for(name) for name in sorted(played)}
        for name, folder in folders.items():
            files = folder.rglob("*") if name else folder.glob("*")
            for path in sorted(p for p in files if p.suffix in (".jinja", ".yaml", ".json")):
                content = read_file(path, MAX_TEMPLATE)
                digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
                digest.update(content)
        if self.base is not None:
            digest.update(self.base.digest(played).encode())
        return digest.hexdigest()[:16]

    def describe(self, played: Iterable[str] | None = None) -> dict[str, Any]:
        """What a run that plays these scenarios records of the pack."""
        fields = {name: value for name, value in vars(self.manifest).items() if value or name in _FIELDS}
        return {**fields, "digest": self.digest(played)}


def shipped_packs() -> tuple[str, ...]:
    """The names of the packs that come with the package."""
    return tuple(sorted(path.parent.name for path in HOME.glob(f"*/{MANIFEST}")))


def load_pack(name: str) -> Pack:
    """Load a shipped pack, or a folder of one's own.

    Args:
        name: a shipped pack's name, or the path of a folder.

    Raises:
        WordingError: there is no such pack, or it is not complete.
        TrustError: the folder is not trusted.
    """
    if name not in shipped_packs():
        check_folder("prompt pack", Path(name).expanduser())
    return _load_pack(name)


@functools.lru_cache(maxsize=64)
def _load_pack(name: str) -> Pack:
    if name in shipped_packs():
        return Pack(HOME / name, shipped=True)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        hint = suggestion(name, shipped_packs())
        raise WordingError(f"pack={name!r}: is neither a shipped pack nor a folder that exists; {hint}")
    return Pack(folder)


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(read_file(path, MAX_TEMPLATE).decode())
    except OSError as error:
        raise WordingError(f"{path}: cannot be read ({error.strerror}); a pack needs this file") from error
    except UnicodeDecodeError as error:
        raise WordingError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except RecursionError as error:
        raise WordingError(f"{path}: is nested too deeply") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise WordingError(f"{path}{line}: is no YAML ({getattr(error, 'problem', error)})") from error
    except DAMAGED as error:  # a date of a thirteenth month, say
        raise WordingError(f"{path}: holds a value that is none of its kind ({error})") from error


def _read_manifest(path: Path) -> Manifest:
    data = _read_yaml(path)
    if not isinstance(data, dict):
        raise WordingError(f"{path}: must hold {', '.join(_FIELDS)}")
    kinds = {**_FIELDS, **_OPTIONAL}
    for field in data:
        if field not in kinds:
            raise WordingError(f"{path}: there is no field '{field}'; {suggestion(str(field), kinds)}")
    for field, kind in kinds.items():
        if field in _OPTIONAL and field not in data:
            continue
        if not isinstance(data.get(field), kind) or isinstance(data[field], bool):
            raise WordingError(f"{path}: the field '{field}' is missing or no {kind.__name__}")
    if "base" in data and data["base"] not in shipped_packs():
        hint = suggestion(data["base"], shipped_packs())
        raise WordingError(f"{path}: base '{data['base']}' is no shipped pack; {hint}")
    return Manifest(**data)
