"""Read settings from a TOML file, from `--set key=value` and from flags, with one line for each
mistake.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from clinveil.core.errors import UsageError
from clinveil.core.settings import Settings, Values, groups_of

S = TypeVar("S", bound=Settings)
SIMILAR = 0.75
"""Similarity of a mistyped name, from 0 to 1; below, a suggestion is rather wrong."""


def load_settings(
    model: type[S],
    given: Mapping[str, Any],
    config: Path | None = None,
    sets: Sequence[str] = (),
    *,
    option: str = "--set",
) -> S:
    """Return settings from a TOML file, from `--set key=value`, and from given values; a later
    source wins.

    Args:
        given: values by name, `vectors.dim` or nested; None for those that were not given.
        config: a file, or the name of one of `config_names`.
        option: the option of `sets`, for messages.

    Raises UsageError with one line for the first mistake.
    """
    file = _read_toml(model, config, _config_text(model, config)) if config else {}
    typed: Values = {}
    for text in sets:  # values of one list add up
        name, value = _assignment(model, text, option)
        if name in typed and _accepts_list(model.declared()[name].field.annotation):
            value = (*_several(typed[name]), *_several(value))
        typed[name] = value
    last = {name: value for name, value in flattened(model, given).items() if value is not None}
    values = {**file, **typed, **last}
    later = typed.keys() | last.keys()
    where = {name: config.name for name in file if name not in later} if config else {}
    model.refuse_given(values, where)
    try:
        return model.model_validate(_nested(values))
    except ValidationError as error:
        raise UsageError(_first_mistake(error, model)) from None


def config_names(model: type[Settings]) -> tuple[str, ...]:
    """Return the names of the TOML files that ship with the package for a command."""
    if not model.CONFIGS:
        return ()
    names = (file.name for file in files(model.CONFIGS).iterdir())
    return tuple(sorted(Path(name).stem for name in names if name.endswith(".toml")))


def flattened(
    model: type[Settings], values: Mapping[str, Any], where: str = "", prefix: str = ""
) -> Values:
    """Return values by the names of settings, `vectors.dim`; those of groups may be nested.

    A group may also be an object of its class. Raises UsageError for an unknown name.

    Args:
        where: source of the values, for messages.
    """
    if not isinstance(values, Mapping):
        raise UsageError(
            "settings: a value of the wrong type", hint='pass a dictionary: {"vectors": {"dim": 9}}'
        )
    flat: Values = {}
    for written, value in values.items():
        name = f"{prefix}{written}"
        if _group_at(model, name) is None:
            refuse_unknown(model, name, where)
            flat[name] = value
        elif isinstance(value, Settings):
            given = value.given_values()
            flat |= {f"{name}.{inner}": inner_value for inner, inner_value in given.items()}
        elif isinstance(value, Mapping):
            flat |= flattened(model, value, where, f"{name}.")
        elif value is not None:
            raise _no_value_of_group(model, name, where)
    return flat


_FORMER = {
    "identifiers.decisions": "use identifiers.reviewed=FOLDER, the folder that contains review/",
}
"""Hints for settings that have another name now."""


def refuse_unknown(model: type[Settings], name: str, where: str = "") -> None:
    """Raise UsageError, with the right name if there is a similar one, for an unknown setting."""
    names = model.declared()
    if name in names:
        return
    last = name.rpartition(".")[2]
    same = [
        one.name
        for one in names.values()
        if last in (one.last, one.flag.removeprefix("--").replace("-", "_"))
    ]
    if name in _FORMER:
        hint = _FORMER[name]
    elif same:
        hint = f"its name is {' or '.join(same)}"
    elif near := get_close_matches(name, names, n=1, cutoff=SIMILAR) or _similar(last, names):
        hint = f"did you mean {near[0]}?"
    else:
        hint = "clinveil init-config lists the settings of a command"
    raise UsageError(f"this command has no setting {name}", where=where, hint=hint)


def _similar(last: str, names: Iterable[str]) -> list[str]:
    """Return the names whose last part is similar."""
    by_last = {name.rpartition(".")[2]: name for name in names}
    return [by_last[near] for near in get_close_matches(last, by_last, n=1, cutoff=SIMILAR)]


def _group_at(model: type[Settings], name: str) -> type[Settings] | None:
    """Return the class of a group by its name; None for any other name."""
    inner: type[Settings] | None = model
    for part in name.split("."):
        inner = groups_of(inner).get(part) if inner else None
    return inner


def _no_value_of_group(model: type[Settings], name: str, where: str) -> UsageError:
    first = next(one for one in model.declared() if one.startswith(f"{name}."))
    return UsageError(f"{name} is a group of settings", where=where, hint=f"set {first} and others")


def _nested(values: Mapping[str, Any]) -> Values:
    """Return values by name as nested dictionaries."""
    nested: Values = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        inner = nested
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


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
            "the file does not exist or cannot be read", where=config.name, hint=hint
        ) from None


def _accepts_list(annotation: Any) -> bool:
    """Return whether a field may have a list of values."""
    return tuple in (get_origin(annotation), *map(get_origin, get_args(annotation)))


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _first_mistake(error: ValidationError, model: type[Settings]) -> str:
    """Return one line for the first mistake: the name of the setting, and what is wrong."""
    first = error.errors(include_input=False, include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] in _MISTAKES:
        message = _MISTAKES[first["type"]].format_map(first.get("ctx", {}))
    name = ""
    for part in first["loc"]:  # after the setting, a location has its type or position
        longer = f"{name}.{part}".lstrip(".")
        if longer not in model.declared() and _group_at(model, longer) is None:
            break
        name = longer
    return f"{name}: {message}" if name else message


_MISTAKES = {
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be below {lt}",
    "literal_error": "must be {expected}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
}
"""Pydantic's type of a mistake -> what we say, with the values of its context."""


def _assignment(model: type[Settings], text: str, option: str) -> tuple[str, Any]:
    written, sign, value_text = (part.strip() for part in text.partition("="))
    if not sign:
        raise UsageError(f"{option} {written}: no value", hint="write KEY=VALUE")
    name = written.replace("-", "_")
    if _group_at(model, name) is not None:
        raise _no_value_of_group(model, name, option)
    refuse_unknown(model, name, option)
    try:
        value = tomllib.loads(f"value = {value_text}")["value"]
    except (ValueError, KeyError):
        value = _without_zero(value_text)
    for read in (value, value_text, [value], [value_text]):
        if _fits(read, model.declared()[name].field.annotation):
            return name, tuple(read) if isinstance(read, list) else read
    raise UsageError(f"{option} {name}: {_KIND}", hint=_kind_hint(model, name))


def _without_zero(text: str) -> float | str:
    """Return the number of a text such as `.5`, which TOML refuses; any other text as it is."""
    try:
        return float(text) if text.startswith((".", "-.")) else text
    except ValueError:
        return text


def _read_toml(model: type[Settings], config: Path, text: str) -> Values:
    """Return the values of a file by name. Raises UsageError that names the setting."""
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        where = f"{config.name}, line {found[1]}" if found else config.name
        hint = "write text in quotes, and .5 as 0.5"
        raise UsageError("not TOML", where=where, hint=hint) from None
    values = flattened(model, read, config.name)
    for name, value in [*values.items()]:
        field = model.declared()[name].field
        if value == "" and field.default in (None, ""):  # as init-config writes
            del values[name]
        elif not _fits(value, field.annotation):
            raise UsageError(f"{name}: {_KIND}", where=config.name, hint=_kind_hint(model, name))
    return values


_KIND = "a value of the wrong type"
_WANTED = {int: "a whole number", float: "a number", bool: "true or false", NoneType: ""}


def _kind_hint(model: type[Settings], name: str) -> str:
    """Return what a setting takes, as a hint."""
    kind = model.declared()[name].field.annotation
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    wanted = [_WANTED[part] for part in parts if part in _WANTED]
    several = "a list" if any(get_origin(part) is tuple for part in parts) else "text"
    named = " or ".join(filter(None, wanted)) or several
    return f"write {named}; clinveil init-config lists the settings with their defaults"


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
