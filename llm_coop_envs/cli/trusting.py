"""What a command may load, and whom it may ask: `--trust-policies` and its like, of commands that read runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.util.children import usable_cores
from llm_coop_envs.util.opening import explain_damage
from llm_coop_envs.util.trust import ADDRESS_FLAG, ADDRESS_VARIABLE, PACK_FLAG, POLICIES_FLAG, Trust, set_trust

_PANEL = "What may be loaded and asked"
TRUST = ("trust_policies", "trust_pack", "trust_address")  # options of commands that may be given somebody else's run
TrustPolicies = Annotated[
    list[str] | None,
    typer.Option(
        POLICIES_FLAG,
        metavar="NAME",
        help="A module of policies whose code may run although it is not installed; may be repeated. It is searched "
        "for in the working directory, too.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TrustPack = Annotated[
    list[Path] | None,
    typer.Option(
        PACK_FLAG,
        metavar="DIR",
        help="A folder of a prompt pack, a wording or a trained player that may be loaded; may be repeated.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TrustAddress = Annotated[
    list[str] | None,
    typer.Option(
        ADDRESS_FLAG,
        metavar="URL",
        envvar=ADDRESS_VARIABLE,
        help="A server that a run names and that may get your key and its prompts; may be repeated.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


def trust_program(study: Path | None = None) -> None:
    """Let this command load whatever its arguments name: who starts a program runs it.

    Args:
        study: a study file, in whose folder modules are searched for first.
    """
    own = [] if study is None else [study.absolute().parent]
    set_trust(Trust(everything=True, search=(*own, *([] if own else [Path.cwd()]))))


def trust_named(
    policies: Iterable[str] | None,
    packs: Iterable[Path] | None,
    *,
    more_search: Iterable[Path] = (),
    addresses: Iterable[str] = (),
    keys: Iterable[str] = (),
) -> None:
    """Let this command load what is installed, and what its arguments trust.

    Args:
        policies: modules of policies, or single classes.
        packs: folders.
        more_search: folders in which trusted modules are searched for, besides the working directory.
        addresses: servers that may be asked besides a model's provider and this machine.
        keys: environment variables of keys that may be used besides those that an address has by default.
    """
    set_trust(
        Trust(
            policies=tuple(policies or ()),
            folders=tuple(path.expanduser() for path in packs or ()),
            search=(Path.cwd(), *more_search),
            addresses=tuple(addresses),
            keys=tuple(keys),
        )
    )


def reads_runs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that reads a run the options `--trust-policies` and `--trust-pack`, and obey them."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        trust_named(arguments.pop("trust_policies"), arguments.pop("trust_pack"))
        folder = next((value for value in arguments.values() if isinstance(value, Path)), Path())
        from llm_coop_envs.runs.reading import reading_in

        with reading_in(usable_cores()), explain_damage(folder, "'llm-coop verify' says more; restore it from a copy"):
            command(**arguments)

    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in (("trust_policies", TrustPolicies), ("trust_pack", TrustPack))
    ]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    vars(wrapped)["__signature__"] = inspect.Signature([*own, *added])  # what typer reads
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return wrapped
