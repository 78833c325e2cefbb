"""What a shell offers for an argument after Tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def begin_with(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A callback for typer: those of some names that begin with what was typed.

    Args:
        names: called when something is completed, so that nothing is imported before.
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def studies() -> Iterable[str]:
    """The names of the shipped studies."""
    from llm_coop_envs.studies.study import shipped_studies

    return shipped_studies()


def scenarios() -> Iterable[str]:
    """The names of all scenarios."""
    from llm_coop_envs.core import registry

    return registry.scenarios()


def forms() -> Iterable[str]:
    """The forms of export."""
    from llm_coop_envs.export.export import all_forms

    return all_forms()
