"""Command-line flags built from a settings model, so that file, flags and manifest are one thing."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import read_findings
from clinveil.core.remote import place, refuse_remote
from clinveil.core.settings import flag_name, registry_of


def _findings_file(target: str | None) -> str | None:
    """Before any work: a place for findings, and nothing of somebody else's there. Raises UsageError."""
    if target in (None, "", "-"):
        return target or None
    path = Path(target)
    if not path.absolute().parent.is_dir():
        raise UsageError("its folder is not there", where=f"--json {path.name}", hint="make it first")
    if path.exists():
        try:
            read_findings(path)
        except (InputError, OSError):
            hint = "name another place"
            raise UsageError("is there already and holds no findings", where=path.name, hint=hint) from None
    return target


def _here(path: Path | None) -> Path | None:
    return path and refuse_remote(path)


_JSON = typer.Option("--json", help="Write findings as JSON to a file, or - for stdout.", callback=_findings_file)
JsonOut = Annotated[str | None, _JSON]
_NOTES = "Notes: a file, a folder, a pattern of part files in quotes, or the URL of one (s3://…)."
Notes = Annotated[Path, typer.Argument(help=_NOTES, parser=place, metavar="NOTES", show_default=False)]
NotesOrQuery = Annotated[Path, typer.Argument(help=_NOTES, parser=place, metavar="NOTES", show_default=False)]
"""The notes of a command that also takes `--from-sql`; it gets a path in any case (`from_sql.py`)."""
VectorFile = Annotated[Path, typer.Argument(help="Vectors: a folder of clinveil embed, .vec, .txt or .bin.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="Where the result goes.", callback=_here, show_default=False)]
_OUT = typer.Option("-o", "--out", help="Where the result goes; a URL too.", parser=place, metavar="PLACE")
OutOrStore = Annotated[Path, _OUT]
_VECTORS = "Word vectors to take: a folder of clinveil embed, .vec, .txt or .bin (default: train on NOTES)."
VectorsGiven = Annotated[Path | None, typer.Option("--vectors", help=_VECTORS)]
Vault = Annotated[Path | None, typer.Option("--vault", help="Folder of secrets (default: OUT.vault).", callback=_here)]
Config = Annotated[Path | None, typer.Option("--config", help="TOML file of the same names; flags win.")]


_SET = "Set any other setting, such as --set lm.epochs=5; repeatable. The same keys are read from --config."
SetKeys = Annotated[list[str] | None, typer.Option("--set", metavar="GROUP.KEY=VALUE", help=_SET)]


def option(name: str, field: FieldInfo) -> Any:
    """The flag of a field."""
    kind, dashed, registry = _kind(field), flag_name(name, field).removeprefix("--"), registry_of(field)
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    flags = [
        f"--{dashed}/--no-{dashed}" if kind is bool and not dashed.startswith("no-") else f"--{dashed}",
        *filter(None, [str(extra.get("short", ""))]),
    ]
    default = field.default
    shown: str | bool = "on" if default is True else False if default in (None, (), False) else str(default)
    help = field.description or ""
    if registry is not None and get_origin(field.annotation) is tuple:
        help += f" One or several of {', '.join(registry.names())}."
    return Annotated[kind | None, typer.Option(*flags, help=help, show_default=shown)]


def _kind(field: FieldInfo) -> Any:
    """The type that the command line takes for a field; of a choice the names that there are."""
    registry = registry_of(field)
    if registry is None or get_origin(field.annotation) is tuple:
        return _flag_type(field.annotation)
    return Literal[registry.names()]


def _flag_type(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return _flag_type(next(a for a in get_args(annotation) if a is not type(None)))
    if get_origin(annotation) is Literal:
        return annotation
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]  # type: ignore[misc]
    return annotation if annotation in (int, float, bool, Path) else str
