"""Functions of named inputs, and the inputs of attacks: how a path or a Python object becomes a
field of `Context`.

The commands `clinveil attack NAME` and the functions of `clinveil.attack` are made from the same
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw

from clinveil.api.frames import NoteRoles, arrow, known_patients, local_path_of, scratch
from clinveil.core import Finding, InputError, NotesSettings, Say, Setting, Settings, UsageError

if TYPE_CHECKING:
    from clinveil.attacks import Attack, Context


class AttackInput(NamedTuple):
    """One input.

    Attributes:
        name: of the flag and of the Python argument.
        help: what to pass.
        read: returns the value for the context, from a path or a Python object.
        several: whether a command takes several paths.
        options: flags of the input, if it is never an argument.
    """

    name: str
    help: str
    read: Callable[[Any, NoteRoles], Any]
    several: bool = False
    options: tuple[str, ...] = ()


def inputs_of(attack: type[Attack]) -> dict[str, AttackInput]:
    """Return field of the context -> input, of all fields that an attack requires."""
    return {field: INPUTS[field] for field in INPUTS if field in attack.needs}


def context_of(
    held: Mapping[str, Any],
    *,
    keep: tuple[str, ...] = (),
    workers: int = 2,
    say: Say = lambda line: None,
) -> Context:
    """Return the context of an attack; `held` has the value of each of its fields in `INPUTS`."""
    from clinveil.attacks import Context

    return Context(**held, keep=keep, workers=workers, say=say)


def _corpus(notes: Any, how: NoteRoles) -> Any:
    return how.opened(notes)[0]


def _counts(notes: Any, how: NoteRoles) -> Any:
    from clinveil.vectors import count_words

    with scratch() as folder:
        return count_words(_corpus(notes, how), folder)


def _file(loader: str) -> Callable[[Any, NoteRoles], Any]:
    """Return a reader that loads a path with a function `module:name`, and returns other values
    unchanged.
    """

    def read(value: Any, _: NoteRoles) -> Any:
        module, name = loader.split(":")
        return (
            getattr(import_module(module), name)(Path(value))
            if isinstance(value, str | Path)
            else value
        )

    return read


def _codes(codes: Any, how: NoteRoles) -> Any:
    if nw.dependencies.is_into_dataframe(codes):
        table = arrow(codes)
        if not {"code", "description"} <= set(table.column_names):
            raise InputError(
                "the columns code and description are missing",
                where="the codes",
                hint="rename them",
            )
        return {
            str(row["code"]): str(row["description"])
            for row in table.select(["code", "description"]).to_pylist()
        }
    return _file("clinveil.corpus.people:read_codes")(codes, how)


def _model(value: Any, how: NoteRoles) -> Any:
    loaded = _file("clinveil.lm.files:load_model")(value, how)
    return loaded[0] if isinstance(loaded, tuple) else loaded


def _vectors(values: Any, how: NoteRoles) -> Any:
    read = _file("clinveil.vectors.files:load_vectors")
    return [
        read(_in_vault(value), how)
        for value in (values if isinstance(values, list | tuple) else [values])
    ]


def _in_vault(value: Any) -> Any:
    """Return the vectors in the vault of a release, for its folder; any other value as it is."""
    if not isinstance(value, str | Path) or not (Path(value) / "vault" / "manifest.json").is_file():
        return value
    vectors = Path(value) / "vault" / "vectors"
    if not vectors.exists():
        raise InputError(
            "is a release without word vectors",
            where=Path(value).name,
            hint="only obfuscated releases have them",
        )
    return vectors


def _names(people: Any, _: NoteRoles) -> Any:
    from clinveil.corpus import read_names

    if isinstance(people, str | Path):
        return read_names(
            local_path_of(people, "the names", "check the path; pass names as a list: [name]")
        )
    if nw.dependencies.is_into_dataframe(people):
        people = known_patients(people)
    hint = "pass a file, a frame, a dictionary id -> clinveil.Patient, or a list of full names"
    if not isinstance(people, Mapping | list | tuple):
        raise UsageError(f"names cannot be of type {type(people).__name__}", hint=hint)
    names = list(people.values()) if isinstance(people, Mapping) else people
    names = [getattr(person, "name", person) for person in names]
    if not all(isinstance(name, str | list | tuple) for name in names):
        raise UsageError("a name is not text", hint=hint)
    return [tuple(name.split()) if isinstance(name, str) else tuple(name) for name in names]


_CHANNEL = _file("clinveil.channel.files:load_channel")
_CROSSWALK = _file("clinveil.releases.crosswalk:source_notes")
_VECTORS = "Word vectors: folders of clinveil embed, .vec, .txt or .bin files."
INPUTS: Mapping[str, AttackInput] = {
    "vectors": AttackInput("vectors", _VECTORS, _vectors, several=True),
    "released": AttackInput("released", "Protected notes: a file or a folder.", _corpus),
    "model": AttackInput(
        "model",
        "Language model (vault/model of a synthetic release).",
        _model,
        options=("--from", "--model"),
    ),
    "channel": AttackInput("channel", "Channel of a release (vault/channel).", _CHANNEL),
    "original": AttackInput("original", "Original notes.", _corpus),
    "entered": AttackInput("entered", "The notes as they entered the channel.", _corpus),
    "counts": AttackInput("notes", "Source notes, to count words.", _counts),
    "training": AttackInput("training", "Notes that the model was trained on.", _corpus),
    "held_out": AttackInput(
        "held_out", "Control: notes of other patients, not used for training.", _corpus
    ),
    "reference": AttackInput("reference", "Notes of third patients.", _corpus),
    "names": AttackInput(
        "names",
        "Known patients: a table (.csv, .parquet), or text with a full name per line.",
        _names,
        options=("--patients", "--names"),
    ),
    "known": AttackInput(
        "patients", "Known patients (patients.parquet).", lambda given, _: known_patients(given)
    ),
    "codes": AttackInput("codes", "Table of codes and descriptions (codes.csv).", _codes),
    "notes": AttackInput("vault", "Vault of the release, for the source of each note.", _CROSSWALK),
}
"""Field of an attack's context -> its input; required inputs are positional in Python, in this
order.
"""


COLUMNS = (
    'columns: which column has which role, for example `{"text": "NOTE", "patient": "MRN"}`, for'
    " frames and files. Roles: `text`, `id`, `patient`, `label` and `keep` (one or more); usual"
    " names need no entry. `preset`, `encoding` and `max_note_bytes` say how files are read."
)


def as_function(
    name: str,
    documentation: str,
    required: Sequence[str],
    optional: Sequence[str],
    call: Callable[[dict[str, Any], dict[str, Any], int, Mapping[str, Any]], list[Finding]],
) -> Callable[..., list[Finding]]:
    """Return a function of named inputs and settings.

    Args:
        name: as in `clinveil.attack.names`.
        call: receives the given inputs, the settings, the seed and the column roles of frames.
    """
    signature = _signature(required, optional)

    def function(*args: Any, **keywords: Any) -> list[Finding]:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise UsageError(f"{name}: {error}", hint=f"see help(clinveil.{name})") from None
        bound.apply_defaults()
        given = {
            one: bound.arguments[one]
            for one in (*required, *optional)
            if bound.arguments[one] is not None
        }
        settings = bound.arguments["settings"]
        columns = bound.arguments["columns"] or {}
        return call(given, settings, bound.arguments["seed"], columns)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = documentation
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _signature(required: Sequence[str], optional: Sequence[str]) -> Signature:
    """Return the signature of a function of these inputs."""
    either = Parameter.POSITIONAL_OR_KEYWORD
    keyword = Parameter.KEYWORD_ONLY
    return Signature(
        [
            *(Parameter(name, either) for name in required),
            *(Parameter(name, either, default=None) for name in optional),
            Parameter("seed", keyword, default=1, annotation="int"),
            Parameter("columns", keyword, default=None, annotation="Mapping[str, Any] | None"),
            Parameter("settings", Parameter.VAR_KEYWORD, annotation="Any"),
        ],
        return_annotation="list[Finding]",
    )


def documentation(help: str, inputs: Mapping[str, str], *models: type[Settings]) -> str:
    """Return a docstring from the help text, name -> help of each input, and the settings.

    Column roles and the seed are arguments in Python, and output of a command has no function.
    """
    lines = [
        help,
        "",
        "Args:",
        *(f"    {name}: {text}" for name, text in inputs.items()),
        f"    {COLUMNS}",
    ]
    own = [
        _line_of(one)
        for model in models
        for name, one in model.declared().items()
        if not (NotesSettings in one.owners or name == "seed")
        if one.affects != "call" or name == "workers"
    ]
    return "\n".join([*lines, *(["", "Settings:", *own] if own else [])])


def _line_of(setting: Setting) -> str:
    """Return a line with name, default and help of a setting."""
    default = setting.field.default
    shown = "" if default in (None, ()) else f" ({default!r})"
    return f"    {setting.name}{shown}: {setting.field.description}"
