"""Several text columns of one row as several notes of one patient.

Each row gives one note per text column, in the order in which the columns were given. The id of a
note is the id of the row, a hyphen and the name of the column; the column `text_column` has this
name. Without a patient column, all notes of a row belong to one patient with the id of the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import InputError, NotesSettings
from clinveil.corpus.columns import candidates, name_the_column
from clinveil.corpus.corpus import TEXT, Columns
from clinveil.corpus.file_format import NotesSource

TEXT_COLUMN = "text_column"
ROW = "source_row_id"


@dataclass(frozen=True)
class SeveralTexts:
    """A source with one row per note.

    Attributes:
        source: the rows. texts: their text columns.

    Raises InputError for a missing text column, and for a column with the name of an added one.
    """

    source: NotesSource
    texts: tuple[str, ...]
    where: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name in self.texts:
            if name not in self.source.names:
                hint = f"{name_the_column('text')}; {candidates(self.source.names, self.texts)}"
                raise InputError(f"no column {name!r}", where=self.where, hint=hint)
        for name in (TEXT_COLUMN, ROW):
            if name in self.source.names:
                problem = f"with several --text, the name {name!r} is reserved"
                raise InputError(problem, where=self.where, hint="rename the column")

    @property
    def names(self) -> tuple[str, ...]:
        """The other columns of the source, then the text, the name of its column and the id of its
        row.
        """
        others = (name for name in self.source.names if name not in self.texts and name != TEXT)
        return (*others, TEXT, TEXT_COLUMN, ROW)

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    @property
    def path(self) -> Any:
        """The file."""
        return getattr(self.source, "path", None)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Types of the columns, as far as they are known before reading."""
        return {**getattr(self.source, "types", {}), TEXT_COLUMN: pa.string()}

    def kinds(self, kept: Sequence[str]) -> Any:
        """Return the types of values of JSON lines (`JsonlSource.kinds`)."""
        kept_columns = [name for name in kept if name != TEXT_COLUMN]
        lines: Any = self.source
        return {**lines.kinds(kept_columns), TEXT_COLUMN: {str}}

    def take_types(self, kinds: Any) -> None:
        """Give columns of JSON lines the types of these kinds of values."""
        lines: Any = self.source
        lines.take_types({name: of for name, of in kinds.items() if name != TEXT_COLUMN})

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all notes of the given columns; the first id is that of the note."""
        wanted = tuple(dict.fromkeys((*ids, *texts, *kept)))
        own_ids = tuple(name for name in ids if name != ROW)
        own_kept = tuple(name for name in kept if name != TEXT_COLUMN)
        for batch in self.source.read(own_ids, self.texts if TEXT in texts else (), own_kept):
            yield self._notes(batch, own_ids[0]).select(wanted)

    def _notes(self, batch: pa.RecordBatch, note_id: str) -> pa.RecordBatch:
        """Return the notes of some rows, row by row."""
        n_texts = len(self.texts)
        n_notes = batch.num_rows * n_texts
        rows = np.repeat(np.arange(batch.num_rows), n_texts)
        notes = batch.take(pa.array(rows))
        of_text = np.tile(np.arange(n_texts), batch.num_rows)
        columns = {
            name: notes.column(name) for name in batch.schema.names if name not in self.texts
        }
        names = pa.array(self.texts, pa.string()).take(pa.array(of_text))
        columns[ROW] = _as_ids(columns[note_id])
        columns[note_id] = pc.binary_join_element_wise(columns[ROW], names, "-")
        columns[TEXT_COLUMN] = names
        if self.texts[0] in batch.schema.names:
            cells = pa.concat_arrays([self._text(batch.column(name), name) for name in self.texts])
            columns[TEXT] = cells.take(pa.array(of_text * batch.num_rows + rows))
        fields = [
            notes.schema.field(name)
            if name in notes.schema.names and name not in (note_id, TEXT)
            else None
            for name in columns
        ]
        schema = pa.schema(
            [
                source_field or pa.field(name, columns[name].type)
                for source_field, name in zip(fields, columns, strict=True)
            ]
        )
        assert all(len(column) == n_notes for column in columns.values())
        return pa.record_batch(list(columns.values()), schema=schema)

    def _text(self, column: pa.Array, name: str) -> pa.Array:
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        try:
            if not pa.types.is_null(column.type) and "string" not in str(column.type):
                raise pa.ArrowInvalid
            return pc.cast(column, pa.large_string())
        except pa.ArrowException:
            problem = f"column {name!r} contains {column.type}, not text"
            hint = "choose another column with --text, or store it as a string"
            raise InputError(problem, where=self.where, hint=hint) from None


def _as_ids(column: pa.Array) -> pa.Array:
    """Return ids as text; whole numbers that a library wrote as floats lose their point."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.int64(), safe=False)
    return pc.cast(column, pa.string())


def of_several(source: NotesSource, settings: NotesSettings, where: str) -> NotesSource:
    """Return the source with one row per note if the settings name several text columns."""
    return (
        SeveralTexts(source, settings.text, where) if isinstance(settings.text, tuple) else source
    )


def single(settings: NotesSettings) -> NotesSettings:
    """Return the settings of a source with one row per note."""
    return settings.but(text=TEXT) if isinstance(settings.text, tuple) else settings


def with_row_as_patient(columns: Columns) -> Columns:
    """Return the roles with the id of the row as patient id if no column has one."""
    dropped = tuple(name for name in columns.dropped if name != ROW)
    if columns.patient_id is not None:
        return replace(columns, dropped=dropped)
    return replace(columns, patient_id=ROW, dropped=dropped, order=(*columns.order, ROW))


def notes_per_row(settings: NotesSettings) -> int:
    """Return how many notes a row gives."""
    return len(settings.text) if isinstance(settings.text, tuple) else 1
