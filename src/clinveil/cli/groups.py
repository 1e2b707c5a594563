"""The tree of commands: a folder is a group, and a command's file is imported when the command is
called.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

from clinveil.core import Registry, UsageError, first_paragraph

PACKAGE = "clinveil.cli.commands"
TOP = "demo inspect init-config deidentify validate review reidentify release compare verify report"
TOP += " embed attack evaluate"


class Parsed(Protocol):
    """A command or a group.

    Attributes:
        help: what it does, in one line.
    """

    help: str

    def parser(self) -> Any:
        """Return its parser."""
        ...


COMMANDS: Registry[Parsed] = Registry("command", PACKAGE, first=tuple(TOP.split()))
"""Commands and groups of the top level; other distributions add theirs as entry points of
`clinveil.commands`.
"""
GROUPS: dict[str, Registry[Parsed]] = {}
"""The commands of each imported group; other distributions use entry points of
`clinveil.attack_commands` etc.
"""


class Group:
    """A group of commands, defined in the `__init__.py` of its folder.

    Args:
        name: as typed, such as `attack`.
    """

    def __init__(self, name: str, help: str, members: Registry[Parsed]) -> None:
        self.help = help
        self.members = members
        GROUPS[name] = members
        COMMANDS.register(name)(self)

    def parser(self) -> TyperGroup:
        """Return the parser of the group."""
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
    """Return the commands in a group's folder, those of `first` before the others."""
    return Registry(f"{group} command", f"{PACKAGE}.{group}", first=first)


def group_class(members: Registry[Parsed]) -> type[TyperGroup]:
    """Return the parser class of a group of these commands."""

    class LazyGroup(TyperGroup):
        """Lists commands without importing them."""

        def list_commands(self, ctx: Any) -> list[str]:
            """Return all names."""
            return list(members.names())

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Return a placeholder with the command's line on the help page."""
            if cmd_name not in members:
                return None
            # The first docstring line of our files, without an import; `help` of others.
            module = members.module(cmd_name)
            spec = find_spec(module) if module else None
            if spec is None or spec.origin is None:
                summary = members.get(cmd_name).help
            else:
                tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
                summary = first_paragraph(ast.get_docstring(tree)).rpartition("`: ")[2]
            return TyperCommand(cmd_name, help=summary, short_help=summary)

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            """Import a command and return its parser. Raises UsageError for an unknown command."""
            if args and args[0] not in members and not args[0].startswith("-"):
                near = get_close_matches(args[0], members.names(), n=1)
                hint = (
                    f"did you mean `{near[0]}`?" if near else "one of " + ", ".join(members.names())
                )
                raise UsageError(f"there is no command `{args[0]}`", hint=hint)
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in members:
                command = members.get(name).parser()
            return name, command, rest

    return LazyGroup
