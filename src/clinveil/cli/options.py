"""Command-line flags built from a settings model, so that file, flags and manifest are one thing."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import read_findings
from clinveil.core.settings import Settings, load_settings

Out = Annotated[Path, typer.Option("-o", "--out", help="Where the result goes.", show_default=False)]


def _findings_file(target: str | None) -> str | None:
    """Before any work: a place for findings, and nothing of somebody else's there. Raises UsageError."""
    if target in (None, "", "-"):
        return target or None
    path = Path(target)
    if not path.absolute().parent.is_dir():
        raise UsageError("its folder is not there", where=f"--json {path.name}", remedy="make it first")
    if path.exists():
        try:
            read_findings(path)
        except (InputError, OSError):
            remedy = "name another place"
            raise UsageError("is there already and holds no findings", where=path.name, remedy=remedy) from None
    return target


_JSON = typer.Option("--json", help="Write findings as JSON to a file, or - for stdout.", callback=_findings_file)
JsonOut = Annotated[str | None, _JSON]
Vault = Annotated[Path | None, typer.Option("--vault", help="Folder of secrets (default: OUT.vault).")]
Config = Annotated[Path | None, typer.Option("--config", help="TOML file of the same names; flags win.")]


def settings_command(
    app: typer.Typer, model: type[Settings], *, name: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command: its first parameter gets the settings, which become flags.

    Args:
        app: the command's Typer app.
        model: the settings; every field becomes a flag of the same name.
        name: the command's name.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        fields = model.flags()

        def command(**arguments: Any) -> None:
            flags = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items() if k in fields}
            flags = {k: v for k, v in flags.items() if v not in (None, ())}
            rest = {k: v for k, v in arguments.items() if k not in fields}
            config = rest.pop("config", None)
            function(load_settings(model, flags, config), **rest)

        keyword = inspect.Parameter.KEYWORD_ONLY
        extra = [inspect.Parameter("config", keyword, default=None, annotation=Config)]
        extra += [inspect.Parameter(k, keyword, default=None, annotation=_option(k, f)) for k, f in fields.items()]
        command.__signature__ = inspect.Signature([p.replace(kind=keyword) for p in own] + extra)  # type: ignore[attr-defined]
        command.__doc__ = function.__doc__
        app.command(name)(command)
        return function

    return register


def _option(name: str, field: FieldInfo) -> Any:
    kind = _flag_type(field.annotation)
    short = (field.json_schema_extra or {}).get("short") if isinstance(field.json_schema_extra, dict) else None
    flags = [f"--{name.replace('_', '-')}" + (f"/--no-{name.replace('_', '-')}" if kind is bool else "")]
    if short:
        flags.append(str(short))
    default = field.default
    shown = False if default in (None, (), False) else str(default)
    option = typer.Option(
        *flags,
        help=field.description,
        show_default="on" if default is True else shown,
    )
    return Annotated[kind | None, option]


def _flag_type(annotation: Any) -> Any:
    """The type that the command line takes for a field."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _flag_type(next(a for a in get_args(annotation) if a is not type(None)))
    if get_origin(annotation) is Literal:
        return annotation
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]  # type: ignore[misc]
    return annotation if annotation in (int, float, bool, Path) else str
