"""The tree of commands: each with its line on the help page, and imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

from clinveil.cli.refusals import unknown_command
from clinveil.core import Members


class Parsed(Protocol):
    """A command or a group.

    Attributes:
        help: what it does, in one line.
    """

    help: str

    def parser(self) -> Any:
        """Return its parser."""
        ...


class Entry(NamedTuple):
    """A command or group: "module:attribute" below `clinveil.cli.commands`, and its help line."""

    path: str
    help: str


class Commands(Members[Parsed]):
    """The commands of a group; `helps`: the line of each on the help page."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        paths = {name: f"clinveil.cli.commands.{entry.path}" for name, entry in entries.items()}
        super().__init__(kind, paths)
        self.helps = {name: entry.help for name, entry in entries.items()}

    def help(self, name: str) -> str:
        """Return the line of a command on the help page, without importing our own commands."""
        return self.helps[name] if name in self.helps else self.get(name).help


COMMANDS = Commands(
    "command",
    {
        "demo": Entry(
            "demo:demo",
            "Generate invented notes, release them as each kind, and compare the kinds.",
        ),
        "inspect": Entry(
            "inspect:inspect", "Describe notes: counts, columns, language and markup."
        ),
        "init-config": Entry(
            "init_config:init_config",
            "Write a commented TOML file with every setting of a command.",
        ),
        "deidentify": Entry(
            "deidentify:deidentify", "Detect identifiers in notes and remove, replace or tag them."
        ),
        "validate": Entry("validate:validate", "Estimate recall without annotated notes."),
        "review": Entry(
            "review:review", "Correct detected identifiers, or judge a sample, in a local browser."
        ),
        "reidentify": Entry(
            "reidentify:reidentify",
            "Restore original text from an encrypted crosswalk; the reason is logged.",
        ),
        "release": Entry(
            "release:release", "Make a release of notes and check it before it may leave."
        ),
        "compare": Entry(
            "compare:compare",
            "Compare all kinds of release on the same notes, by utility and risk.",
        ),
        "verify": Entry(
            "verify:verify",
            "Check a release's hashes, schema and manifest, or the audit log of a vault.",
        ),
        "withdraw": Entry(
            "withdraw:withdraw", "Delete a release that was not handed over, and record it."
        ),
        "report": Entry("report:report", "Write the report of a finished release again."),
        "embed": Entry("embed:embed", "Train word vectors on notes."),
        "attack": Entry(
            "attack:GROUP",
            "Attack notes, word vectors or language models before they are released.",
        ),
        "evaluate": Entry(
            "evaluate:GROUP",
            "Measure the utility of protected notes or of vectors trained on them.",
        ),
    },
)
"""Commands and groups of the top level."""


class Group:
    """A group of commands."""

    def __init__(self, help: str, members: Commands) -> None:
        self.help = help
        self.members = members

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


def group_class(members: Commands) -> type[TyperGroup]:
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
            summary = members.help(cmd_name)
            return TyperCommand(cmd_name, help=summary, short_help=summary)

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            """Import a command and return its parser. Raises UsageError for an unknown command."""
            if args and args[0] not in members and not args[0].startswith("-"):
                raise unknown_command(members.kind, args[0], members.names())
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in members:
                command = members.get(name).parser()
            return name, command, rest

    return LazyGroup
