"""Notes drawn under the key until there are enough, with the rare-word floor applied, and written as a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.outputs import Maker
from clinveil.core.settings import NotesSettings
from clinveil.core.types import Say
from clinveil.corpus.corpus import ROLE_FIELDS, Columns
from clinveil.corpus.medtext import DEIDENTIFIED, UNK, dictionary, with_unknown
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import place_in, write_corpus
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import PlainNotes, read_notes
from clinveil.lm.sampling import SamplingConfig, generate
from clinveil.releases.manifest import CARD, NAME, SCHEMA, SUMS, SYNTHETIC

# What leaves has a manifest of its own, which lists the notes; it is the marker.
MAKER = Maker("synthesize", NAME, {"schema": SCHEMA, "kind": SYNTHETIC}, frozenset({CARD, SUMS}))
BATCH = 100
COLUMNS = Columns(text="text", note_id="note_id")
MOST_EMPTY = 1_000  # notes in a row without a word


ALWAYS = frozenset({UNK, DEIDENTIFIED})


@dataclass
class Floor:
    """What may be written.

    Attributes:
        allowed: words of at least so many patients. words, replaced: counted while notes pass.
    """

    allowed: frozenset[str] = field(repr=False)
    words: int = 0
    replaced: int = 0

    @classmethod
    def of(cls, training: PlainNotes, min_patients: int) -> Floor:
        """The floor that training notes set; words that a model makes up stand below it."""
        kept = dictionary(training.texts, training.patients, min_count=1, min_patients=min_patients).words
        return cls(ALWAYS | frozenset(kept))

    def apply(self, text: str) -> str:
        """A note with all other words as `<unk>`."""
        lines = []
        for line in text.split("\n"):
            row = line.split(" ")
            self.words += len(row)
            self.replaced += sum(word not in self.allowed for word in row)
            lines.append(" ".join(word if word in self.allowed else UNK for word in row))
        return "\n".join(lines)

    def plain(self, notes: PlainNotes) -> PlainNotes:
        """Real notes as `apply` would write them; nothing is counted."""
        return PlainNotes(tuple(with_unknown(t, self.allowed) for t in notes.texts), notes.note_ids, notes.patients)

    def below(self, texts: Iterable[str]) -> int:
        """Words that stand below the floor all the same: what reading the release back must not find."""
        return sum(1 for word in _words(texts) if word not in self.allowed)


def _words(texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in text.split())


@dataclass
class Counts:
    """What was drawn: notes and words written, those of the words that are `<unk>`, notes cut at the longest length,
    and notes without a word (left out)."""

    notes: int = 0
    words: int = 0
    unknown: int = 0
    truncated: int = 0
    empty: int = 0

    @property
    def unknown_share(self) -> float:
        """Of the words written, those that are `<unk>`."""
        return self.unknown / max(1, self.words)


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
    drawing: SamplingConfig,
    floor: Floor,
    wanted: Wanted,
    counts: Counts,
    say: Say,
) -> Iterator[pa.RecordBatch]:
    """Batches of synthetic notes, `synthetic-000001` and so on; `counts` is kept while they pass, and `say` is told.

    Raises:
        InputError: the model writes nothing but empty notes.
    """
    ids: list[str] = []
    texts: list[str] = []
    in_a_row = 0
    for note in generate(model, key, drawing):
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
    path, suffix = place_in(part, out, ".parquet")
    write_corpus(batches, path, COLUMNS, suffix, metadata={"clinveil": warning} if warning else None)
    return path


def read_back(path: Path) -> PlainNotes:
    """The notes as they were written."""
    return read_notes(open_corpus(path, NotesSettings(text="text", id="note_id")), prepared=True)
