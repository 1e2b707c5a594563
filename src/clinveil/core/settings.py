"""Settings of commands: one Pydantic model defines the TOML file, `--set`, the flags and the record
of a run.

Each package defines its own settings. A command's settings combine them: a field of type `Settings`
is a group. Its fields are addressed by their name (`dim`) or by group and name (`vectors.dim`). A
command lists which of its settings are also flags (`clinveil.cli.command`). Settings shared by
several commands are the constants at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator
from pydantic.fields import FieldInfo

from clinveil.core.registry import Registry

Values = dict[str, Any]


def flag(default: Any, help: str, *, short: str = "", name: str = "", **constraints: Any) -> Any:
    """Define a setting.

    Args:
        help: one line for `--help` and `clinveil init-config`.
        short: the one-letter form of the flag.
        name: the name on the command line, without dashes, if it differs from the field's name.
        constraints: passed to `pydantic.Field`.
    """
    extra = {key: value for key, value in (("short", short), ("flag", name)) if value}
    return Field(
        default,
        description=help,
        json_schema_extra=extra or None,  # type: ignore[arg-type]
        **constraints,
    )


def choice(
    registry: Registry[Any], default: str | tuple[str, ...], help: str, *, name: str = ""
) -> Any:
    """Define a setting that names one implementation of a registry, or several if the field is a
    tuple.

    Args:
        name: the name on the command line, if it differs from the field's name (a Python keyword,
            such as `as`).
    """
    extra: Any = {"registry": registry, **({"flag": name} if name else {})}
    return Field(default, description=help, json_schema_extra=extra)


def own_settings(of: str, *, here: tuple[str, ...] = ()) -> Any:
    """Define a group with the settings of the implementation that the choice `of` names.

    These are the fields of its `Settings` class, or of the implementation itself. They are refused
    if another implementation is chosen. Fields that the class of the choice defines are shared by
    all implementations.

    Args:
        of: the name of the choice.
        here: implementations without settings of their own; they are not imported.
    """
    return Field(
        None, json_schema_extra={"settings_of": of, "here": list(here)}, validate_default=False
    )


def group(kind: type[Settings]) -> Any:
    """Define a group: a field with fields that are settings of the command, with names unique in
    the command.
    """
    return Field(default_factory=kind)


def table(kind: type[Settings]) -> Any:
    """Define a table: a field with fields that are always addressed by table and name
    (`lm.epochs`).
    """
    return Field(default_factory=kind, json_schema_extra={"table": True})


def flag_name(name: str, field: FieldInfo | None = None) -> str:
    """Return the command-line flag of a field, such as `--min-patients`."""
    return "--" + str((field and extra_of(field).get("flag")) or name).replace("_", "-")


class Settings(BaseModel):
    """Base class of settings: unknown names are refused, and values never appear in errors.

    A subclass in which two groups define the same name raises ValueError.

    Attributes:
        CONFIGS: package with the TOML files that `--config` can name without a path; "" for none.
    """

    CONFIGS: ClassVar[str] = ""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Raise ValueError for a name that is defined twice."""
        _refuse_twice(cls, [name for name, _ in _leaves(cls, own=False)])

    @classmethod
    def flags(cls) -> dict[str, FieldInfo]:
        """Return each setting's name and field, in order. Imports the implementations of choices
        with own settings.
        """
        leaves = list(_leaves(cls, own=True))
        _refuse_twice(cls, [name for name, _ in leaves])
        return dict(leaves)

    def flat(self, without: Collection[str] = ()) -> Values:
        """Return each setting's name and JSON value: the record of a run, which validates to the
        same settings.

        A table is one value, a dictionary. Settings of our implementations that were not chosen
        have their defaults.
        """
        return {name: value for name, value in _values(self, "json") if name not in without}

    def named_values(self) -> Iterator[tuple[str, Any]]:
        """Yield each setting's name and Python value; a table is one value."""
        yield from _values(self, "python")

    def but(self, **changed: Any) -> Self:
        """Return a copy with some settings changed, by name."""
        return type(self).model_validate(dict(self.named_values()) | changed)

    @classmethod
    def refuse_given(cls, given: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """Raise UsageError for given settings that exclude each other; the base class accepts all.

        Args:
            given: key -> how the user gave it (`--n`, `n in my.toml`).
            values: name -> value of all given settings.
        """

    @model_validator(mode="before")
    @classmethod
    def _into_groups(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        unset = {
            name for name, field in cls.model_fields.items() if "Path" in str(field.annotation)
        }
        # As init-config writes.
        return _grouped(cls, {k: v for k, v in values.items() if v != "" or k not in unset})


def registry_of(field: FieldInfo) -> Registry[Any] | None:
    """Return the registry of a choice; None for other fields."""
    return extra_of(field).get("registry")


def extra_of(field: FieldInfo) -> Values:
    """Return what `flag`, `choice` and the others keep with a field."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _groups(model: type[Settings], *, tables: bool = False) -> dict[str, type[Settings]]:
    """Return the groups of a model, or its tables."""
    fields = {
        name: field
        for name, field in model.model_fields.items()
        if bool(extra_of(field).get("table")) == tables
    }
    kinds = {name: field.annotation for name, field in fields.items()}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }


def sections(model: type[Settings], *, tables: bool = False) -> dict[str, type[Settings]]:
    """Return the groups of a model with a name that is part of keys (`vectors` of `vectors.dim`),
    or its tables.
    """
    return {
        name: kind
        for name, kind in _groups(model, tables=tables).items()
        if name not in _choices(model).values()
    }


def _choices(model: type[Settings]) -> dict[str, str]:
    """Return each choice whose implementations have settings, and the group that holds them."""
    of = {name: extra_of(field).get("settings_of") for name, field in model.model_fields.items()}
    return {choice: name for name, choice in of.items() if choice}


def _settings_of(model: type[Settings], choice: str, name: str) -> type[Settings]:
    """Return the settings that an implementation adds to those of the model; an empty class if
    there are none.
    """
    registry = registry_of(model.model_fields[choice])
    if registry is None:
        raise TypeError(f"{choice} of {model.__name__} is not a choice")
    if name in extra_of(model.model_fields[_choices(model)[choice]]).get("here", ()):
        return Settings
    made = registry.get(name)
    own = (
        made
        if isinstance(made, type) and issubclass(made, Settings)
        else getattr(made, "Settings", None)
    )
    return _beyond(own or Settings, frozenset(model.model_fields))


@cache
def _beyond(own: type[Settings], shared: frozenset[str]) -> type[Settings]:
    """Return a settings class without the shared fields."""
    if not shared & own.model_fields.keys():
        return own
    kept: Any = {
        name: (f.annotation, f) for name, f in own.model_fields.items() if name not in shared
    }
    return create_model(own.__name__, __base__=Settings, **kept)


def _behind(model: type[Settings], choice: str, *, ours: bool = False) -> dict[str, FieldInfo]:
    """Return the settings of all implementations of a choice, or of ours, each name once."""
    registry = registry_of(model.model_fields[choice])
    names = (
        [name for name in registry.names() if not ours or name in registry.ours()]
        if registry
        else []
    )
    return {
        leaf: field
        for name in names
        for leaf, field in _settings_of(model, choice, name).flags().items()
    }


def _leaves(model: type[Settings], *, own: bool) -> Iterator[tuple[str, FieldInfo]]:
    """Yield names and fields; with `own` also those of the implementations of choices."""
    groups = _groups(model)
    choices = _choices(model)
    for name, field in model.model_fields.items():
        if extra_of(field).get("table"):
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
    """Yield names and values, in the order of `Settings.flags`."""
    model = type(settings)
    groups = _groups(model)
    choices = _choices(model)
    plain = (
        settings.model_dump(mode="json", exclude={*groups}) if mode == "json" else dict(settings)
    )
    for name in model.model_fields:
        if name not in groups:
            yield name, plain[name]
        elif name not in choices.values():
            yield from _values(getattr(settings, name), mode)
        if name in choices:
            others = {
                leaf: field.default for leaf, field in _behind(model, name, ours=True).items()
            }
            yield from (others | dict(_values(getattr(settings, choices[name]), mode))).items()


def _grouped(model: type[Settings], values: Values) -> Values:
    """Return values with those of each group nested. Raises ValueError for an unknown name of a
    choice.
    """
    choices = _choices(model)
    for name, field in model.model_fields.items():
        registry = registry_of(field)
        given = values.get(name, ())
        names = (given,) if isinstance(given, str) else given
        if (
            registry
            and isinstance(names, list | tuple)
            and not all(one in registry for one in names)
        ):
            raise ValueError(f"{flag_name(name, field)}: one of {', '.join(registry.names())}")
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
    """Move the values of a group under the group's name."""
    own = {leaf: values.pop(leaf) for leaf in group.flags() if leaf in values}
    given = values.get(name)
    if isinstance(given, Settings):
        values[name] = given.but(**own) if own else given
    elif given or own:
        values[name] = {**(given or {}), **own}


def _refuse_others(model: type[Settings], choice: str, values: Values, own: type[Settings]) -> None:
    """Remove settings of other implementations that have their default; raise ValueError for other
    values.
    """
    registry = registry_of(model.model_fields[choice])
    assert registry is not None
    for leaf, field in (
        _behind(model, choice).items() if values.keys() - model.model_fields.keys() else ()
    ):
        if leaf in own.flags() or leaf not in values:
            continue
        if values.pop(leaf) != field.default:
            having = [
                name
                for name in registry.names()
                if leaf in _settings_of(model, choice, name).flags()
            ]
            raise ValueError(
                f"{flag_name(leaf)} requires {flag_name(choice)} {' or '.join(having)}"
            )


# Settings of many commands, used as `force: bool = FORCE`.
WORKERS = flag(2, "Number of workers; the output does not depend on it.", ge=1, le=1024)
SEED = flag(None, "Public seed, for tests and studies only: not for release.", ge=0, le=2**63 - 1)
QUIET = flag(False, "Show no progress.", short="-q")
FORCE = flag(False, "Replace an existing OUT, once the new one is complete.")
LABEL = flag((), "Column to keep and to measure utility on; repeatable.")
KEEP = flag((), "Column to keep unchanged; repeatable. All others are dropped.")
DEVICE = flag("cpu", "cpu, cuda or cuda:1.")


class NotesSettings(Settings):
    """How notes are read."""

    text: tuple[str, ...] | str | None = flag(
        None, "Column of the note text (default: guessed); several give one note each."
    )
    id: str | None = flag(None, "Column of the unique note id (default: guessed).", min_length=1)
    patient: str | None = flag(None, "Column of the patient id (default: guessed).", min_length=1)
    preset: Literal["auto", "none", "mimic3", "mimic4", "omop"] = flag(
        "auto", "Column names of a known source."
    )
    encoding: str = flag("utf-8", "Character encoding of text files.")
    delimiter: str = flag(
        "auto", "Character between the fields of .csv and .tsv files, or auto, or tab."
    )
    max_note_bytes: int = flag(
        10_000_000,
        "Reject larger notes (damaged file or decompression bomb).",
        ge=1_000,
        le=2**31 - 1,
    )

    @field_validator("text", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        """Return one column as its name, several as a tuple."""
        names = (value,) if isinstance(value, str) else value
        if isinstance(names, tuple | list):
            if not all(names) or len(set(names)) < len(names):
                raise ValueError("pass the names of different columns")
            return names[0] if len(names) == 1 else tuple(names)
        return value

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str) -> str:
        value = "\t" if value in ("tab", "\\t") else value
        if value != "auto" and not (len(value) == 1 and value.isascii() and value not in '"\r\n\0'):
            raise ValueError("pass one ASCII character, tab or auto")
        return value


class LabelledNotesSettings(NotesSettings):
    """How notes are read by a command without other use of labels: their column must exist, and is
    kept.
    """

    label: tuple[str, ...] = LABEL
