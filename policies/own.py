"""Policies of somebody else's, by the name of their class: `module:Class`.

The module is imported as Python does it, with the working directory among the places where modules are looked for.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.base import Policy
from llm_coop_envs.util.checks import suggestion

LABEL = "own policy"


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: object = None) -> Policy:
    """Make the policy: the class is called with the options by name.

    Raises:
        SettingsError: there is no such class, it is no `Policy`, or it refuses the options.
    """
    kind = find_class(argument)
    try:
        inspect.signature(kind).bind(**options)
    except TypeError as error:
        accepted = ", ".join(inspect.signature(kind).parameters) or "none"
        raise SettingsError("policy", argument, f"cannot take these options ({error}); it takes: {accepted}") from error
    return kind(**options)


# Making one finds everything that can be wrong.
check = make


def find_class(reference: str) -> type[Policy]:
    """The class of a policy, by `module:Class`.

    Raises:
        SettingsError: it cannot be imported, or is no policy.
    """
    module, _, name = reference.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever somebody else's module raises while it is imported
        why = f"the module '{module}' cannot be imported from {here} ({type(error).__name__}: {error})"
        raise SettingsError("policy", reference, why) from error
    kinds = {key: one for key, one in vars(found).items() if inspect.isclass(one) and issubclass(one, Policy)}
    if name not in kinds or inspect.isabstract(kinds[name]):
        mine = [key for key, one in kinds.items() if one.__module__ == module and not inspect.isabstract(one)]
        why = f"is no class of a policy in that module; {suggestion(name, mine) if mine else 'there is none in it'}"
        raise SettingsError("policy", reference, why)
    return kinds[name]


# Once per process, which goes on with what it has loaded, whatever becomes of the file.
@functools.cache
def source_hash(reference: str) -> str:
    """The hash of what decides for such a policy: the files of its class and of those that it derives from.

    What comes with this package is left out, and so is what these files import.
    """
    package = __name__.partition(".")[0]
    bases = [one for one in find_class(reference).__mro__ if one.__module__.partition(".")[0] not in (package, "abc")]
    files = sorted({inspect.getfile(one) for one in bases if one.__module__ != "builtins"})
    hashed = hashlib.sha256()
    for file in files:
        # A checkout on Windows may have other ends of lines.
        hashed.update(Path(file).read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()[:16]
