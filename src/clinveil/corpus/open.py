"""`open_corpus`: open notes in a file or in part files as a restartable stream with known column roles."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.locations import place
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import BATCH_ROWS, NOTE_ID, Columns, Corpus, MemoryCorpus, memory_corpus
from clinveil.corpus.file_format import Source, format_of, open_source
from clinveil.corpus.notes_corpus import AS_GUESSED, ENTERED_IN_ERROR, NotesCorpus, corpus_of
from clinveil.corpus.part_columns import (
    NoRows,
    all_columns,
    refuse_missing,
    refuse_other_names,
    typed,
    with_constants,
)
from clinveil.corpus.part_files import PartFile, delta_files, is_delta, part_files
from clinveil.corpus.sql import QueryPath
from clinveil.corpus.streams import byte_lines, codec_name, decoded, row_limit
from clinveil.corpus.uniqueness import Hashes, hashes, repeated

__all__ = ["ENTERED_IN_ERROR", "NotesCorpus", "OpenedCorpus", "PartedCorpus", "corpus_of", "joined", "open_corpus"]
LINES = (".txt", ".txt.gz", ".txt.zst")


@dataclass(frozen=True)
class PartedCorpus:
    """A corpus of part files, sorted by path.

    Attributes:
        parts: corpora with the same columns that can be sent to other processes. Reading a damaged part raises its
            error, so that the other parts can be processed.
        columns, suffix, guessed, preset: the same for every part. name: of the folder or pattern, for messages.
        skipped: rows that the last pass left out, by reason.
    """

    parts: tuple[NotesCorpus, ...]
    name: str
    columns: Columns
    suffix: str
    guessed: tuple[str, ...] = ()
    preset: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows of all parts, in order. Raises InputError for a duplicate id, within or across parts."""
        self.skipped.clear()
        ids: list[Hashes] = []
        for part in self.parts:
            for batch in part.batches():
                ids.append(hashes(batch.column(NOTE_ID).to_pylist()))
                yield batch
            self.skipped.update(part.skipped)
        if not any(map(len, ids)) and not self.skipped:
            raise InputError("contains no notes", where=self.name, hint="check the path; no part has a row")
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
                (self.parts[index].name, number - sum(sizes[:index])) for index, number in zip(at, rows, strict=True)
            )
            what = f"duplicate id, already used in {first}, row {row}"
            hint = "ids must be unique across all parts; choose another column with --id"
            raise InputError(what, where=f"{second}, row {again}", hint=hint)


OpenedCorpus = NotesCorpus | PartedCorpus


def open_corpus(
    path: str | Path,
    settings: NotesSettings = AS_GUESSED,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
) -> OpenedCorpus:
    """Open notes: Parquet, CSV, TSV, JSONL (gzip or zstd by name), part files of one of these, or a folder of .txt.

    Args:
        path: a file, a folder, or a pattern such as `notes/*.parquet`; or its URL, `s3://bucket/notes/`.
        settings: column roles and encoding.
        label, keep: columns to keep; utility is measured on labels.

    Raises:
        InputError: missing, damaged or empty files, an unknown file type, missing or ambiguous columns, or parts with
            different columns.
        UsageError: an unknown encoding.

    Warns with InputWarning about skipped files.
    """
    if isinstance(path, QueryPath):
        return corpus_of(path.source, settings, label=label, keep=keep, name="the query", suffix=".parquet")
    path = place(path)
    codec_name(settings.encoding)  # reject an unknown encoding even if the format does not use it
    if parts := delta_files(path) if is_delta(path) else part_files(path):
        return _open_parts(parts, settings, label=label, keep=keep, name=path.name)
    source, suffix = open_source(path, settings.encoding, row_limit(settings.max_note_bytes))
    return corpus_of(source, settings, label=label, keep=keep, name=path.name, suffix=suffix)


def _open_parts(
    files: Sequence[PartFile], settings: NotesSettings, *, label: tuple[str, ...], keep: tuple[str, ...], name: str
) -> PartedCorpus:
    """Open part files as one corpus; column roles are assigned once for all.

    Raises InputError for missing or ambiguous columns, for a part with other columns than the first, or without any
    intact part.
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


def _opened(file: PartFile, settings: NotesSettings) -> Source:
    try:
        source, _ = open_source(file.path, settings.encoding, row_limit(settings.max_note_bytes))
        duplicates = source.optional_keys.intersection(file.keys) or set(source.names).intersection(file.keys)
    except InputError as error:
        return NoRows(error=error)
    if duplicates:
        what = "a column has the same name as a key of the folder (key=value)"
        raise InputError(what, where=file.name, hint="rename one of the two")
    missing = {name: pa.scalar(None, kind) for name, kind in file.fills.items() if name not in source.names}
    return with_constants(source, missing | {key: pa.scalar(value, pa.string()) for key, value in file.keys.items()})


def open_text(path: Path) -> Corpus:
    """Open text for training: notes in any supported format, or lines (.txt, also compressed), one text per line.

    Raises InputError for a missing, empty or damaged file, or invalid UTF-8; for lines when they are read.
    """
    if path.is_dir() or not path.name.lower().endswith(LINES):
        return open_corpus(path, NotesSettings())
    if not path.is_file():
        raise InputError("no such file or folder", where=path.name, hint="check the path")

    def batches() -> Iterator[pa.RecordBatch]:
        lines, empty = enumerate(byte_lines(path), start=1), True
        while some := [(f"line {n}", f"line {n}", decoded(line, path.name)) for n, line in islice(lines, BATCH_ROWS)]:
            empty = False
            yield from memory_corpus(some).batches()
        if empty:
            raise InputError("the file is empty", where=path.name, hint="use a file with one text per line")

    return MemoryCorpus(batches)


def joined(notes: Corpus, more: Corpus) -> Corpus:
    """Return the texts of one corpus followed by those of another; kept columns may differ."""
    return MemoryCorpus(lambda: chain(notes.batches(), more.batches()))
