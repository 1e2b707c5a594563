"""`open_corpus`: open notes in a file or in part files as a restartable stream with known column
roles.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, compress, islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from clinveil.core import InputError, Location, NotesSettings, RemotePath, as_location, read_json
from clinveil.corpus.columns import no_errors, resolve
from clinveil.corpus.corpus import (
    BATCH_ROWS,
    NOTE_ID,
    PATIENT_ID,
    TEXT,
    Columns,
    Corpus,
    MemoryCorpus,
    memory_corpus,
    rebatch,
    text_bytes,
    visible_texts,
)
from clinveil.corpus.file_format import NotesSource, format_of, open_source
from clinveil.corpus.part_columns import (
    NoRows,
    all_columns,
    refuse_missing,
    refuse_other_names,
    typed,
    with_constants,
)
from clinveil.corpus.parts import PartFile, delta_files, is_delta, part_files
from clinveil.corpus.roles import id_column, to_roles
from clinveil.corpus.screen import NOT_ENGLISH, Screened, screened
from clinveil.corpus.several_texts import (
    TEXT_COLUMN,
    notes_per_row,
    of_several,
    single,
    with_row_as_patient,
)
from clinveil.corpus.sql import QueryPath
from clinveil.corpus.streams import (
    LARGER_NOTES,
    ROW_BYTES,
    byte_lines,
    codec_name,
    decoded,
    row_limit,
)
from clinveil.corpus.uniqueness import Hashes, hashes, repeated

ENTERED_IN_ERROR = "entered in error"
MANIFEST = "manifest.json"  # of a release
AS_GUESSED = NotesSettings()
# Of a file of our batches.
AS_BATCHES = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")


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
                what = f"the note has more than {self._max_bytes:,} bytes"
                where = f"{self.name}, row {(rows + longer[0]) // self._per_row + 1}"
                raise InputError(what, where=where, hint=f"split it or raise {LARGER_NOTES}")
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
            what = f"duplicate id, already used in row {first}"
            where = f"{self.name}, row {again}"
            raise InputError(
                what, where=where, hint="ids must be unique; choose another column with --id"
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


def corpus_of(
    source: NotesSource,
    settings: NotesSettings = AS_GUESSED,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    name: str,
    suffix: str,
) -> NotesCorpus:
    """Return a corpus over a source's rows, after assigning column roles.

    Args:
        settings, label, keep: as in `open_corpus`.
        name: its name in messages. suffix: the format for writing it.

    Raises:
        InputError: missing or ambiguous columns.
    """
    per_row = notes_per_row(settings)
    if per_row > 1:
        if not isinstance(source, NoRows):  # sources of parts have one row per note already
            source = of_several(source, settings, name)
        keep = (*keep, TEXT_COLUMN)
    resolved = resolve(
        source.names,
        single(settings),
        name,
        label=label,
        keep=keep,
        optional_keys=source.optional_keys,
    )
    columns = resolved.columns if per_row == 1 else with_row_as_patient(resolved.columns)
    return NotesCorpus(
        columns,
        suffix,
        name,
        resolved.guessed,
        resolved.preset.name if resolved.preset else None,
        _source=source,
        _error_flag=resolved.error_flag,
        _max_bytes=settings.max_note_bytes,
        _per_row=per_row,
    )


__all__ = [
    "ENTERED_IN_ERROR",
    "NotesCorpus",
    "OpenedCorpus",
    "PartedCorpus",
    "concatenated",
    "corpus_of",
    "open_corpus",
]
LINES = (".txt", ".txt.gz", ".txt.zst")


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
            at = [bisect_left(list(accumulate(sizes)), number) for number in rows]
            (first, row), (second, again) = (
                (self.parts[index].name, number - sum(sizes[:index]))
                for index, number in zip(at, rows, strict=True)
            )
            what = f"duplicate id, already used in {first}, row {row}"
            hint = "ids must be unique across all parts; choose another column with --id"
            raise InputError(what, where=f"{second}, row {again}", hint=hint)


OpenedCorpus = NotesCorpus | PartedCorpus


def open_corpus(
    path: str | Location,
    settings: NotesSettings = AS_GUESSED,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
) -> OpenedCorpus:
    """Open notes: Parquet, CSV, TSV, JSONL (gzip or zstd by name), part files of one of these, or a
    folder of .txt.

    Args:
        path: a file, a folder, or a pattern such as `notes/*.parquet`; or its URL,
            `s3://bucket/notes/`.
        settings: column roles and encoding. The roles of notes in a release folder are those of its
            manifest.
        label, keep: columns to keep; utility is measured on labels.

    Raises:
        InputError: missing, damaged or empty files, an unknown file type, missing or ambiguous
            columns, or parts with different columns.
        UsageError: an unknown encoding.

    Warns with InputWarning about skipped files.
    """
    if isinstance(path, QueryPath):
        return corpus_of(
            path.source, settings, label=label, keep=keep, name="the query", suffix=".parquet"
        )
    path, settings = _of_release(as_location(path), settings)
    codec_name(settings.encoding)  # reject an unknown encoding even if the format does not use it
    if parts := delta_files(path) if is_delta(path) else part_files(path):
        return _open_parts(parts, settings, label=label, keep=keep, name=path.name)
    limit = row_limit(settings.max_note_bytes)
    source, suffix = open_source(path, settings.encoding, limit, settings.delimiter)
    return corpus_of(source, settings, label=label, keep=keep, name=path.name, suffix=suffix)


def _of_release(path: Location, settings: NotesSettings) -> tuple[Location, NotesSettings]:
    """Return the notes of a release folder and their roles, per the manifest; other notes as
    given.
    """
    if isinstance(path, RemotePath):
        return path, settings
    folder = path if (path / MANIFEST).is_file() else path.parent
    manifest = read_json(folder / MANIFEST)
    notes = manifest.get("notes") if isinstance(manifest, dict) else None
    file = notes.get("file") if isinstance(notes, dict) else None
    if not isinstance(file, str) or Path(file).name != file or path not in (folder, folder / file):
        return path, settings
    assert notes is not None
    roles = {
        role: name
        for role in ("text", "id", "patient")
        if isinstance(name := notes.get(role), str) and name
    }
    return folder / file, settings.but(
        preset="none",
        text=roles.get("text", settings.text),
        id=roles.get("id", settings.id),
        patient=roles.get("patient"),
    )


def _open_parts(
    files: Sequence[PartFile],
    settings: NotesSettings,
    *,
    label: tuple[str, ...],
    keep: tuple[str, ...],
    name: str,
) -> PartedCorpus:
    """Open part files as one corpus; column roles are assigned once for all.

    Raises InputError for missing or ambiguous columns, for a part with other columns than the
    first, or without any intact part.
    """
    opened = {file.name: _opened(file, settings) for file in files}
    intact = {name: source for name, source in opened.items() if not isinstance(source, NoRows)}
    if not intact:
        next(iter(opened.values())).read(())  # raises the error of the first part
    suffix = files[0].suffix
    if format_of(suffix).agree is None:  # a format with a header
        refuse_other_names(intact)
    columns = all_columns(intact.values())
    model = corpus_of(columns, settings, label=label, keep=keep, name=name, suffix=suffix)
    refuse_missing(intact, model.columns)
    sources = opened | typed(intact, suffix, model.columns.keep)
    parts = (model.of_part(name, source) for name, source in sources.items())
    return PartedCorpus(tuple(parts), name, model.columns, suffix, model.guessed, model.preset)


def _opened(file: PartFile, settings: NotesSettings) -> NotesSource:
    try:
        limit = row_limit(settings.max_note_bytes)
        source, _ = open_source(file.path, settings.encoding, limit, settings.delimiter)
        source = of_several(source, settings, file.name)
        duplicates = source.optional_keys.intersection(file.keys) or set(source.names).intersection(
            file.keys
        )
    except InputError as error:
        return NoRows(error=error)
    if duplicates:
        what = "a column has the same name as a key of the folder (key=value)"
        raise InputError(what, where=file.name, hint="rename one of the two")
    missing = {
        name: pa.scalar(None, kind) for name, kind in file.fills.items() if name not in source.names
    }
    return with_constants(
        source, missing | {key: pa.scalar(value, pa.string()) for key, value in file.keys.items()}
    )


def open_text(path: Path) -> Corpus:
    """Open text for training: notes in any supported format, or lines (.txt, also compressed), one
    text per line.

    Raises InputError for a missing, empty or damaged file, or invalid UTF-8; for lines when they
    are read.
    """
    if path.is_dir() or not path.name.lower().endswith(LINES):
        return open_corpus(path, NotesSettings()).without_markup()
    if not path.is_file():
        raise InputError("no such file or folder", where=path.name, hint="check the path")

    def batches() -> Iterator[pa.RecordBatch]:
        lines = enumerate(byte_lines(path), start=1)
        empty = True
        while some := [
            (f"line {n}", f"line {n}", decoded(line, path.name))
            for n, line in islice(lines, BATCH_ROWS)
        ]:
            empty = False
            yield from memory_corpus(some).batches()
        if empty:
            raise InputError(
                "the file is empty", where=path.name, hint="use a file with one text per line"
            )

    return MemoryCorpus(batches)


def without_markup(corpus: Corpus) -> Corpus:
    """Return a corpus of what is displayed of marked-up notes."""
    if isinstance(corpus, OpenedCorpus):
        return corpus.without_markup()
    return MemoryCorpus(lambda: map(visible_texts, corpus.batches()), corpus.columns, corpus.suffix)


def concatenated(notes: Corpus, added: Corpus) -> Corpus:
    """Return the texts of one corpus followed by those of another; kept columns may differ."""
    return MemoryCorpus(lambda: chain(notes.batches(), added.batches()))
