"""`clinveil init-config`: Write a commented TOML file with every setting of a command."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.cli.command import Command, Run, command
from clinveil.cli.groups import COMMANDS, Group
from clinveil.core import Maker, Setting, Settings, UsageError, atomic, config_names
from clinveil.releases import DESCRIPTIONS, ReleaseSettings

WIDTH = 100


def config_text(
    command: str, model: type[Settings], *, takes_config: bool = True, kind: str = ""
) -> str:
    """Return the TOML file of a command's settings; `--config` accepts it as it is, and it changes
    nothing.

    Args:
        kind: of release; only its settings are written, and the file names it.
    """
    named = f" for kind {kind}" if kind else ""
    head = [f"# Settings of clinveil {command}{named}, with their defaults."]
    if takes_config:
        head += [
            "# To change a setting, remove the # of its line and pass this file with --config.",
            "#",
        ]
        head += ["# Settings are also keys of --set, with their section: --set SECTION.KEY=VALUE."]
        if shipped := config_names(model):
            head.append(f"# Shipped with the package: --config {' and --config '.join(shipped)}.")
    else:
        head += ["# To change a setting, pass --set KEY=VALUE."]
    if model is ReleaseSettings and not kind:
        kinds = " or ".join(DESCRIPTIONS)
        head.append(f"# The settings of one kind: clinveil init-config release {kinds}.")
    return "\n".join([*head, *_lines(model, kind)]) + "\n"


def _lines(model: type[Settings], kind: str) -> Iterator[str]:
    record = model().record()
    sections: dict[str, list[Setting]] = {}
    declared = ReleaseSettings().with_kind(kind).of_kind() if kind else model.declared().values()
    for one in declared:
        sections.setdefault(one.name.rpartition(".")[0], []).append(one)
    for title, settings in sorted(sections.items(), key=lambda item: item[0] != ""):
        if title:
            yield from ("", f"[{title}]")
        for one in settings:
            remark = "" if kind else model.remark(one.name)
            if kind and one.name == "kind":
                yield from ("", f"kind = {_written(kind)}")
            else:
                yield from _setting(one, record[one.name], remark)


def _setting(setting: Setting, default: Any, remark: str) -> Iterator[str]:
    members = setting.declared.members
    names = f" One of {', '.join(members.names())}." if members else ""
    about = f"{setting.field.description}{names}{_REMARKS.get(setting.affects, '')} {remark}"
    yield ""
    yield from (f"# {line}" for line in textwrap.wrap(about, WIDTH - 2))
    yield f"# {setting.last} = {_written(default)}"


_REMARKS = {"call": " It does not change the output."}


def _written(value: Any) -> str:
    """Return a value as TOML; an empty string for a setting without a default."""
    if value is None or value == "":
        return '""  # no default'
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(str(value), ensure_ascii=False)


MAKER = Maker("init-config")
LIMITS = "limits"
Name = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[COMMAND]",
        help="Command (default: release) with its group or kind, or limits.",
    ),
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
    text = _file_text(name or ["release"])
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic(out, force=force, maker=MAKER) as part:
        part.write_text(text, encoding="utf-8")


def _file_text(words: list[str]) -> str:
    """Return the file of a command's settings, or of the limits of a release ("limits")."""
    if words == [LIMITS]:
        from clinveil.report import limits_file

        return limits_file()
    kind = words.pop() if len(words) == 2 and words[0] == "release" else ""
    if kind and kind not in DESCRIPTIONS:
        raise UsageError(
            f"{kind} is not a kind of release", hint=f"one of {', '.join(DESCRIPTIONS)}"
        )
    chosen = COMMANDS.get(words[0])
    if isinstance(chosen, Group) and len(words) > 1:
        chosen = chosen.members.get(words[1])
    if not isinstance(chosen, Command) or chosen.name != " ".join(words):
        raise UsageError(f"{' '.join(words)} is not a command", hint="see clinveil --help")
    if chosen.settings is None:
        raise UsageError(
            f"clinveil {' '.join(words)} has no settings", hint="see its --help for its options"
        )
    return config_text(chosen.name, chosen.settings, takes_config=chosen.takes_config, kind=kind)
