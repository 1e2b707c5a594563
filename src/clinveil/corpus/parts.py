"""Notes in several part files with the same columns, given as a folder or a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, Columns
from clinveil.corpus.file_format import Source, has_header, open_source
from clinveil.corpus.notes_corpus import AS_GUESSED, NotesCorpus, corpus_of
from clinveil.corpus.part_columns import AllNames, Damaged, Filled, refuse_missing, refuse_other_names, typed
from clinveil.corpus.part_files import KeyedSource, PartFile, warn_unchecked
from clinveil.corpus.streams import row_limit
from clinveil.corpus.uniqueness import HashLog, hashes, repeated


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
        rows = 0
        with closing(HashLog()) as log:
            for part in self.parts:
                for batch in part.batches():
                    rows += batch.num_rows
                    log.add(hashes(batch.column(NOTE_ID).to_pylist()))
                    yield batch
                self.skipped.update(part.skipped)
            if not rows and not self.skipped:
                raise InputError("contains no notes", where=self.name, hint="check the path; no part has a row")
            self._refuse_repeats(log)

    def refuse_repeats(self) -> None:
        """Raise InputError, which names both parts, for a duplicate id; only the ids are read."""
        with closing(HashLog()) as log:
            for part in self.parts:
                for ids in part.ids():
                    log.add(hashes(ids))
            self._refuse_repeats(log)

    def _refuse_repeats(self, log: HashLog) -> None:
        rows = repeated(log, lambda: (ids for part in self.parts for ids in part.ids()))
        if rows:
            (first, row), (second, again) = (self._position(number) for number in rows)
            what = f"duplicate id, already used in {first}, row {row}"
            raise InputError(what, where=f"{second}, row {again}", hint="ids must be unique across all parts")

    def _position(self, number: int) -> tuple[str, int]:
        """Return the part that contains a row of the corpus, and its row number there; both count from 1."""
        for part in self.parts:
            rows = sum(map(len, part.ids()))
            if number <= rows:
                break
            number -= rows
        return part.name, number


def open_parts(
    files: Sequence[PartFile],
    settings: NotesSettings = AS_GUESSED,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    name: str,
) -> PartedCorpus:
    """Open part files as one corpus; column roles are assigned once for all.

    Args:
        settings, label, keep: as in `open_corpus`. name: of the folder or pattern.

        Raises:
            InputError: missing or ambiguous columns, a part with other columns than the first, or no intact part.
    """
    warn_unchecked(*(file.path for file in files))
    opened = {file.name: _opened(file, settings) for file in files}
    intact = {name: source for name, source in opened.items() if not isinstance(source, Damaged)}
    if not intact:
        next(iter(opened.values())).read(())  # raises the error of the first part
    suffix = files[0].suffix
    if has_header(suffix):
        refuse_other_names(intact)
    names = AllNames(tuple(intact.values()))
    model = corpus_of(names, settings, label=label, keep=keep, name=name, suffix=suffix)
    refuse_missing(intact, model.columns)
    sources = opened | typed(intact, suffix, model.columns.keep)
    parts = (model.of_part(name, source) for name, source in sources.items())
    return PartedCorpus(tuple(parts), name, model.columns, suffix, model.guessed, model.preset)


def _opened(file: PartFile, settings: NotesSettings) -> Source:
    try:
        source: Source
        source, _ = open_source(file.path, settings.encoding, row_limit(settings.max_note_bytes))
        if missing := {name: kind for name, kind in file.fills.items() if name not in source.names}:
            source = Filled(source, missing)
        duplicates = source.optional_keys.intersection(file.keys) or set(source.names).intersection(file.keys)
    except InputError as error:
        return Damaged.by(error)
    if duplicates:
        what = "a column has the same name as a key of the folder (key=value)"
        raise InputError(what, where=file.name, hint="rename one of the two")
    return KeyedSource(source, file.keys) if file.keys else source
