"""Notes in several files of one layout, each of which can be worked on alone: a folder of part files, or a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.corpus.corpus import NOTE_ID, Columns, Corpus
from clinveil.corpus.open import NotesCorpus
from clinveil.corpus.uniqueness import HashLog, hashes, refuse_repeats


@dataclass(frozen=True)
class PartedCorpus:
    """A corpus of part files, in the order of their names.

    Attributes:
        parts: each a corpus that can be sent to another process and read there; all have the same columns.
        columns, suffix: those of every part. name: of the folder or pattern, for messages.
        skipped: rows that the last pass left out, by reason.
    """

    parts: tuple[NotesCorpus, ...]
    name: str
    columns: Columns
    suffix: str
    skipped: Counter[str] = field(default_factory=Counter)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows of all parts, in order. Raises InputError for an id that stands twice, in one part or in two."""
        self.skipped.clear()
        with closing(HashLog()) as log:
            for part in self.parts:
                for batch in part.batches():
                    log.add(hashes(batch.column(NOTE_ID).to_pylist()))
                    yield batch
                self.skipped.update(part.skipped)
            refuse_repeats(log, self._ids, self.name)

    def _ids(self) -> Iterator[list[str]]:
        return (batch.column(NOTE_ID).to_pylist() for part in self.parts for batch in part.batches())


def parts_of(corpus: Corpus) -> tuple[Corpus, ...]:
    """The parts of a corpus; of one that is a single file, itself."""
    return corpus.parts if isinstance(corpus, PartedCorpus) else (corpus,)
