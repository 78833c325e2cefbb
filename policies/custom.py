"""Custom policies by the name of their class, `module:Class`.

The module is imported as usual, with the working directory or a study's folder on the module search path, if it may
be imported at all (`util.trust`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.core.base_policy import Policy
from llm_coop_envs.errors import SettingsError, TrustError
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.trust import current_trust, import_policies

LABEL = "own policy"


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: object = None) -> Policy:
    """Make the policy by calling its class with the options as keyword arguments.

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


# Making a policy is the complete check.
check = make


def find_class(reference: str) -> type[Policy]:
    """Import the class of a policy by `module:Class`.

    Raises:
        SettingsError: it cannot be imported, or is no policy.
        TrustError: the module is neither installed nor trusted.
    """
    module, _, name = reference.partition(":")
    try:
        imported = import_policies(reference)
    except TrustError:
        raise
    except Exception as error:  # a user's module may raise anything while it is imported
        searched = " or ".join(map(str, current_trust().search or (Path.cwd(),)))
        reason = f"the module '{module}' cannot be imported from {searched} ({type(error).__name__}: {error})"
        if module.endswith(".py"):
            reason = f"names a file; give its module, from the file's folder: '{Path(module).stem}:{name}'"
        raise SettingsError("policy", reference, reason) from error
    classes = {key: cls for key, cls in vars(imported).items() if inspect.isclass(cls) and issubclass(cls, Policy)}
    if name not in classes or inspect.isabstract(classes[name]):
        own = [key for key, cls in classes.items() if cls.__module__ == module and not inspect.isabstract(cls)]
        hint = (
            suggestion(name, own)
            if own
            else "there is none in it; derive it from llm_coop_envs.policies.ScriptedPolicy"
        )
        reason = f"is no class of a policy in that module; {hint}"
        raise SettingsError("policy", reference, reason)
    return classes[name]


# Cached, because the process keeps the code that it has loaded even if the file changes.
@functools.cache
def source_hash(reference: str) -> str:
    """Hash the source files of a policy's class and of its base classes.

    Classes of this package are left out, and so are the modules that these files import.
    """
    package = __name__.partition(".")[0]
    not_hashed = (package, "abc", "builtins")
    bases = [base for base in find_class(reference).__mro__ if base.__module__.partition(".")[0] not in not_hashed]
    files = sorted({inspect.getfile(base) for base in bases})
    hashed = hashlib.sha256()
    for file in files:
        # A checkout on Windows may have other line ends.
        hashed.update(Path(file).read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()[:16]
