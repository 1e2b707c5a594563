"""Drawing notes under the key until there are enough, and writing them as a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.outputs import Maker
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import ROLE_FIELDS, Columns
from clinveil.corpus.file_format import OWN, suffix_of
from clinveil.corpus.medtext import UNK
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import PlainNotes, read_notes
from clinveil.lm.sampling import Drawing, write_notes
from clinveil.release.manifest import CARD, NAME, SCHEMA, SUMS, SYNTHETIC
from clinveil.release.synthesis.floor import Floor

# What leaves has a manifest of its own, which lists the notes; it is the marker.
MAKER = Maker("synthesize", NAME, {"schema": SCHEMA, "kind": SYNTHETIC}, frozenset({CARD, SUMS}))
BATCH = 100
COLUMNS = Columns(text="text", note_id="note_id")
MOST_EMPTY = 1_000  # notes in a row without a word


@dataclass
class Counts:
    """What was drawn: notes and words written, those of the words that are `<unk>`, notes cut at the longest length,
    and notes without a word (left out)."""

    notes: int = 0
    words: int = 0
    unknown: int = 0
    truncated: int = 0
    empty: int = 0


@dataclass(frozen=True)
class Wanted:
    """When it is enough: a number of notes, or of words."""

    notes: int | None
    words: int

    def enough(self, counts: Counts) -> bool:
        """Whether it is reached."""
        return counts.notes >= self.notes if self.notes is not None else counts.words >= self.words


def draw_notes(
    model: LanguageModel,
    key: Key,
    drawing: Drawing,
    floor: Floor,
    wanted: Wanted,
    counts: Counts,
    say: Callable[[str], None],
) -> Iterator[pa.RecordBatch]:
    """Batches of synthetic notes, `synthetic-000001` and so on; `counts` is kept while they pass, and `say` is told.

    Raises:
        InputError: the model writes nothing but empty notes.
    """
    ids: list[str] = []
    texts: list[str] = []
    in_a_row = 0
    for note in write_notes(model, key, drawing):
        text = floor.apply(own) if (own := model.vocabulary.decode(note.ids.tolist())) else ""
        in_a_row = 0 if text else in_a_row + 1
        if in_a_row >= MOST_EMPTY:
            raise InputError("the model writes empty notes only", remedy="train it longer")
        if not text:
            counts.empty += 1
            continue
        counts.notes += 1
        own_words = text.split()
        counts.words += len(own_words)
        counts.unknown += own_words.count(UNK)
        counts.truncated += note.truncated
        ids.append(f"synthetic-{counts.notes:06d}")
        texts.append(text)
        if len(ids) == BATCH or wanted.enough(counts):
            yield _batch(ids, texts)
            ids, texts = [], []
            say(f"{counts.notes:,} notes written, {counts.words:,} words")
        if wanted.enough(counts):
            return


def _batch(ids: list[str], texts: list[str]) -> pa.RecordBatch:
    columns = [ids, [None] * len(ids), texts]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, ROLE_FIELDS, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS))


def write_to(part: Path, out: Path, batches: Iterator[pa.RecordBatch], warning: str | None) -> Path:
    """One file where OUT has a known suffix, else a folder with `notes.parquet`; says which file."""
    suffix, path = suffix_of(out) or ".parquet", part
    if not suffix_of(out):
        part.mkdir(mode=0o700)
        path = part / OWN
    write_corpus(batches, path, COLUMNS, suffix, metadata={"clinveil": warning} if warning else None)
    return path


def read_back(path: Path) -> PlainNotes:
    """The notes as they were written."""
    return read_notes(open_corpus(path, NotesSettings(text="text", id="note_id")), prepared=True)
