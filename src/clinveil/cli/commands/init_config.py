"""`clinveil init-config`: Write a commented TOML file with every setting of a command."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from clinveil.cli.command import Command, Run, command
from clinveil.cli.groups import COMMANDS, GROUPS, Group
from clinveil.core import Maker, Settings, UsageError, atomic, config_names, registry_of, sections

WIDTH = 100


def config_text(command: str, model: type[Settings], *, takes_config: bool = True) -> str:
    """Return the TOML file of a command's settings; `--config` accepts it as it is, and it changes
    nothing.
    """
    head = [f"# Settings of clinveil {command}, with their defaults."]
    if takes_config:
        head += [
            "# To change a setting, remove the # of its line and pass this file with --config.",
            "#",
        ]
        head += [
            "# Settings of a section are also keys of --set: --set KEY=VALUE or --set"
            " SECTION.KEY=VALUE."
        ]
        if shipped := config_names(model):
            head.append(f"# Shipped with the package: --config {' and --config '.join(shipped)}.")
    else:
        head += ["# To change a setting, pass --set KEY=VALUE."]
    return "\n".join([*head, *_lines(model)]) + "\n"


def _lines(model: type[Settings]) -> Iterator[str]:
    groups = sections(model)
    tables = sections(model, tables=True)
    defaults = model().flat()
    grouped = {name for kind in groups.values() for name in kind.flags()}
    for name, field in model.flags().items():
        if name not in grouped:
            yield from _setting(name, field, defaults[name])
    for title, kind in {**groups, **tables}.items():
        values = defaults[title] if title in tables else defaults
        yield from ("", f"[{title}]")
        for name, field in kind.flags().items():
            yield from _setting(name, field, values.get(name, field.default))


def _setting(name: str, field: FieldInfo, default: Any) -> Iterator[str]:
    registry = registry_of(field)
    names = f" One of {', '.join(registry.names())}." if registry else ""
    yield ""
    yield from (f"# {line}" for line in textwrap.wrap(f"{field.description}{names}", WIDTH - 2))
    yield f"# {name} = {_written(field.default if isinstance(default, dict) else default)}"


def _written(value: Any) -> str:
    """Return a value as TOML; an empty string for a setting without a default."""
    if value is None:
        return '""  # no default'
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(str(value), ensure_ascii=False)


MAKER = Maker("init-config")
Name = Annotated[
    list[str] | None, typer.Argument(metavar="[COMMAND]", help="Command (default: release).")
]
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
    chosen = COMMANDS.get(words[0])
    group = words[0]
    for word in words[1:]:
        if not isinstance(chosen, Group):
            break
        chosen = GROUPS[group].get(word)
        group = f"{group} {word}"
    if not isinstance(chosen, Command) or chosen.name != " ".join(words):
        raise UsageError(f"{' '.join(words)} is not a command", hint="see clinveil --help")
    if chosen.settings is None:
        raise UsageError(
            f"clinveil {' '.join(words)} has no settings", hint="see its --help for its options"
        )
    text = config_text(chosen.name, chosen.settings, takes_config=chosen.takes_config)
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic(out, force=force, maker=MAKER) as part:
        part.write_text(text, encoding="utf-8")
