"""A group of commands that imports a command's file only when that command is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def lazy_group(commands: Mapping[str, str], file_of: Callable[[str], str]) -> type[TyperGroup]:
    """A group class of these commands.

    Args:
        commands: name -> what it does, in the order of the help page, which needs no more than this.
        file_of: the module of a command's name; its `app` holds the command.
    """

    class LazyGroup(TyperGroup):
        """Lists commands without importing them."""

        def list_commands(self, ctx: Any) -> list[str]:
            """All names."""
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """The command's line on the help page."""
            if cmd_name not in commands:
                return None
            return TyperCommand(cmd_name, help=commands[cmd_name], short_help=commands[cmd_name])

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            """The command itself, imported now."""
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in commands:
                command = typer.main.get_command(import_module(file_of(name)).app)
            return name, command, rest

    return LazyGroup
