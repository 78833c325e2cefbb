"""The help of commands: options and commands in groups, and no word broken in a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from llm_coop_envs.cli.layout import definitions, heading, terminal_width, wrap

_KINDS = {"str": "TEXT", "file": "PATH", "directory": "PATH", "path": "PATH", "int": "N", "float": "N"}


class HelpfulCommand(TyperCommand):
    """A command."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # the vendored click
        """Write the command's help."""
        formatter.write(_help_of(self, ctx, []))


class HelpfulGroup(TyperGroup):
    """A command that has commands."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # the vendored click
        """Write the group's help, its commands below."""
        commands = [self.commands[name] for name in self.list_commands(ctx)]
        shown = [command for command in commands if not command.hidden]
        column = max(len(str(command.name)) for command in shown)
        rows = [
            (_panel(command, "Commands"), str(command.name).ljust(column), (command.help or "").split("\n\n")[0])
            for command in shown
        ]
        formatter.write(_help_of(self, ctx, rows))


def _help_of(command: TyperCommand | TyperGroup, ctx: typer.Context, commands: list[tuple[str, str, str]]) -> str:
    """The help of a command: its use, what it does, its commands, arguments and options."""
    width = terminal_width()
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    rows = [
        (_panel(param, otherwise), *_row(param, ctx))
        for kind, otherwise in ((TyperArgument, "Arguments"), (TyperOption, "Options"))
        for param in params
        if isinstance(param, kind)
    ]
    about = [wrap(" ".join(part.split()), width) for part in (command.help or "").split("\n\n")]
    usage = wrap(" ".join(command.get_usage(ctx).split()), width, later="    ")
    return "\n\n".join([usage, *about, *_groups([*commands, *rows], width)]) + "\n"


def _groups(rows: Iterable[tuple[str, str, str]], width: int) -> list[str]:
    """Rows of group, name and text, each group under its heading."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for group, name, text in rows:
        groups.setdefault(group, []).append((name, " ".join(text.split())))
    return [f"{heading(group)}\n{definitions(members, width)}" for group, members in groups.items()]


def _panel(owner: Any, otherwise: str) -> str:
    """The group that an option or command was put into."""
    panel = getattr(owner, "rich_help_panel", None)
    return panel if isinstance(panel, str) else otherwise


def _row(param: TyperArgument | TyperOption, ctx: typer.Context) -> tuple[str, str]:
    """A parameter's spelling, and what its help says."""
    record = param.get_help_record(ctx)
    text = record[1] if record else ""
    if isinstance(param, TyperArgument):
        return param.display_name_raw, text
    names = ", ".join([*sorted(param.opts, key=len), *param.secondary_opts])
    if param.is_flag or param.count:
        return names, text
    kind = param.display_type(ctx).strip("<>").removeprefix("list[").rstrip("]").removesuffix(" range")
    return f"{names} {param.metavar or _KINDS.get(kind, kind)}", text
