"""Settings: one Pydantic model is the config file, the flags and the record of a run.

A room's settings live in that room. A command's settings are composed of them: a field that is a `Settings` itself is
a group, whose fields stand flat in the TOML file, among the flags and in the record. Flags that several commands
have are the constants at the end. A field's description is its `--help` text; `short` its one-letter flag.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
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


def choice(registry: Registry[Any], default: str | tuple[str, ...], help: str) -> Any:
    """A flag that names one implementation of a registry, or several where the field is a tuple."""
    return Field(default, description=help, json_schema_extra={"registry": registry})  # type: ignore[dict-item]


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

        Settings of our implementations that were not chosen stand there with their defaults.
        """
        return {name: value for name, value in _values(self, "json") if name not in without}

    def but(self, **changed: Any) -> Self:
        """The same settings with some others, by their flat names."""
        return type(self).model_validate(dict(_values(self, "python")) | changed)

    @model_validator(mode="before")
    @classmethod
    def _into_groups(cls, values: Any) -> Any:
        return _grouped(cls, dict(values)) if isinstance(values, Mapping) else values


def registry_of(field: FieldInfo) -> Registry[Any] | None:
    """What a choice chooses from; None for other fields."""
    return _extra(field).get("registry")


def _extra(field: FieldInfo) -> Values:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _groups(model: type[Settings]) -> dict[str, type[Settings]]:
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
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
        _refuse_unknown(name, values.get(name, ()), registry_of(field))
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
    """Put the flat values of a group under its name, beside what stands there."""
    own = {leaf: values.pop(leaf) for leaf in group.flags() if leaf in values}
    given = values.get(name)
    if isinstance(given, Settings):
        values[name] = given.but(**own) if own else given
    elif given or own:
        values[name] = {**(given or {}), **own}


def _refuse_unknown(name: str, given: Any, registry: Registry[Any] | None) -> None:
    names = (given,) if isinstance(given, str) else given
    if registry and isinstance(names, list | tuple) and not all(one in registry for one in names):
        raise ValueError(f"--{name.replace('_', '-')}: one of {', '.join(registry.names())}")


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


def load_settings(model: type[S], flags: Mapping[str, Any], config: Path | None = None) -> S:
    """Settings from a TOML file and from flags, which win. Raises UsageError with one line for the first mistake."""
    values = _read_toml(model, config) if config else {}
    values |= {name: value for name, value in flags.items() if value is not None}
    _refuse_foreign(model, values)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        names = [str(name) for name in first["loc"] if str(name) in model.flags()]
        said = first["msg"].removeprefix("Value error, ")  # a rule over several settings names none
        raise UsageError(f"--{names[0].replace('_', '-')}: {said}" if names else said) from None


def _refuse_foreign(model: type[Settings], values: Mapping[str, Any], where: str = "") -> None:
    for name in values:
        if name not in model.flags():
            near = get_close_matches(name, model.flags(), n=1)
            remedy = f"did you mean {near[0].replace('_', '-')}?" if near else "see --help for its settings"
            raise UsageError(f"this command has no setting {name.replace('_', '-')}", where=where, remedy=remedy)


def _read_toml(model: type[Settings], config: Path) -> Values:
    """A file's settings, each of the kind that the model wants. Raises UsageError, which names the key."""
    try:
        values = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UsageError("is not there or is no TOML file", where=config.name) from None
    _refuse_foreign(model, values, config.name)
    flags = model.flags()
    for key, value in values.items():
        if not _fits(value, flags[key].annotation):
            raise UsageError(f"{key}: a value of the wrong kind", where=config.name, remedy="see --help for it")
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
