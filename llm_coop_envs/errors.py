"""Errors a user can cause, each one sentence that says what was wrong, where, and what to do.

    LlmCoopError
    +-- SettingsError (also a ValueError)   a setting, alone or with another, is not possible
    +-- ActionError (also a ValueError)     step() was called with something that is no set of actions
    +-- ResetNeeded (also a RuntimeError)   step() before reset()
    +-- SnapshotError (also a ValueError)   set_state() was given another environment's state
    +-- WordingError (also a ValueError)    a folder of text templates cannot be used
    +-- MissingExtra (also a RuntimeError)  an optional dependency is not installed
    +-- StudyError (also a ValueError)      a study file is wrong
    +-- RunError (also a RuntimeError)      a run folder cannot be written, read or continued
    +-- TrustError (also a RuntimeError)    code or templates that are neither installed nor trusted are needed
    +-- SceneError (also a ValueError)      events or a scene cannot be drawn
    +-- WindowError (also a RuntimeError)   no window can be opened
    +-- PlayerLeft (also a RuntimeError)    a person who plays has gone

Command-line entry points turn an `LlmCoopError` into its sentence and exit code 2.
"""

from __future__ import annotations


class LlmCoopError(Exception):
    """Base of every error that the caller can put right."""


class SettingsError(LlmCoopError, ValueError):
    """A setting is out of range, unknown, or contradicts another one.

    Args:
        field: the setting's name.
        value: the value that was given.
        why: what is wrong with it and what would be right.
    """

    def __init__(self, field: str, value: object, why: str) -> None:
        super().__init__(f"{field}={value!r}: {why}")
        self.field = field
        self.value = value
        self.why = why

    def __reduce__(self) -> tuple[type[SettingsError], tuple[str, object, str]]:
        """Pickle by the three parts, so that the error survives a process pool."""
        return type(self), (self.field, self.value, self.why)


class ActionError(LlmCoopError, ValueError):
    """`step` was called with something that cannot be read as a set of actions."""


class ResetNeeded(LlmCoopError, RuntimeError):
    """`step` was called before `reset`."""


class SnapshotError(LlmCoopError, ValueError):
    """A state does not belong to this environment, or is damaged."""


class WordingError(LlmCoopError, ValueError):
    """A folder of text templates is missing, incomplete, or asks for what no player may know."""


class MissingExtra(LlmCoopError, RuntimeError):
    """An optional dependency is not installed.

    Not an `ImportError`: PettingZoo's `make` would hide it behind advice that is wrong for this package.

    Args:
        what: what cannot be done.
        extra: the extra that brings it; or several, with commas between them.
    """

    def __init__(self, what: str, extra: str) -> None:
        names = [f"'{name}'" for name in extra.split(",")]
        needs = f"needs the extra {names[0]}" if len(names) == 1 else f"need the extras {' and '.join(names)}"
        super().__init__(
            f"{what} {needs}: pip install 'llm-coop-envs[{extra}]' (in a checkout: pip install -e '.[{extra}]')"
        )
        self.what = what
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """Pickle by the two parts."""
        return type(self), (self.what, self.extra)


class StudyError(LlmCoopError, ValueError):
    """A study file cannot be used; the sentence names its line and field."""


class RunError(LlmCoopError, RuntimeError):
    """A run folder cannot be written, read or continued."""


class TrustError(LlmCoopError, RuntimeError):
    """Somebody else's data name code, templates or a trained player that are neither installed nor trusted.

    Or an address or a key's variable, to which this user's prompts and key would go.
    """


class SceneError(LlmCoopError, ValueError):
    """Events are no episode that could be shown, or a scene cannot be drawn as asked."""


class WindowError(LlmCoopError, RuntimeError):
    """No window can be opened."""


class PlayerLeft(LlmCoopError, RuntimeError):
    """A person who plays has gone: the input ended, or the game was left."""
