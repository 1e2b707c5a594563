"""Read settings from a TOML file, from `--set key=value` and from flags, with one line for each
mistake.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from clinveil.core.errors import UsageError
from clinveil.core.settings import Settings, Values, extra_of, flag_name, sections

S = TypeVar("S", bound=Settings)


def load_settings(
    model: type[S], flags: Mapping[str, Any], config: Path | None = None, sets: Sequence[str] = ()
) -> S:
    """Return settings from a TOML file, from `--set key=value`, and from flags; a later source
    wins.

    Args:
        config: a file, or the name of one of `config_names`.

    Raises UsageError with one line for the first mistake.
    """
    keys = keys_of(model)
    file = _read_toml(keys, config, _config_text(model, config)) if config else {}
    typed: Values = {}
    for text in sets:  # values of one list add up
        name, value = _assignment(keys, text)
        if name in typed and _takes_several(keys[name][2].annotation):
            value = (*_several(typed[name]), *_several(value))
        typed[name] = value
    given = {name: value for name, value in flags.items() if value is not None}
    _refuse_foreign(keys, given)
    sources = {name: f"{name} in {config.name}" for name in file} if config else {}
    sources |= {name: f"--set {name}" for name in typed}
    sources |= {name: flag_name(name, keys[name][2]) for name in given}
    values: Values = {}
    for name, value in (*file.items(), *typed.items(), *given.items()):
        into, leaf, _ = keys[name]
        if name in sections(model, tables=True) and not isinstance(value, Mapping | Settings):
            raise UsageError(
                f"{sources[name]} is a table, not a value", hint=f"set its keys, such as {name}.KEY"
            )
        (
            values.setdefault(into, {})
            if into and isinstance(values.get(into, {}), dict)
            else values
        )[leaf] = value
    model.refuse_given(sources, values)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError(_first_mistake(error, keys)) from None


def config_names(model: type[Settings]) -> tuple[str, ...]:
    """Return the names of the TOML files that ship with the package for a command."""
    if not model.CONFIGS:
        return ()
    names = (file.name for file in files(model.CONFIGS).iterdir())
    return tuple(sorted(Path(name).stem for name in names if name.endswith(".toml")))


def _config_text(model: type[Settings], config: Path) -> str:
    """Return the text of a file, or of the shipped file of this name."""
    shipped = config_names(model)
    try:
        if not config.exists() and str(config) in shipped:
            return files(model.CONFIGS).joinpath(f"{config}.toml").read_text(encoding="utf-8")
        return config.read_text(encoding="utf-8")
    except (OSError, ValueError):
        hint = f"pass a file, or one of {', '.join(shipped)}" if shipped else ""
        raise UsageError(
            "the file does not exist or is not TOML", where=config.name, hint=hint
        ) from None


def _takes_several(annotation: Any) -> bool:
    """Return whether a field may have a list of values."""
    return tuple in (get_origin(annotation), *map(get_origin, get_args(annotation)))


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _first_mistake(error: ValidationError, keys: Mapping[str, Key]) -> str:
    """Return one line for the first mistake: the flag or the key, and what is wrong."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    location = [str(name) for name in first["loc"]]
    if first["type"] == "extra_forbidden":
        return f"unknown setting {'.'.join(location)}"
    # A rule over several settings has no location.
    message = first["msg"].removeprefix("Value error, ")
    if (dotted := ".".join(location[:2])) in keys and keys[dotted][0]:
        return f"{dotted}: {message}"
    if location and location[0] in {into for into, _, _ in keys.values()}:  # a rule within a table
        return message.replace("--", f"{location[0]}.")
    names = [name for name in location if name in keys]
    return f"{flag_name(names[0], keys[names[0]][2])}: {message}" if names else message


Key = tuple[str, str, FieldInfo]
"""Where the value of a key is stored: the table ("" for none), the name in it, and its field."""


def keys_of(model: type[Settings]) -> dict[str, Key]:
    """Return all keys that a file or `--set` may use: names, `group.name`, `table.name`, and names
    of flags.
    """
    keys: dict[str, Key] = {name: ("", name, field) for name, field in model.flags().items()}
    for group, kind in sections(model).items():
        keys |= {f"{group}.{name}": ("", name, field) for name, field in kind.flags().items()}
    for table, kind in sections(model, tables=True).items():
        keys |= {f"{table}.{name}": (table, name, field) for name, field in kind.flags().items()}
        if table not in keys:  # in Python a table is one value
            keys[table] = ("", table, model.model_fields[table])
    for name, key in [*keys.items()]:
        if other := extra_of(key[2]).get("flag"):
            keys[f"{name.rpartition('.')[0]}.{other}".lstrip(".")] = key
    return keys


def _named(keys: Mapping[str, Key], name: str, where: str) -> str:
    """Return the name of a key's field (`kind` for `as`). Raises UsageError for an unknown key."""
    _refuse_foreign(keys, [name], where)
    group, dot, _ = name.rpartition(".")
    return f"{group}{dot}{keys[name][1]}"


def _refuse_foreign(keys: Mapping[str, Key], names: Iterable[str], where: str = "") -> None:
    for name in names:
        if name not in keys:
            near = get_close_matches(name, keys, n=1) or [
                key for key in keys if key.endswith(f".{name}")
            ]
            hint = (
                f"did you mean {near[0]}?"
                if near
                else "clinveil init-config lists the settings of a command"
            )
            raise UsageError(f"this command has no setting {name}", where=where, hint=hint)


def _assignment(keys: Mapping[str, Key], text: str) -> tuple[str, Any]:
    name, sign, written = (part.strip() for part in text.partition("="))
    if not sign:
        raise UsageError(f"--set {name}: no value", hint="write --set key=value")
    name = _named(keys, name.replace("-", "_"), "--set")
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except (ValueError, KeyError):
        value = written
    for read in (value, written, [value], [written]):
        if _fits(read, keys[name][2].annotation):
            return name, tuple(read) if isinstance(read, list) else read
    raise UsageError(f"--set {name}: {_KIND}", hint=_KIND_HINT)


def _read_toml(keys: Mapping[str, Key], config: Path, text: str) -> Values:
    """Return key -> value of a file. Raises UsageError that names the key."""
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError):
        raise UsageError("the file does not exist or is not TOML", where=config.name) from None
    values: Values = {}
    nests = {key.partition(".")[0] for key in keys if "." in key}
    for name, value in read.items():
        nested = isinstance(value, dict) and name in nests
        values |= (
            {f"{name}.{leaf}": inner for leaf, inner in value.items()} if nested else {name: value}
        )
    named = {name: _named(keys, name, config.name) for name in values}
    stored = {name: keys[key][:2] for name, key in named.items()}
    if twice := [name for name, place in stored.items() if [*stored.values()].count(place) > 1]:
        raise UsageError(
            f"{' and '.join(twice)} are the same setting",
            where=config.name,
            hint="keep one of them",
        )
    values = {named[name]: value for name, value in values.items()}
    for name, value in values.items():
        if not _fits(value, keys[name][2].annotation):
            raise UsageError(f"{name}: {_KIND}", where=config.name, hint=_KIND_HINT)
    return values


_KIND = "a value of the wrong type"
_KIND_HINT = "clinveil init-config lists the settings with their defaults"


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a TOML value has a field's type; a Boolean is not a number, and a table fits
    no field.
    """
    origin = get_origin(kind)
    parts = get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if isinstance(kind, type) and issubclass(kind, BaseModel):  # such as the range 3-14
        return type(value) in (int, str)
    if kind in (int, bool, NoneType):
        return type(value) is kind
    return type(value) in (int, float) if kind is float else isinstance(value, str)
