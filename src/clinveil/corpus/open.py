"""`open_corpus`: open notes in a file or in part files as a restartable stream with known column
roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from clinveil.core import InputError, Location, NotesSettings, RemotePath, as_location, read_json
from clinveil.corpus.columns import resolve
from clinveil.corpus.corpus import (
    BATCH_ROWS,
    NOTE_ID,
    PATIENT_ID,
    TEXT,
    Corpus,
    MemoryCorpus,
    memory_corpus,
    visible_texts,
)
from clinveil.corpus.file_format import NotesSource
from clinveil.corpus.formats import format_of, open_source
from clinveil.corpus.notes_corpus import NotesCorpus, OpenedCorpus, PartedCorpus
from clinveil.corpus.part_columns import (
    NoRows,
    all_columns,
    refuse_missing,
    refuse_other_names,
    typed,
    with_constants,
)
from clinveil.corpus.parts import PartFile, delta_files, is_delta, part_files
from clinveil.corpus.several_texts import (
    TEXT_COLUMN,
    notes_per_row,
    of_several,
    single,
    with_row_as_patient,
)
from clinveil.corpus.sql import QueryPath
from clinveil.corpus.streams import (
    byte_lines,
    codec_name,
    decoded,
    row_limit,
)

MANIFEST = "manifest.json"  # of a release
AS_GUESSED = NotesSettings()
# Of a file of our batches.
AS_BATCHES = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")


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


LINES = (".txt", ".txt.gz", ".txt.zst")


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
        problem = "a column has the same name as a key of the folder (key=value)"
        raise InputError(problem, where=file.name, hint="rename one of the two")
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
