"""The tree of commands: who is in a group is read from its folder; a command's file is imported when it is called."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

from clinveil.core.registry import Registry

PACKAGE = "clinveil.cli.commands"
TOP = "demo generate inspect prepare deidentify review validate reidentify phi embed mitigate obfuscate"
TOP += " attack evaluate study"
TOP += " release compare verify report"


class Parsed(Protocol):
    """A command or a group; `help` says in one line what it does."""

    help: str

    def parser(self) -> Any:
        """The parser of its command line."""
        ...


COMMANDS: Registry[Parsed] = Registry("command", PACKAGE, first=tuple(TOP.split()))
"""Commands and groups; other distributions add theirs by the entry point group `clinveil.commands`."""
GROUPS: dict[str, Registry[Parsed]] = {}
"""The commands of each group that was imported; their entry points are `clinveil.attack_commands` and so on."""


class Group:
    """A group of commands; a folder's `__init__.py` makes one of its own name."""

    def __init__(self, name: str, help: str, members: Registry[Parsed]) -> None:
        self.help, self.members = help, members
        GROUPS[name] = members
        COMMANDS.register(name)(self)

    def parser(self) -> TyperGroup:
        """The group's parser."""
        app = typer.Typer(
            cls=group_class(self.members),
            no_args_is_help=True,
            invoke_without_command=True,
            add_completion=False,
            help=self.help,
        )
        app.callback()(lambda: None)
        return typer.main.get_group(app)


def members_of(group: str, *first: str) -> Registry[Parsed]:
    """The commands in a group's folder, those of `first` before the others."""
    return Registry(f"{group} command", f"{PACKAGE}.{group}", first=first)


def group_class(members: Registry[Parsed]) -> type[TyperGroup]:
    """The class of a group of these commands."""

    class LazyGroup(TyperGroup):
        """Lists commands without importing them."""

        def list_commands(self, ctx: Any) -> list[str]:
            """All names."""
            return list(members.names())

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """The command's line on the help page."""
            if cmd_name not in members:
                return None
            said = _summary(members, cmd_name)
            return TyperCommand(cmd_name, help=said, short_help=said)

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            """The command itself, imported now."""
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in members:
                command = members.get(name).parser()
            return name, command, rest

    return LazyGroup


def _summary(members: Registry[Parsed], name: str) -> str:
    """What a command does: of our files the first line of the docstring, after the name; of others what they say."""
    module = members.module(name)
    spec = find_spec(module) if module else None
    if spec is None or spec.origin is None:
        return members.get(name).help
    said = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0].rpartition("`: ")[2]
