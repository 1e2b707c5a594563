"""Options of the command line: those of several commands, and those made from fields of
settings.
"""

from __future__ import annotations

import types
from copy import copy
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from clinveil.core import (
    QUIET,
    SEED,
    InputError,
    LabelledNotesSettings,
    Location,
    Setting,
    Settings,
    UsageError,
    as_location,
    group,
    read_findings,
    refuse_remote,
)

if TYPE_CHECKING:
    _Place = Location
else:
    _Place = Path  # Typer accepts no unions; `place` makes the value


def _findings_file(target: str | None) -> str | None:
    """Check, before any work, that findings can be written to a file. Raises UsageError."""
    if target in (None, "", "-"):
        return target or None
    path = Path(target)
    if not path.absolute().parent.is_dir():
        raise UsageError(
            "the folder does not exist", where=f"--json {path.name}", hint="create it first"
        )
    if path.exists():
        try:
            read_findings(path)
        except (InputError, OSError):
            hint = "choose another file"
            raise UsageError(
                "the file exists and does not contain findings", where=path.name, hint=hint
            ) from None
    return target


def _here(path: Path | None) -> Path | None:
    return path and refuse_remote(path)


WIDTH = 80  # of a help text
_JSON = typer.Option(
    "--json", help="Write findings as JSON to a file (- for stdout).", callback=_findings_file
)
JsonOut = Annotated[str | None, _JSON]
_NOTES = "Notes: a file, a folder, a quoted pattern of part files, or a URL (s3://…)."
Notes = Annotated[
    _Place, typer.Argument(help=_NOTES, parser=as_location, metavar="NOTES", show_default=False)
]
NotesOrQuery = Annotated[
    _Place, typer.Argument(help=_NOTES, parser=as_location, metavar="NOTES", show_default=False)
]
"""The notes of a command that also takes `--from-sql`; the function always gets a path
(`from_sql.py`).
"""
Out = Annotated[
    Path,
    typer.Option(
        "-o", "--out", help="Where to write the result.", callback=_here, show_default=False
    ),
]
OutOrPlan = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", help="Folder of the release (default: print the plan).", callback=_here
    ),
]
_VECTORS = "Use these word vectors (default: train them on NOTES)."
VectorsGiven = Annotated[Path | None, typer.Option("--vectors", help=_VECTORS)]
Vault = Annotated[
    Path | None,
    typer.Option("--vault", help="Folder for secret files (default: OUT.vault).", callback=_here),
]


def config_option(shipped: tuple[str, ...]) -> Any:
    """Return the option `--config` of a command with these shipped files."""
    file = f"a TOML file, or {' or '.join(shipped)}" if shipped else "a TOML file"
    help = f"Read settings from {file}; --set and flags override it."
    return Annotated[Path | None, typer.Option("--config", help=help)]


_SET = "Set any other setting (clinveil init-config lists them); repeatable."
SetKeys = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_SET)]


class MeasureSettings(Settings):
    """Settings of every command that reads notes and returns findings."""

    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET


def in_panel(parameter: Parameter, panel: str) -> Parameter:
    """Return an option that is shown in a panel of the help page."""
    kind, *details = get_args(parameter.annotation)
    shown = copy(details[-1])
    shown.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[kind, shown])


def option(setting: Setting) -> Any:
    """Return the option of a setting."""
    field = setting.field
    members = setting.declared.members
    single = members is not None and not setting.takes_several
    kind: Any = Literal[members.names()] if members and single else _flag_type(field.annotation)
    default = field.default
    flags = [
        f"{setting.flag}/--no-{setting.flag.removeprefix('--')}"
        if kind is bool and default is True
        else setting.flag,
        *setting.declared.aliases,
        setting.declared.short,
    ]
    shown: str | bool = (
        "on" if default is True else False if default in (None, (), False, "") else str(default)
    )
    help = field.description or ""
    if members is not None and setting.takes_several:
        names = f" One or more of {', '.join(members.names())}."
        help += names if len(help + names) <= WIDTH else ""
    return Annotated[kind | None, typer.Option(*filter(None, flags), help=help, show_default=shown)]


def _flag_type(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return _flag_type(next(a for a in get_args(annotation) if a is not type(None)))
    if get_origin(annotation) is Literal:
        return annotation
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]  # type: ignore[misc]
    return annotation if annotation in (int, float, bool, Path) else str
