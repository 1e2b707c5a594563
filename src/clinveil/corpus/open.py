"""`open_corpus`: open notes as a restartable stream with known column roles."""

from __future__ import annotations

from pathlib import Path

from clinveil.core.remote import place
from clinveil.core.settings import NotesSettings
from clinveil.corpus.delta import delta_files
from clinveil.corpus.file_format import open_source
from clinveil.corpus.notes_corpus import AS_GUESSED, ENTERED_IN_ERROR, NotesCorpus, corpus_of
from clinveil.corpus.part_files import is_delta, part_files, warn_unchecked
from clinveil.corpus.parts import PartedCorpus, open_parts
from clinveil.corpus.sql import QueryPath
from clinveil.corpus.streams import codec_name, row_limit

__all__ = ["ENTERED_IN_ERROR", "NotesCorpus", "OpenedCorpus", "PartedCorpus", "corpus_of", "open_corpus"]

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

    Warns with InputWarning about compressed files without checksum, and about skipped files.
    """
    if isinstance(path, QueryPath):
        return corpus_of(path.source, settings, label=label, keep=keep, name="the query", suffix=".parquet")
    path = place(path)
    codec_name(settings.encoding)  # reject an unknown encoding even if the format does not use it
    if parts := delta_files(path) if is_delta(path) else part_files(path):
        return open_parts(parts, settings, label=label, keep=keep, name=path.name)
    warn_unchecked(path)
    source, suffix = open_source(path, settings.encoding, row_limit(settings.max_note_bytes))
    return corpus_of(source, settings, label=label, keep=keep, name=path.name, suffix=suffix)
