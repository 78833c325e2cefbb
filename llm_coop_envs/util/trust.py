"""What may be loaded that is not installed, and which addresses may be asked, while data of unknown origin are read.

A run, its study and its conditions name policies, prompt packs, wordings and trained players. A program of the user's
may load all of them. A command that is given a run folder may not: whoever made the folder chose those names. It
loads what is installed, and what its user names with `--trust-policies` and `--trust-pack`. Nor may the folder choose
who gets the user's key: that is the model's own provider, this machine, or whom the user names.

The limit holds for the whole process, threads included, and is handed to the processes that it starts.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

from llm_coop_envs.errors import TrustError
from llm_coop_envs.util.paths import StrPath

POLICIES_FLAG, PACK_FLAG, ADDRESS_FLAG = "--trust-policies", "--trust-pack", "--trust-address"
ADDRESS_VARIABLE = "LLM_COOP_TRUST_ADDRESS"


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What may be loaded besides what is installed, and asked besides a model's provider and this machine.

    Attributes:
        policies: modules of policies, such as `"strategies"`, with all modules in them; or single classes, such as
            `"strategies:Patient"`.
        folders: the folders (or files) of packs, wordings and trained players, with all that is in them.
        search: folders in which trusted modules are searched for before the module search path.
        addresses: servers that may be asked, each exactly as it is named.
        keys: environment variables of keys that may be used besides those that an address has by default.
        everything: whether all modules and folders may be loaded, and all addresses asked, whatever their names.
    """

    policies: tuple[str, ...] = ()
    folders: tuple[StrPath, ...] = ()
    search: tuple[StrPath, ...] = ()
    addresses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    everything: bool = False

    def trusts_policy(self, reference: str) -> bool:
        """Whether a class, `module:Class`, may be imported although it is not installed."""
        module = reference.partition(":")[0]
        return self.everything or any(
            name in (reference, module) or module.startswith(f"{name}.") for name in self.policies
        )

    def trusts_folder(self, path: StrPath) -> bool:
        """Whether a folder or file may be loaded although it is not installed."""
        resolved = Path(path).resolve()
        return self.everything or any(resolved.is_relative_to(Path(folder).resolve()) for folder in self.folders)

    def trusts_address(self, url: str) -> bool:
        """Whether a server may be asked. The whole address counts: paths of one host may be different people's."""
        return self.everything or url.rstrip("/") in [address.rstrip("/") for address in self.addresses]

    def trusts_key(self, variable: str) -> bool:
        """Whether the key in an environment variable may be used where it is not the address's own."""
        return self.everything or variable in self.keys


EVERYTHING = Trust(everything=True)
NOTHING = Trust()
_trust = EVERYTHING  # a program of the user's chooses itself what it loads


def current_trust() -> Trust:
    """What may be loaded now."""
    return _trust


def set_trust(trust: Trust) -> None:
    """Limit what this process loads from now on; of two limits the later one holds."""
    global _trust
    _trust = trust


@contextlib.contextmanager
def limited_to(trust: Trust) -> Iterator[None]:
    """Limit what is loaded in a block.

    A limit that was set before stays: a function that reads a run does not take back what the command line trusts.
    """
    previous = _trust
    if previous is EVERYTHING:
        set_trust(trust)
    try:
        yield
    finally:
        set_trust(previous)


def import_policies(reference: str) -> ModuleType:
    """Import the module of a policy, `module:Class`.

    Raises:
        TrustError: it is neither installed nor trusted.
        Exception: whatever the module raises.
    """
    module, trust = reference.partition(":")[0], _trust
    if trust.trusts_policy(reference):
        for folder in trust.search or (Path.cwd(),):
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
    elif not is_installed(module):
        raise TrustError(
            f"policy {reference}: the module '{module}' would have been imported, which runs its code; it is not "
            f"installed. If you trust it, say so with {POLICIES_FLAG} {module}"
        )
    return importlib.import_module(module)


def check_folder(subject: str, path: Path) -> None:
    """Check that a folder or file that is not part of this package may be loaded.

    Args:
        subject: what it is, such as `"prompt pack"`.
        path: where it is.

    Raises:
        TrustError: it is not trusted.
    """
    if not _trust.trusts_folder(path):
        raise TrustError(
            f"{subject} {path}: would have been loaded from there; it does not come with the package. If you trust "
            f"it, say so with {PACK_FLAG} {path}"
        )


def check_address(model: str, url: str, key: str) -> None:
    """Check that a server may be asked that is neither a model's provider nor on this machine.

    Args:
        model: the model.
        url: the server's address.
        key: the environment variable whose key it would get.

    Raises:
        TrustError: it is not trusted.
    """
    if not _trust.trusts_address(url):
        raise TrustError(
            f"model {model}: the prompts, and the key in {key} if there is one, would have been sent to {url}, which "
            f"the run names and not you. If you trust it, say so with {ADDRESS_FLAG} {url}, or give your own --base-url"
        )


def check_key(model: str, url: str, key: str) -> None:
    """Check that the key in an environment variable may be sent to an address that has another one by default.

    Raises:
        TrustError: it is not trusted.
    """
    if not _trust.trusts_key(key):
        raise TrustError(
            f"model {model}: the key in {key} would have been sent to {url}; the run names this environment variable, "
            f"and not you. If it is the right one, say so with --key-env {key}"
        )


def is_installed(module: str) -> bool:
    """Whether a module belongs to an installed package, or is loaded already.

    Importing a module runs the code of all packages that lead to it. They are looked at one by one: the first is found
    without running any code, and each further one is inside a package that is known to be installed by then. A folder
    without an `__init__.py` is no package here: any folder of a run would be one. The standard library has no policies,
    and importing some of its modules opens a browser.
    """
    if module in sys.modules and module != "__main__":
        return True
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts) or parts[0] in sys.stdlib_module_names:
        return False
    first = _find_spec(parts[0])
    if first is None or not (_lies_in(first, _site_folders()) or parts[0] in packages_distributions()):
        return False
    return all(_find_spec(".".join(parts[:count])) is not None for count in range(2, len(parts) + 1))


def _find_spec(module: str) -> ModuleSpec | None:
    """The specification of a module with a file of its own; `None` if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return None
    return spec if spec is not None and spec.has_location else None


def _lies_in(spec: ModuleSpec, folders: Iterable[Path]) -> bool:
    path = Path(spec.origin or "").resolve()
    return any(path.is_relative_to(folder) for folder in folders)


@cache
def _site_folders() -> tuple[Path, ...]:
    paths = [*site.getsitepackages(), site.getusersitepackages(), *map(sysconfig.get_path, ("purelib", "platlib"))]
    return tuple(Path(path).resolve() for path in dict.fromkeys(paths))
