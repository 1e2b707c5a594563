"""Notes in a file or in part files: a restartable stream of batches with known column roles."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, compress

import numpy as np
import pyarrow as pa

from clinveil.core import InputError
from clinveil.corpus.columns import no_errors
from clinveil.corpus.corpus import (
    NOTE_ID,
    Columns,
    rebatch,
    text_bytes,
    visible_texts,
)
from clinveil.corpus.file_format import NotesSource
from clinveil.corpus.roles import id_column, to_roles
from clinveil.corpus.screen import NOT_ENGLISH, Screened, screened
from clinveil.corpus.streams import (
    LARGER_NOTES,
    ROW_BYTES,
)
from clinveil.corpus.uniqueness import Hashes, hashes, repeated

ENTERED_IN_ERROR = "entered in error"


@dataclass(frozen=True)
class NotesCorpus:
    """Notes in a file or folder; a pass needs 8 bytes of memory per note, to detect duplicate ids.

    Attributes:
        columns: the roles of the source's columns; without a patient column each note is a separate
            patient.
        suffix: ".parquet", ".csv.gz", … or "" for a folder of .txt.
        name: base name of the file or folder, for messages.
        guessed: the roles with a guessed column.
        preset: name of the known source, or None.
        skipped: rows that the last pass left out, by reason; filled during a pass, cleared when the
            next one starts.
        seen: rows of the last pass that `screened` notes may not have.
    """

    columns: Columns
    suffix: str
    name: str
    guessed: tuple[str, ...] = ()
    preset: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    seen: Screened = field(default_factory=Screened)
    _source: NotesSource = field(repr=False, kw_only=True)
    _error_flag: str | None = field(default=None, repr=False, kw_only=True)
    _max_bytes: int = field(default=ROW_BYTES, repr=False, kw_only=True)
    _may_be_empty: bool = field(default=False, repr=False, kw_only=True)
    _without_markup: bool = field(default=False, repr=False, kw_only=True)
    _per_row: int = field(default=1, repr=False, kw_only=True)
    _language: str | None = field(default=None, repr=False, kw_only=True)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, from the start, in source order.

        Raises:
            InputError: invalid rows, with the row number; a duplicate id is detected at the end of
                a pass.
        """
        return rebatch(self._checked())

    def _checked(self) -> Iterator[pa.RecordBatch]:
        self.skipped.clear()
        vars(self.seen).update(vars(Screened()))
        columns = self.columns
        rows = 0
        patient = (columns.patient_id,) if columns.patient_id else ()
        flag = (self._error_flag,) if self._error_flag else ()
        ids: list[Hashes] = []
        for raw in self._source.read(
            (columns.note_id, *patient, *flag), (columns.text,), columns.keep
        ):
            batch = to_roles(raw, columns, self.name, rows, self._per_row)
            longer = np.flatnonzero(text_bytes(batch) > self._max_bytes)
            if longer.size:
                problem = f"the note has more than {self._max_bytes:,} bytes"
                where = f"{self.name}, row {(rows + longer[0]) // self._per_row + 1}"
                raise InputError(problem, where=where, hint=f"split it or raise {LARGER_NOTES}")
            per_row = self._per_row
            numbers: Sequence[int] = [
                row // per_row + 1 for row in range(rows, rows + raw.num_rows)
            ]
            rows += raw.num_rows
            ids.append(hashes(batch.column(NOTE_ID).to_pylist()))
            if self._error_flag:
                sound = no_errors(raw.column(self._error_flag))
                batch = batch.filter(sound)
                numbers = list(compress(numbers, sound.to_pylist()))
                self.skipped[ENTERED_IN_ERROR] += raw.num_rows - batch.num_rows
            if self._language is not None:
                batch, left_out = screened(batch, numbers, self.name, self._language, self.seen)
                if left_out:
                    self.skipped[NOT_ENGLISH] += left_out
            yield visible_texts(batch) if self._without_markup else batch
        if not rows and not self._may_be_empty:
            raise InputError(
                "contains no notes", where=self.name, hint="check the file; it has only a header"
            )
        if repeats := repeated(ids, self.ids):
            first, again = ((number - 1) // self._per_row + 1 for number in repeats)
            problem = f"duplicate id, already used in row {first}"
            where = f"{self.name}, row {again}"
            raise InputError(
                problem, where=where, hint="ids must be unique; choose another column with --id"
            )

    def of_part(self, name: str, source: NotesSource) -> NotesCorpus:
        """Return a corpus with the same columns over another part file, which may have no rows."""
        return replace(
            self, name=name, skipped=Counter(), seen=Screened(), _source=source, _may_be_empty=True
        )

    def without_markup(self) -> NotesCorpus:
        """Return a corpus of what is displayed of marked-up notes."""
        return replace(self, skipped=Counter(), seen=Screened(), _without_markup=True)

    def screened(self, language: str) -> NotesCorpus:
        """Return a corpus without the notes that the detectors cannot read; after a pass, `seen`
        may refuse it.

        Args:
            language: `english`, or `any` to keep notes in all languages.
        """
        return replace(self, skipped=Counter(), seen=Screened(), _language=language)

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of all rows, including those that are left out, as one list per batch."""
        name = self.columns.note_id
        for raw in self._source.read((name,)):
            yield id_column(raw, name, self.name).to_pylist()


@dataclass(frozen=True)
class PartedCorpus:
    """A corpus of part files, sorted by path.

    Attributes:
        parts: corpora with the same columns that can be sent to other processes. Reading a damaged
            part raises its error, so that the other parts can be processed.
        columns, suffix, guessed, preset: the same for every part. name: of the folder or pattern,
            for messages.
        skipped: rows that the last pass left out, by reason.
    """

    parts: tuple[NotesCorpus, ...]
    name: str
    columns: Columns
    suffix: str
    guessed: tuple[str, ...] = ()
    preset: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def seen(self) -> Screened:
        """Rows of the last pass that `screened` notes may not have."""
        total = Screened()
        for part in self.parts:
            total += part.seen
        return total

    def without_markup(self) -> PartedCorpus:
        """Return a corpus of what is displayed of marked-up notes."""
        return replace(
            self, skipped=Counter(), parts=tuple(part.without_markup() for part in self.parts)
        )

    def screened(self, language: str) -> PartedCorpus:
        """Return a corpus without the notes that the detectors cannot read, like
        `NotesCorpus.screened`.
        """
        return replace(
            self, skipped=Counter(), parts=tuple(part.screened(language) for part in self.parts)
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows of all parts, in order. Raises InputError for a duplicate id, within or
        across parts.
        """
        self.skipped.clear()
        ids: list[Hashes] = []
        for part in self.parts:
            for batch in part.batches():
                ids.append(hashes(batch.column(NOTE_ID).to_pylist()))
                yield batch
            self.skipped.update(part.skipped)
        if not any(map(len, ids)) and not self.skipped:
            raise InputError(
                "contains no notes", where=self.name, hint="check the path; no part has a row"
            )
        self.refuse_repeats(ids)

    def refuse_repeats(self, ids: Sequence[Hashes]) -> None:
        """Raise InputError, which names both parts, for a duplicate id.

        `ids`: the hashes of all ids, in order; only if two are equal, the ids are read again.
        """
        rows = repeated(ids, lambda: (ids for part in self.parts for ids in part.ids()))
        if rows:
            sizes = [sum(map(len, part.ids())) for part in self.parts]
            part_indices = [bisect_left(list(accumulate(sizes)), number) for number in rows]
            (first, row), (second, again) = (
                (self.parts[index].name, number - sum(sizes[:index]))
                for index, number in zip(part_indices, rows, strict=True)
            )
            problem = f"duplicate id, already used in {first}, row {row}"
            hint = "ids must be unique across all parts; choose another column with --id"
            raise InputError(problem, where=f"{second}, row {again}", hint=hint)


OpenedCorpus = NotesCorpus | PartedCorpus
