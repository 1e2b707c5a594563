"""Settings: one Pydantic model is the config file, the flags and the record of a run.

A room's settings live in that room. A command's settings are composed of them: a field that is a `Settings` itself is
a group, whose fields stand flat in the TOML file, among the flags and in the record. Flags that several commands
have are the constants at the end. A field's description is its `--help` text; `short` its one-letter flag.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from clinveil.core.errors import UsageError
from clinveil.core.registry import Registry

S = TypeVar("S", bound="Settings")
Values = dict[str, Any]


def flag(default: Any, help: str, *, short: str = "", **constraints: Any) -> Any:
    """A field that is also a command-line flag; `short` is its one-letter form."""
    return Field(default, description=help, json_schema_extra={"short": short} if short else None, **constraints)


def choice(registry: Registry[Any], default: str | tuple[str, ...], help: str, *, name: str = "") -> Any:
    """A flag that names one implementation of a registry, or several where the field is a tuple.

    Args:
        name: the flag, without dashes, where it differs from the name of the field (a Python keyword, such as `as`).
    """
    extra: Any = {"registry": registry, **({"flag": name} if name else {})}
    return Field(default, description=help, json_schema_extra=extra)


def own_settings(of: str, *, here: tuple[str, ...] = ()) -> Any:
    """A group for the settings of the implementation that the choice `of` names: its `Settings` class, or itself.

    Their flags stand behind the choice, and are refused where another implementation is chosen. What the class of the
    choice has itself is shared by all. `here`: implementations whose settings all stand in that class; they are not
    imported for it.
    """
    return Field(None, json_schema_extra={"settings_of": of, "here": list(here)}, validate_default=False)


def group(kind: type[Settings]) -> Any:
    """A field of a command's settings whose own fields are flags."""
    return Field(default_factory=kind)


def table(kind: type[Settings]) -> Any:
    """A field of a command's settings whose own fields are not flags: a table of the TOML file, and keys of `--set`."""
    return Field(default_factory=kind, json_schema_extra={"table": True})


def flag_name(name: str, field: FieldInfo | None = None) -> str:
    """The command-line flag of a field."""
    return "--" + str((field and _extra(field).get("flag")) or name).replace("_", "-")


class Settings(BaseModel):
    """What all settings share: unknown names are refused, values never show in errors.

    A class of which two groups have a name in common is refused with a ValueError.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a name that stands twice."""
        _refuse_twice(cls, [name for name, _ in _leaves(cls, own=False)])

    @classmethod
    def flags(cls) -> dict[str, FieldInfo]:
        """Every flat name and its field, in order. Imports what choices with settings of their own choose from."""
        leaves = list(_leaves(cls, own=True))
        _refuse_twice(cls, [name for name, _ in leaves])
        return dict(leaves)

    def flat(self, without: Collection[str] = ()) -> Values:
        """Every flat name and its value, ready for JSON: the record of a run, which validates to the same settings.

        A table is one value, a dictionary. Settings of our implementations that were not chosen have their defaults.
        """
        return {name: value for name, value in _values(self, "json") if name not in without}

    def but(self, **changed: Any) -> Self:
        """The same settings with some others, by their flat names."""
        return type(self).model_validate(dict(_values(self, "python")) | changed)

    @classmethod
    def refuse_given(cls, given: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """Raise UsageError for settings that a user gave and that do not belong together; nothing by default.

        Args:
            given: key -> how the user gave it (`--n`, `n in my.toml`). values: all of them, by name.
        """

    @model_validator(mode="before")
    @classmethod
    def _into_groups(cls, values: Any) -> Any:
        return _grouped(cls, dict(values)) if isinstance(values, Mapping) else values


def registry_of(field: FieldInfo) -> Registry[Any] | None:
    """What a choice chooses from; None for other fields."""
    return _extra(field).get("registry")


def _extra(field: FieldInfo) -> Values:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _groups(model: type[Settings], *, tables: bool = False) -> dict[str, type[Settings]]:
    """The groups of a model, or (with `tables`) its tables."""
    fields = {name: field for name, field in model.model_fields.items() if bool(_extra(field).get("table")) == tables}
    kinds = {name: field.annotation for name, field in fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Settings)}


def _choices(model: type[Settings]) -> dict[str, str]:
    """Each choice that has a group for the settings of its implementations, and that group."""
    of = {name: _extra(field).get("settings_of") for name, field in model.model_fields.items()}
    return {choice: name for name, choice in of.items() if choice}


def _settings_of(model: type[Settings], choice: str, name: str) -> type[Settings]:
    """The settings that one implementation has beyond those of the model; the empty class where it has none."""
    registry = registry_of(model.model_fields[choice])
    if registry is None:
        raise TypeError(f"{choice} of {model.__name__} is no choice")
    if name in _extra(model.model_fields[_choices(model)[choice]]).get("here", ()):
        return Settings
    made = registry.get(name)
    own = made if isinstance(made, type) and issubclass(made, Settings) else getattr(made, "Settings", None)
    return _beyond(own or Settings, frozenset(model.model_fields))


@cache
def _beyond(own: type[Settings], shared: frozenset[str]) -> type[Settings]:
    """A settings class without the fields of some names."""
    if not shared & own.model_fields.keys():
        return own
    kept: Any = {name: (f.annotation, f) for name, f in own.model_fields.items() if name not in shared}
    return create_model(own.__name__, __base__=Settings, **kept)


def _behind(model: type[Settings], choice: str, *, ours: bool = False) -> dict[str, FieldInfo]:
    """The flags of all implementations that a choice has, or of ours; those that several share stand once."""
    registry = registry_of(model.model_fields[choice])
    names = [name for name in registry.names() if not ours or name in registry.ours()] if registry else []
    return {leaf: field for name in names for leaf, field in _settings_of(model, choice, name).flags().items()}


def _leaves(model: type[Settings], *, own: bool) -> Iterator[tuple[str, FieldInfo]]:
    """Flat names and fields; with `own` those of the implementations of choices too."""
    groups, choices = _groups(model), _choices(model)
    for name, field in model.model_fields.items():
        if _extra(field).get("table"):
            continue
        if name not in groups:
            yield name, field
        elif name not in choices.values():
            yield from _leaves(groups[name], own=own)
        if own and name in choices:
            yield from _behind(model, name).items()


def _refuse_twice(model: type[Settings], names: list[str]) -> None:
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{model.__name__} has {', '.join(sorted(twice))} twice")


def _values(settings: Settings, mode: Literal["json", "python"]) -> Iterator[tuple[str, Any]]:
    """Flat names and values, in the order of the flags."""
    model = type(settings)
    groups, choices = _groups(model), _choices(model)
    plain = settings.model_dump(mode="json", exclude={*groups}) if mode == "json" else dict(settings)
    for name in model.model_fields:
        if name not in groups:
            yield name, plain[name]
        elif name not in choices.values():
            yield from _values(getattr(settings, name), mode)
        if name in choices:
            others = {leaf: field.default for leaf, field in _behind(model, name, ours=True).items()}
            yield from (others | dict(_values(getattr(settings, choices[name]), mode))).items()


def _grouped(model: type[Settings], values: Values) -> Values:
    """Flat values, with those of each group together. Raises ValueError for a name that no choice has."""
    choices = _choices(model)
    for name, field in model.model_fields.items():
        _refuse_unknown(flag_name(name, field), values.get(name, ()), registry_of(field))
    for name, group in _groups(model).items():
        if name not in choices.values():
            _gather(name, group, values)
    for choice, name in choices.items():
        chosen = values.get(choice, model.model_fields[choice].default)
        if isinstance(chosen, str):
            group = _settings_of(model, choice, chosen)
            _refuse_others(model, choice, values, group)
            _gather(name, group, values)
            values[name] = group.model_validate(values.get(name, {}))
    return values


def _gather(name: str, group: type[Settings], values: Values) -> None:
    """Put the flat values of a group under its name, next to what is there."""
    own = {leaf: values.pop(leaf) for leaf in group.flags() if leaf in values}
    given = values.get(name)
    if isinstance(given, Settings):
        values[name] = given.but(**own) if own else given
    elif given or own:
        values[name] = {**(given or {}), **own}


def _refuse_unknown(flag: str, given: Any, registry: Registry[Any] | None) -> None:
    names = (given,) if isinstance(given, str) else given
    if registry and isinstance(names, list | tuple) and not all(one in registry for one in names):
        raise ValueError(f"{flag}: one of {', '.join(registry.names())}")


def _refuse_others(model: type[Settings], choice: str, values: Values, own: type[Settings]) -> None:
    """Take out what other implementations have, if it is their default; raise ValueError if it is not."""
    registry = registry_of(model.model_fields[choice])
    assert registry is not None
    for leaf, field in _behind(model, choice).items() if values.keys() - model.model_fields.keys() else ():
        if leaf in own.flags() or leaf not in values:
            continue
        if values.pop(leaf) != field.default:
            having = [name for name in registry.names() if leaf in _settings_of(model, choice, name).flags()]
            raise ValueError(f"--{leaf.replace('_', '-')} is of --{choice.replace('_', '-')} {' or '.join(having)}")


def load_settings(model: type[S], flags: Mapping[str, Any], config: Path | None = None, sets: Sequence[str] = ()) -> S:
    """Settings from a TOML file, from `--set group.key=value`, and from flags; a later source wins.

    Raises UsageError with one line for the first mistake.
    """
    keys = _keys(model)
    file = _read_toml(keys, config) if config else {}
    typed = dict(_assigned(keys, text) for text in sets)
    given = {name: value for name, value in flags.items() if value is not None}
    _refuse_foreign(keys, given)
    sources = {name: f"{name} in {config.name}" for name in file} if config else {}
    sources |= {name: f"--set {name}" for name in typed}
    sources |= {name: flag_name(name, keys[name][2]) for name in given}
    values: Values = {}
    for name, value in {**file, **typed, **given}.items():
        into, leaf, _ = keys[name]
        (values.setdefault(into, {}) if into and isinstance(values.get(into, {}), dict) else values)[leaf] = value
    model.refuse_given({name: sources[name] for name in sources}, values)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError(_first_mistake(error, keys)) from None


def _first_mistake(error: ValidationError, keys: Mapping[str, Key]) -> str:
    """One line for the first mistake: the flag or the key that it is about, and what is wrong."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    location = [str(name) for name in first["loc"]]
    if first["type"] == "extra_forbidden":
        return f"unknown setting {'.'.join(location)}"
    message = first["msg"].removeprefix("Value error, ")  # a rule over several settings names none
    if (dotted := ".".join(location[:2])) in keys and keys[dotted][0]:
        return f"{dotted}: {message}"
    if location and location[0] in {into for into, _, _ in keys.values()}:  # a rule within a table
        return message.replace("--", f"{location[0]}.")
    names = [name for name in location if name in keys]
    return f"{flag_name(names[0], keys[names[0]][2])}: {message}" if names else message


Key = tuple[str, str, FieldInfo]
"""Where the value of a key belongs: the table ("" for none), the name there, and its field."""


def _keys(model: type[Settings]) -> dict[str, Key]:
    """All names that a file or `--set` may use: flat ones, and `group.name` of groups and tables."""
    keys: dict[str, Key] = {name: ("", name, field) for name, field in model.flags().items()}
    for group, kind in _groups(model).items():
        if group not in _choices(model).values():
            keys |= {f"{group}.{name}": ("", name, field) for name, field in kind.flags().items()}
    for table, kind in _groups(model, tables=True).items():
        keys |= {f"{table}.{name}": (table, name, field) for name, field in kind.flags().items()}
        if table not in keys:  # in Python a table is one value
            keys[table] = ("", table, model.model_fields[table])
    return keys


def _refuse_foreign(keys: Mapping[str, Key], names: Iterable[str], where: str = "") -> None:
    for name in names:
        if name not in keys:
            near = get_close_matches(name, keys, n=1) or [key for key in keys if key.endswith(f".{name}")]
            hint = f"did you mean {near[0] if '.' in near[0] else near[0].replace('_', '-')}?" if near else ""
            shown = name if "." in name else name.replace("_", "-")
            raise UsageError(
                f"this command has no setting {shown}", where=where, hint=hint or "see --help for its settings"
            )


def _assigned(keys: Mapping[str, Key], text: str) -> tuple[str, Any]:
    """The key and the value of one `--set group.key=value`. Raises UsageError, which names the key."""
    name, sign, written = (part.strip() for part in text.partition("="))
    if not sign:
        raise UsageError(f"--set {name}: no value", hint="write --set group.key=value")
    name = name.replace("-", "_")
    _refuse_foreign(keys, [name], "--set")
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except (ValueError, KeyError):
        value = written
    for read in (value, written, [written]):
        if _fits(read, keys[name][2].annotation):
            return name, tuple(read) if isinstance(read, list) else read
    raise UsageError(f"--set {name}: a value of the wrong kind", hint="see --help for it")


def _read_toml(keys: Mapping[str, Key], config: Path) -> Values:
    """A file's values by key, each of the kind that the model wants. Raises UsageError, which names the key."""
    try:
        read = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UsageError("is not there or is no TOML file", where=config.name) from None
    values: Values = {}
    for name, value in read.items():
        sections = {key.partition(".")[0] for key in keys if "." in key}
        nested = isinstance(value, dict) and name in sections
        values |= {f"{name}.{leaf}": inner for leaf, inner in value.items()} if nested else {name: value}
    _refuse_foreign(keys, values, config.name)
    for name, value in values.items():
        if not _fits(value, keys[name][2].annotation):
            raise UsageError(f"{name}: a value of the wrong kind", where=config.name, hint="see --help for it")
    return values


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value is of a field's kind: a truth value is no number, a fraction no count, a table nothing."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if isinstance(kind, type) and issubclass(kind, BaseModel):  # written in one word, as a range of N is
        return type(value) in (int, str)
    if kind in (int, bool, NoneType):
        return type(value) is kind
    return type(value) in (int, float) if kind is float else isinstance(value, str)


# Flags of many commands. A command has those that it names: `force: bool = FORCE`.
WORKERS = flag(2, "How many workers; the output is the same for any number.", ge=1, le=1024)
SEED = flag(None, "A public seed, for tests and studies: what it makes is not for release.", ge=0, le=2**63 - 1)
QUIET = flag(False, "No progress on stderr.", short="-q")
FORCE = flag(False, "Replace an existing OUT (the old one is kept aside until success).")
LABEL = flag((), "Column to keep and to measure utility on; repeatable.")
KEEP = flag((), "Column to pass through unchanged; repeatable. All others are dropped.")
DEVICE = flag("cpu", "cpu, cuda or cuda:1.")


class NotesSettings(Settings):
    """How notes are read."""

    text: str | None = flag(None, "Column of the note text (guessed where the name is usual).", min_length=1)
    id: str | None = flag(None, "Column of the note id, unique (guessed).", min_length=1)
    patient: str | None = flag(
        None, "Column of the patient id (guessed; without one each note is its own patient).", min_length=1
    )
    preset: Literal["auto", "none", "mimic3", "mimic4", "omop"] = flag("auto", "Column preset of a known source.")
    encoding: str = flag("utf-8", "Character encoding of text files.")
    max_note_bytes: int = flag(
        10_000_000, "A note of more bytes is refused: a damaged file, or a bomb.", ge=1_000, le=2**31 - 1
    )
