"""`clinveil init-config`: Write a commented TOML file with every setting of a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Command, Run, command
from clinveil.cli.config_file import config_text
from clinveil.cli.groups import COMMANDS, GROUPS, Group
from clinveil.core.atomic import atomic
from clinveil.core.errors import UsageError
from clinveil.core.files import Maker
from clinveil.core.settings import Settings

MAKER = Maker("init-config")
Name = Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", help="Command (default: release).")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="File to write (default: stdout).")]


@command("init-config")
def init_config(
    _: Run[Settings],
    name: Name = None,
    out: Out = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented TOML file with every setting of a command, its help and its default."""
    words = name or ["release"]
    chosen = _command(words)
    if chosen.settings is None:
        raise UsageError(f"clinveil {' '.join(words)} has no settings", hint="see its --help for its options")
    text = config_text(chosen.name, chosen.settings, takes_config=chosen.takes_config)
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic(out, force=force, maker=MAKER) as part:
        part.write_text(text, encoding="utf-8")


def _command(words: list[str]) -> Command[Settings]:
    """Return a command by its words. Raises UsageError for a group, and for an unknown name."""
    found, group = COMMANDS.get(words[0]), words[0]
    for word in words[1:]:
        if not isinstance(found, Group):
            break
        found, group = GROUPS[group].get(word), f"{group} {word}"
    if not isinstance(found, Command) or found.name != " ".join(words):
        raise UsageError(f"{' '.join(words)} is not a command", hint="see clinveil --help")
    return found
