"""Settings of commands: nested Pydantic models define the TOML file, `--set`, the flags and the
record of a run.

A setting has one name everywhere: its path in the model, such as `vectors.dim`. `setting` declares
what it affects and whether its value is secret; the hash of a run, the manifest, the report and
`--reuse` read that. A command lists which of its settings are also flags (`clinveil.cli.command`).
Settings shared by several commands are the constants at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from inspect import get_annotations
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from clinveil.core.registry import Members

Values = dict[str, Any]
Affects = Literal["notes", "treatment", "training", "call"]
"""What a setting changes.

- notes: the notes, their measures or their report.
- treatment: the notes; a release with `--reuse` repeats its value. A file is read again.
- training: only what is learned from notes (vectors, model); `--reuse` keeps its value.
- call: only how a command runs. It is not part of the hash of a run, and not released.
"""
Secret = Literal["no", "value", "path"]
"""Whether what leaves has the value of a setting.

- no: it has.
- value: it has not.
- path: it states whether the setting was given. The value names files of the custodian; the hash of
  a run has their content.
"""


@dataclass(frozen=True)
class Declaration:
    """What `setting` keeps with a field; `affects`: None for that of its model."""

    affects: Affects | None = None
    secret: Secret = "no"
    short: str = ""
    flag: str = ""
    aliases: tuple[str, ...] = ()
    members: Members[Any] | None = None


def setting(
    default: Any,
    help: str,
    *,
    affects: Affects | None = None,
    secret: Secret = "no",
    short: str = "",
    flag: str = "",
    aliases: tuple[str, ...] = (),
    members: Members[Any] | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    min_length: int | None = None,
    pattern: str | None = None,
    allow_inf_nan: bool | None = None,
) -> Any:
    """Declare a setting.

    Args:
        help: one line for `--help` and `clinveil init-config`.
        affects: what it changes; by default `AFFECTS` of its model.
        secret: whether what leaves has its value.
        short: the one-letter form of the flag.
        flag: the name of the flag, without dashes, if it differs from the field's name.
        aliases: other names of the flag, with dashes.
        members: the names that are allowed; several if the field is a tuple.
        ge, gt, le, lt, min_length, pattern, allow_inf_nan: as of `pydantic.Field`.
    """
    declared = Declaration(affects, secret, short, flag, aliases, members)
    return Field(  # type: ignore[misc]
        default,
        description=help,
        json_schema_extra={_DECLARED: declared},  # type: ignore[dict-item]
        ge=ge,
        gt=gt,
        le=le,
        lt=lt,
        min_length=min_length,
        pattern=pattern,
        allow_inf_nan=allow_inf_nan,
    )


_DECLARED = "declared"


def group(kind: type[Settings]) -> Any:
    """Declare a group: a field with settings of its own, such as `vectors`."""
    return Field(default_factory=kind)


@dataclass(frozen=True)
class Setting:
    """One setting of a model.

    Attributes:
        name: its path, such as `vectors.dim`.
        owners: the models that contain it, from the outermost group to the class that declares it.
    """

    name: str
    field: FieldInfo
    declared: Declaration
    owners: tuple[type[Settings], ...]

    @property
    def affects(self) -> Affects:
        """What it changes."""
        return self.declared.affects or self.owners[-1].AFFECTS

    @property
    def last(self) -> str:
        """The last part of its name, `dim` of `vectors.dim`."""
        return self.name.rpartition(".")[2]

    @property
    def flag(self) -> str:
        """The flag of a command that has one for it, such as `--min-patients`."""
        return "--" + (self.declared.flag or self.last).replace("_", "-")

    @property
    def takes_several(self) -> bool:
        """Whether its value is a tuple."""
        return get_origin(self.field.annotation) is tuple


class Settings(BaseModel):
    """Base class of settings: unknown names are refused, and values never appear in errors.

    Attributes:
        AFFECTS: what the settings of this class change, unless one declares something else.
        CONFIGS: package with the TOML files that `--config` can name without a path; "" for none.
        FLAGS: settings that are flags of the command and keywords in Python, with other options, by
            panel of the help page.
    """

    AFFECTS: ClassVar[Affects] = "notes"
    CONFIGS: ClassVar[str] = ""
    FLAGS: ClassVar[Mapping[str, str]] = MappingProxyType({})

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True
    )

    @classmethod
    def declared(cls) -> Mapping[str, Setting]:
        """Return all settings by name, those of groups included, in order."""
        return _declared(cls)

    def named_values(self) -> Values:
        """Return the value of each setting by name."""
        return {name: _value(self, name) for name in self.declared()}

    def given_values(self) -> Values:
        """Return the values of the settings that were given, by name."""
        given: Values = {}
        for name in self.model_fields_set:
            value = getattr(self, name)
            if isinstance(value, Settings):
                given |= {f"{name}.{inner}": v for inner, v in value.given_values().items()}
            else:
                given[name] = value
        return given

    def record(self) -> Values:
        """Return the value of each setting by name, ready for JSON."""
        nested = self.model_dump(mode="json")
        return {
            name: reduce(lambda values, part: values[part], name.split("."), nested)
            for name in self.declared()
        }

    def but(self, **changes: Any) -> Self:
        """Return a copy with some settings changed; a mapping changes settings of a group."""
        return self.changed(changes)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed by name, `vectors.dim` or nested."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        for name, value in changes.items():
            first, _, rest = name.partition(".")
            held = values.get(first, getattr(self, first, None))
            if isinstance(held, Settings) and (rest or isinstance(value, Mapping)):
                values[first] = held.changed({rest: value} if rest else value)
            else:
                values[name] = value
        return type(self).model_validate(values)

    @classmethod
    def refuse_given(cls, given: Mapping[str, Any], where: Mapping[str, str]) -> None:
        """Raise UsageError for given settings that exclude each other; the base class accepts all.

        Args:
            given: name -> value of the settings that were given.
            where: name -> file in which a setting was given.
        """

    @classmethod
    def remark(cls, name: str) -> str:
        """Return when a setting applies, as a sentence for `clinveil init-config`; "" if always."""
        return ""

    @field_validator("*")
    @classmethod
    def _members(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        members = declaration_of(field).members
        names = (value,) if isinstance(value, str) else value
        if members and value != field.default and not all(name in members for name in names):
            raise ValueError(f"one of {', '.join(members.names())}")
        return value


def declaration_of(field: FieldInfo) -> Declaration:
    """Return what `setting` keeps with a field; the default declaration of any other field."""
    extra: Any = field.json_schema_extra
    return extra[_DECLARED] if isinstance(extra, dict) and _DECLARED in extra else Declaration()


def groups_of(model: type[Settings]) -> dict[str, type[Settings]]:
    """Return the groups of a model by name."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }


@cache
def _declared(model: type[Settings]) -> Mapping[str, Setting]:
    return {one.name: one for one in _walk(model, "", ())}


def _walk(
    model: type[Settings], prefix: str, outer: tuple[type[Settings], ...]
) -> Iterator[Setting]:
    groups = groups_of(model)
    seen = set[str]()
    for declaring in model.__mro__:  # settings of a class come before those that it inherits
        for name in get_annotations(declaring):
            if name not in model.model_fields or name in seen:
                continue
            seen.add(name)
            if name in groups:
                yield from _walk(groups[name], f"{prefix}{name}.", (*outer, model))
            else:
                field = model.model_fields[name]
                owners = (*outer, model, declaring)
                yield Setting(f"{prefix}{name}", field, declaration_of(field), owners)


def _value(settings: Settings, name: str) -> Any:
    return reduce(getattr, name.split("."), settings)


# Settings of many commands, used as `force: bool = FORCE`.
WORKERS = setting(
    2, "Number of workers; the output does not depend on it.", affects="call", ge=1, le=1024
)
SEED = setting(
    None,
    "Public seed of all random draws (default: random).",
    secret="value",
    ge=0,
    le=2**63 - 1,
)
KEY_SEED = setting(
    None,
    "Public seed of all random draws, for tests: the output must not leave.",
    secret="value",
    ge=0,
    le=2**63 - 1,
)
QUIET = setting(False, "Show no progress.", affects="call", short="-q")
FORCE = setting(False, "Replace an existing OUT, once the new one is complete.", affects="call")
LABEL = setting((), "Column to keep and to measure utility on; repeatable.")
KEEP = setting((), "Column to keep unchanged; repeatable. All others are dropped.")
DEVICE = setting("cpu", "cpu, cuda or cuda:1.", affects="notes", secret="value")
THREADS = setting(1, "Threads of PyTorch; one makes results repeatable.", ge=1, le=1024)


class NotesSettings(Settings):
    """How notes are read."""

    text: tuple[str, ...] | str | None = setting(
        None,
        "Column of the note text (default: guessed); several give one note each.",
        secret="value",
    )
    id: str | None = setting(
        None, "Column of the unique note id (default: guessed).", secret="value", min_length=1
    )
    patient: str | None = setting(
        None, "Column of the patient id (default: guessed).", secret="value", min_length=1
    )
    preset: Literal["auto", "none", "mimic3", "mimic4", "omop"] = setting(
        "auto", "Column names of a known source."
    )
    encoding: str = setting("utf-8", "Character encoding of text files.", secret="value")
    delimiter: str = setting(
        "auto", "Character between the fields of .csv and .tsv files, or auto, or tab."
    )
    max_note_bytes: int = setting(
        10_000_000,
        "Reject larger notes (damaged file or decompression bomb).",
        secret="value",
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
