"""Convert notes between pandas, polars, Arrow and lists of strings, and return the caller's
type.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core import (
    Finding,
    InputError,
    Location,
    NotesSettings,
    UsageError,
    as_location,
    files_of,
    is_pattern,
    load_settings,
)
from clinveil.corpus import (
    BATCH_ROWS,
    NOTE_ID,
    USUAL,
    Corpus,
    Patient,
    bare,
    corpus_of,
    open_corpus,
    read_patients,
    rows,
    source_names,
)

Notes = Any
"""A path, a `Corpus`, a frame (pandas, polars, Arrow), a series of texts, or a list of strings."""
KINDS = (
    "a path, a corpus, a frame of pandas, polars or Arrow, a series of texts, or a list of strings"
)
PATIENTS = (
    "pass a patients file, a frame of patient_id and name, or a dictionary id -> clinveil.Patient"
)
BROKEN = "decode it again; a lone surrogate is not a character"
ONE_TEXT = "check the path; pass a single text as a list: [text]"
_ID = "note_id"
_TEXT = "text"


@dataclass(frozen=True)
class TableSource:
    """An Arrow table as a source of rows, like a file of notes."""

    table: pa.Table = field(repr=False)
    optional_keys: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self.table.column_names)

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, in batches."""
        yield from self.table.select([*ids, *texts, *kept]).to_batches(max_chunksize=BATCH_ROWS)


Back = Callable[[list[pa.RecordBatch]], Any]


def path_of(given: str | Path, where: str, hint: str) -> Location:
    """Return a path. Raises InputError, without quoting the text, if no such file exists.

    The text may be a note or a person's name.
    """
    try:
        path: Location = as_location(given)
        exists = path.exists() or (is_pattern(path) and any(files_of(path)))
    except (OSError, ValueError):  # too long for a name, or with a null: their messages quote it
        path = Path(given)
        exists = False
    if not exists and isinstance(given, str):
        raise InputError("file not found", where=where, hint=hint) from None
    return path


def local_path_of(given: str | Path, where: str, hint: str) -> Path:
    """Return a path of this machine. Raises InputError as `path_of`, UsageError for a URL."""
    path = path_of(given, where, hint)
    if not isinstance(path, Path):
        raise UsageError(
            "is not read from a store", where=where, hint="copy the file to this machine first"
        )
    return path


def known_patients(patients: Any) -> Mapping[str, Patient] | None:
    """Return known patients from a patients file, a frame like it (patient_id, name, …), or id ->
    `Patient`.

    Raises UsageError for other types, InputError for an invalid file or frame.
    """
    if patients is None or isinstance(patients, str | Path):
        if patients is None:
            return None
        return read_patients(local_path_of(patients, "the patients", PATIENTS))
    if nw.dependencies.is_into_dataframe(patients):
        with scratch() as folder:
            pq.write_table(arrow(patients), folder / "patients.parquet")
            return read_patients(folder / "patients.parquet")
    if isinstance(patients, Mapping) and all(
        isinstance(patient, Patient) for patient in patients.values()
    ):
        return patients
    raise UsageError(f"known patients cannot be of type {type(patients).__name__}", hint=PATIENTS)


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a private temporary folder (0700, in TMPDIR) for words of notes, removed at the
    end.
    """
    with TemporaryDirectory(prefix="clinveil-") as folder:
        yield Path(folder)


@dataclass(frozen=True)
class NoteRoles:
    """Column roles and kept columns."""

    notes: NotesSettings
    label: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> NoteRoles:
        """Create from keyword arguments; `label` and `keep` take one or more names. Raises
        UsageError for others.
        """
        rest = dict(options)
        label = rest.pop("label", ())
        keep = rest.pop("keep", ())
        return cls(
            load_settings(NotesSettings, rest),
            label=(label,) if isinstance(label, str) else tuple(label),
            keep=(keep,) if isinstance(keep, str) else tuple(keep),
        )

    def opened(self, notes: Notes) -> tuple[Corpus, Back | None]:
        """Return notes of any type of `KINDS` as a corpus, with the conversion of transformed
        batches to that type.

        For a path or a corpus there is no conversion.

        Each note of a list or series is of a separate patient; rows that are not written become
        None. Frames keep the columns in `keep`; all others except id, patient and text are dropped.
        Raises InputError for a missing column or invalid values, UsageError for an unsupported
        type.
        """
        if isinstance(notes, np.ndarray) and notes.ndim == 1:
            notes = notes.tolist()
        if isinstance(notes, str | Path):
            path = path_of(notes, "the notes", ONE_TEXT)
            return open_corpus(path, self.notes, label=self.label, keep=self.keep), None
        if hasattr(notes, "batches"):
            return notes, None
        if nw.dependencies.is_into_series(notes):
            series = nw.from_native(notes, series_only=True)
            texts = arrow(series.alias(_TEXT).to_frame().to_native()).column(_TEXT).to_pylist()
            return _of_texts(texts, self), lambda done: _series(series, _in_place(done, len(texts)))
        if nw.dependencies.is_into_dataframe(notes):
            table = arrow(notes)
            if self.notes.id is None and not any(
                bare(name) in USUAL["id"] for name in table.column_names
            ):
                table = table.add_column(
                    0, _ID, pa.array([str(row) for row in range(table.num_rows)])
                )
            corpus = self.of_table(table, "the frame")
            return corpus, lambda done: _frame(notes, corpus, done)
        if isinstance(notes, Sequence) and not isinstance(notes, str):
            return _of_texts(notes, self), lambda done: _in_place(done, len(notes))
        raise UsageError(
            f"notes of type {type(notes).__name__} are not supported", hint=f"pass {KINDS}"
        )

    def of_table(self, table: pa.Table, name: str) -> Corpus:
        """Return the corpus of a table. Raises InputError for missing or ambiguous columns."""
        source = TableSource(table)
        return corpus_of(
            source, self.notes, label=self.label, keep=self.keep, name=name, suffix=".parquet"
        )


def arrow(frame: Any) -> pa.Table:
    """Return a frame of any library as an Arrow table; missing texts are null.

    Raises InputError for column names that are not strings, and for values that Arrow does not
    support.
    """
    try:
        eager = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise InputError("duplicate column name", where="the frame", hint="rename one") from None
    names = eager.columns
    if not all(isinstance(name, str) for name in names):
        raise InputError("a column name is not a string", where="the frame", hint="rename it")
    columns = {name: _column(eager[name], name) for name in names}
    return pa.table(columns)


def _column(series: Any, name: str) -> Any:
    try:
        return series.to_arrow()
    except UnicodeEncodeError:  # its repr holds the whole text
        raise InputError(
            f"column {name!r} contains invalid Unicode", where="the frame", hint=BROKEN
        ) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        what = f"column {name!r} contains values of several types"
        raise InputError(
            what, where="the frame", hint="convert it to one type, or omit it"
        ) from None


def _of_texts(texts: Sequence[str | None], how: NoteRoles) -> Corpus:
    for number, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            what = f"item {number} is a {type(text).__name__}, not text"
            raise InputError(
                what, where="the notes", hint="pass strings, or None for missing texts"
            )
    if not len(texts):
        raise InputError("contains no notes", where="the list", hint="pass at least one text")
    ids = pa.array([str(number) for number in range(len(texts))])
    try:
        table = pa.table({_ID: ids, _TEXT: pa.array(texts, type=pa.large_string())})
    except UnicodeEncodeError:  # its repr holds the whole text
        raise InputError(
            "a text contains invalid Unicode", where="the notes", hint=BROKEN
        ) from None
    settings = how.notes.model_copy(update={"text": _TEXT, "id": _ID, "preset": "none"})
    return NoteRoles(settings, how.label, how.keep).of_table(table, "the list")


def _in_place(batches: list[pa.RecordBatch], n: int) -> list[str | None]:
    """Return texts at the positions given by their ids; None for notes that were not written."""
    texts: list[str | None] = [None] * n
    for batch in batches:
        for note in rows([batch]):
            texts[int(note.note_id)] = note.text
    return texts


def _series(like: Any, texts: list[str | None]) -> Any:
    made = nw.new_series(like.name, texts, nw.String, backend=like.implementation)
    native = made.to_native()
    if like.implementation.is_pandas_like():  # restore the row labels
        native.index = like.to_native().index
    return native


def table_of(corpus: Corpus, batches: list[pa.RecordBatch]) -> pa.Table:
    """Return transformed batches as a table with the source's column names."""
    named = source_names(corpus.columns, corpus.suffix or ".parquet")
    return pa.Table.from_batches(batches).select(list(named.values())).rename_columns(list(named))


def _frame(like: Any, corpus: Corpus, batches: list[pa.RecordBatch]) -> Any:
    """Return transformed rows with the source's column names in the caller's library; pandas keeps
    its row labels.
    """
    frame = native(table_of(corpus, batches), like)
    if nw.from_native(like, eager_only=True).implementation.is_pandas_like():
        ids = (
            note_id for batch in corpus.batches() for note_id in batch.column(NOTE_ID).to_pylist()
        )
        positions = {note_id: position for position, note_id in enumerate(ids)}
        kept = [note_id for batch in batches for note_id in batch.column(NOTE_ID).to_pylist()]
        frame.index = like.index[[positions[note_id] for note_id in kept]]
    return frame


def native(table: pa.Table, like: Any) -> Any:
    """Return an Arrow table as a frame of the library of another frame, or of a named library."""
    name = (
        like if isinstance(like, str) else str(nw.from_native(like, eager_only=True).implementation)
    )
    return table if name == "pyarrow" else nw.from_arrow(table, backend=cast(Any, name)).to_native()


def to_frame(findings: Sequence[Finding], like: Any = None) -> Any:
    """Return findings as a frame with one row each.

    Args:
        findings: the findings of an attack, an evaluation or a release.
        like: the library: "pandas", "polars", "pyarrow", or one of its frames. By default pandas or
            polars, if already imported, otherwise Arrow.

    Returns:
        A frame with the fields of `Finding` as columns. Labels and remarks are joined to one text.
        Fields with several parts have a column for each: `cell_…`, `scores_…`, `known_list_…` and
        `numbers_…`.

    Raises:
        UsageError: an unknown library, or one that is not installed.
    """
    if isinstance(findings, str) or not all(isinstance(finding, Finding) for finding in findings):
        raise UsageError(
            "not a list of findings", hint="pass outcome.findings, or the result of an attack"
        )
    rows = [finding.as_dict() for finding in findings]
    table: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in _FIELDS}
    for name, separator in (("labels", ", "), ("remarks", " ")):
        table[name] = [separator.join(row[name]) for row in rows]
    for name in ("cell", "scores", "known_list", "numbers"):
        parts = [row[name] or {} for row in rows]
        for key in sorted({key for part in parts for key in part}):
            table[f"{name}_{key}"] = _one_kind([part.get(key) for part in parts])
    typed = pa.table(
        {name: pa.array(values, type=_FIELDS.get(name)) for name, values in table.items()}
    )
    if like is None:  # the library that the caller has imported
        like = next((name for name in ("pandas", "polars") if name in sys.modules), "pyarrow")
    if isinstance(like, str) and like not in ("pandas", "polars", "pyarrow"):
        raise UsageError(f"unknown library {like!r}", hint="use one of pandas, polars, pyarrow")
    if isinstance(like, str) and find_spec(like) is None:
        raise UsageError(f"{like} is not installed", hint=f"pip install {like}")
    if not isinstance(like, str) and not nw.dependencies.is_into_dataframe(like):
        raise UsageError("`like` is not a frame", hint="use pandas, polars, pyarrow, or a frame")
    return native(typed, like)


_FIELDS = {
    "measure": pa.string(),
    **dict.fromkeys(("value", "low", "high"), pa.float64()),
    **dict.fromkeys(("n", "count"), pa.int64()),
    **dict.fromkeys(("chance", "control", "p"), pa.float64()),
    **dict.fromkeys(
        ("better", "unit", "method", "p_is", "chance_is", "control_is", "control_kind"), pa.string()
    ),
    **dict.fromkeys(("question", "source", "attack", "knowledge", "series"), pa.string()),
    **dict.fromkeys(("tested_on", "why", "warning", "sample"), pa.string()),
    "gated": pa.bool_(),
}


def _one_kind(values: list[Any]) -> list[Any]:
    """Return a column of one type: numbers, booleans, or otherwise text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        return [
            float(value) if kinds == {int, float} and value is not None else value
            for value in values
        ]
    return [None if value is None else str(value) for value in values]
