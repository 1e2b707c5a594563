"""Notes in several files of one layout, each of which can be worked on alone: a folder of part files, or a pattern."""

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
    """A corpus of part files, in the order of their paths.

    Attributes:
        parts: each a corpus that can be sent to another process and read there; all have the same columns. One that is
            damaged says so when it is read, so that the others can be worked on.
        columns, suffix, guessed, preset: those of every part. name: of the folder or pattern, for messages.
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
        """All rows of all parts, in order. Raises InputError for an id that stands twice, in one part or in two."""
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
                raise InputError("it holds no notes", where=self.name, hint="none of its parts has a row")
            self._refuse_repeats(log)

    def refuse_repeats(self) -> None:
        """Raise InputError, which names both parts, for an id that stands twice; reads the ids and nothing else."""
        with closing(HashLog()) as log:
            for part in self.parts:
                for ids in part.ids():
                    log.add(hashes(ids))
            self._refuse_repeats(log)

    def _refuse_repeats(self, log: HashLog) -> None:
        found = repeated(log, lambda: (ids for part in self.parts for ids in part.ids()))
        if found:
            (first, row), (second, again) = (self._at(number) for number in found)
            what = f"its id stands in {first}, row {row} already"
            raise InputError(what, where=f"{second}, row {again}", hint="ids must be unique over all parts")

    def _at(self, number: int) -> tuple[str, int]:
        """The part in which a row of all stands, and which row of it that is; both count from 1."""
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
    """The corpus of some part files; the columns get their roles once.

    Args:
        settings, label, keep: as in `open_corpus`. name: of all parts together.

    Raises:
        InputError: columns that do not fit, a part whose columns differ from those of the first, no part that is whole.
    """
    warn_unchecked(*(file.path for file in files))
    opened = {file.name: _opened(file, settings) for file in files}
    whole = {name: source for name, source in opened.items() if not isinstance(source, Damaged)}
    if not whole:
        next(iter(opened.values())).read(())  # says why
    suffix = files[0].suffix
    if has_header(suffix):
        refuse_other_names(whole)
    names = AllNames(tuple(whole.values()))
    model = corpus_of(names, settings, label=label, keep=keep, name=name, suffix=suffix)
    refuse_missing(whole, model.columns)
    sources = opened | typed(whole, suffix, model.columns.keep)
    parts = (model.of_part(name, source) for name, source in sources.items())
    return PartedCorpus(tuple(parts), name, model.columns, suffix, model.guessed, model.preset)


def _opened(file: PartFile, settings: NotesSettings) -> Source:
    try:
        source: Source
        source, _ = open_source(file.path, settings.encoding, row_limit(settings.max_note_bytes))
        if lacks := {name: kind for name, kind in file.fills.items() if name not in source.names}:
            source = Filled(source, lacks)
        twice = source.optional_keys.intersection(file.keys) or set(source.names).intersection(file.keys)
    except InputError as error:
        return Damaged.by(error)
    if twice:
        what = "a column has the name of a key of its folder"
        raise InputError(what, where=file.name, hint="rename one of the two")
    return KeyedSource(source, file.keys) if file.keys else source
