"""Stages shared by kinds of release: preflight, identifier treatment, writing notes with new ids.

Vectors, neighbours and channel are kept for a resumed run; text is recomputed from the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clinveil.channel.apply import Obfuscated, Obfuscator
from clinveil.channel.channel import Channel
from clinveil.channel.tally import Tally
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.progress import track
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import word_set
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus, memory_corpus
from clinveil.corpus.open import open_corpus
from clinveil.corpus.part_facts import PartFacts
from clinveil.corpus.people import Patient
from clinveil.corpus.uniqueness import hashes, n_distinct
from clinveil.corpus.write import Writer
from clinveil.phi.name_index import NameIndex
from clinveil.phi.treatment.deidentifier import Deidentified, Deidentifier
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.releases.added import ALONE, SeriesCoverage
from clinveil.releases.crosswalk import CrosswalkOrder, Renamer, by_new_id, by_position, reordered, vault_batches
from clinveil.releases.finish import Places
from clinveil.releases.ledger import NO_HASHES, Hashes, text_hashes
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stage_timer import StageTimer
from clinveil.scale import Map, serial
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import Broken
from clinveil.vectors.count import over_words
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.releases.series import ReleaseSeries

CHARACTERS_PER_WORD = 6.6  # of MTSamples, punctuation and spaces included
HEAPS = (44.0, 0.445)  # word types = 44 · words^0.445, fitted on MTSamples
SMALL = 50


@dataclass(frozen=True, slots=True)
class Preflight:
    """Counts of one validating pass over the notes.

    Attributes:
        rows: notes read. patients: distinct patient ids. null: notes without text. empty: notes of no characters.
        characters: code points in total. skipped: rows left out by the preset of the source, by reason.
        hashes: (n_notes,) hashes for the ledger.
    """

    rows: int
    patients: int
    null: int
    empty: int
    characters: int
    skipped: Counter[str]
    hashes: Hashes = field(default_factory=lambda: NO_HASHES, repr=False, compare=False)

    @property
    def read(self) -> int:
        """All rows of the source, including those left out."""
        return self.rows + self.skipped.total()

    @property
    def tokens(self) -> int:
        """Estimated number of words."""
        return round(self.characters / CHARACTERS_PER_WORD)

    def over(self, workers: int) -> Map:
        """Return the executor for batches of these notes."""
        return over_words(self.tokens, workers)


@dataclass
class CorpusStats:
    """Statistics of batches of notes; additive, except for patients, who may occur in several batches.

    Attributes:
        rows, null, empty, characters: as in `Preflight`. hashes: hashes for the ledger, in pieces.
    """

    rows: int = 0
    null: int = 0
    empty: int = 0
    characters: int = 0
    hashes: list[Hashes] = field(default_factory=lambda: [NO_HASHES], repr=False)

    def take(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        text = batch.column(TEXT)
        lengths = pc.utf8_length(text)
        self.rows += batch.num_rows
        self.null += text.null_count
        self.empty += int(pc.sum(pc.equal(lengths, 0)).as_py() or 0)
        self.characters += int(pc.sum(lengths).as_py() or 0)
        self.hashes.append(text_hashes(text.to_pylist()))

    def add(self, other: CorpusStats) -> None:
        """Add other statistics."""
        for name in ("rows", "null", "empty", "characters", "hashes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def preflight(self, patients: int, skipped: Counter[str]) -> Preflight:
        """Return the result. Raises InputError if there are no notes."""
        if not self.rows:
            raise InputError("contains no notes", hint="pass a file with at least one row")
        hashes = np.concatenate(self.hashes)
        return Preflight(self.rows, patients, self.null, self.empty, self.characters, skipped, hashes)


def preflight(corpus: Corpus, say: Say = lambda _: None) -> Preflight:
    """Read all notes once to count them and to detect a broken file early. Raises InputError."""
    stats, patients = CorpusStats(), []
    for batch in track(corpus.batches(), "notes read", say, size=lambda batch: batch.num_rows):
        stats.take(batch)
        patients.append(hashes(batch.column(PATIENT_ID).unique().to_pylist()))
    return stats.preflight(n_distinct(patients), Counter(getattr(corpus, "skipped", {})))


@dataclass(frozen=True)
class MeasuredWith:
    """Additional input of the measures; without effect on the released notes.

    Attributes:
        pairs: files of word pairs with human scores, for `utility.vectors`.
        public: public texts about the same patients, by source patient id, for linkage.
    """

    pairs: tuple[Path, ...] = ()
    public: Corpus | None = field(default=None, repr=False)


NOTHING_MORE = MeasuredWith()


@dataclass(frozen=True)
class ReleaseContext:
    """Context of all stages.

    Attributes:
        facts: facts per part file; empty for a single file. over: executor for parts.
        broken: unreadable parts; the run stops after identifier detection on the others.
        measured_with: word pairs and public texts for the measures.
    """

    corpus: Corpus
    folder: Places
    key: Key
    settings: ReleaseSettings
    known: dict[str, Patient]
    imported: Vectors | None = None
    say: Say = lambda _: None
    facts: tuple[PartFacts, ...] = ()
    over: Map = serial
    broken: Broken = field(default_factory=Broken)
    measured_with: MeasuredWith = NOTHING_MORE

    @property
    def added(self) -> NewNotes | None:
        """The new notes, if they are added to a release."""
        return self.corpus if isinstance(self.corpus, NewNotes) else None

    @property
    def names(self) -> frozenset[str]:
        """Words of known patients' names, in lookup form."""
        return word_set(" ".join(patient.name) for patient in self.known.values())

    def deidentifier(self, index: NameIndex | None = None) -> Deidentifier | None:
        """Return the deidentifier, with an index of names from other notes; None with `--no-phi`."""
        if not self.settings.phi:
            return None
        engine = Deidentifier.of(self.settings.identifiers, self.key, patients=self.known)
        return engine.with_finder(engine.finder.with_context(index))

    def obfuscator(self, channel: Channel) -> Obfuscator:
        """Return the obfuscator of the release."""
        return Obfuscator(channel, self.key, align=True)


@dataclass
class Making:
    """State of a release in progress.

    Attributes:
        seeds: of training and measuring. series: the earlier releases, if notes are added to them.
        coverage: what was measured on the series; set after `make`.
    """

    job: ReleaseContext
    found: Preflight
    timer: StageTimer
    seeds: Mapping[str, int]
    series: ReleaseSeries | None = None
    coverage: SeriesCoverage = ALONE


def protect(
    job: ReleaseContext, on_index: Callable[[NameIndex], None] | None = None
) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """Return the notes with identifiers treated (unchanged with `--no-phi`), span counts by label (None without
    detection), and skipped notes by reason. `on_index` as in `deidentify_corpus`."""
    deidentifier = job.deidentifier()
    found: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    if deidentifier is None:
        return job.corpus, None, skipped
    path = job.folder.work / "protected.parquet"
    writer: pq.ParquetWriter | None = None
    try:
        with opened_for(job.settings) as over:
            for result in _tracked(
                job, deidentify_corpus(job.corpus, deidentifier, over, on_index=on_index, say=job.say)
            ):
                found += result.counts
                skipped += result.skipped
                writer = writer or pq.ParquetWriter(path, result.batch.schema, compression="zstd")
                writer.write_batch(result.batch)
    finally:
        if writer:
            writer.close()
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    return open_corpus(path, roles, keep=job.corpus.columns.keep), found, skipped


@dataclass(frozen=True)
class Target:
    """Output location of released notes, crosswalk and alignment.

    Attributes:
        path: of the notes. vault: folder of crosswalk and alignment. work: scratch folder.
        columns, suffix: of source and release. order: keyed or source.
    """

    path: Path
    vault: Path
    work: Path
    columns: Columns
    suffix: str
    order: str

    @classmethod
    def of(cls, job: ReleaseContext, path: Path) -> Target:
        """Return the target of a release of a single file."""
        folders = path, job.folder.vault, job.folder.work
        return cls(*folders, job.corpus.columns, job.corpus.suffix, job.settings.order)

    def write(self, results: Iterator[Obfuscated], key: Key) -> Tally:
        """Write the notes with new ids; return the token counts."""
        rename, tally = Renamer(key, patients=self.columns.patient_id is not None), Tally()

        def written(write: Callable[[pa.RecordBatch, pa.RecordBatch | None], None]) -> Iterator[pa.RecordBatch]:
            nonlocal tally
            for result in results:
                tally += result.tally
                renamed, crosswalk = rename(result.batch)
                write(crosswalk, result.alignment)
                yield renamed

        with Writer(self.path, self.columns, self.suffix) as notes, _vault_tables(self.vault) as write:
            for batch in self._in_order(written(write)):
                notes.write(batch)
        return tally

    def _in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the renamed notes in release order; files of a folder need no sorting."""
        if self.order == "source" or not self.suffix:
            return batches
        return reordered(batches, by_new_id, self.work / "order")

    def in_source_order(self, released: Corpus) -> Iterator[pa.RecordBatch]:
        """Yield the released notes in source order; files of a .txt folder are read by name."""
        if self.path.is_dir():
            yield from self._by_name()
        elif self.order == "source":
            yield from released.batches()
        else:
            positions = CrosswalkOrder(vault_batches(self.vault, "crosswalk"), self.work / "crosswalk order")
            with closing(positions):
                yield from reordered(released.batches(), by_position(positions), self.work / "read back")

    def _by_name(self) -> Iterator[pa.RecordBatch]:
        left = {file.stem for file in self.path.iterdir()}
        for batch in vault_batches(self.vault, "crosswalk"):
            ids = [i for i in batch.column("note_id").to_pylist() if i in left]
            left.difference_update(ids)
            texts = [(self.path / f"{i}.txt").read_bytes().decode("utf-8") for i in ids]
            yield from memory_corpus([(i, i, text) for i, text in zip(ids, texts, strict=True)]).batches()
        yield from memory_corpus([(i, i, "") for i in sorted(left)]).batches()


def as_written(entered: Corpus) -> Iterator[Obfuscated]:
    """Wrap notes that are released with unchanged text."""
    return (Obfuscated(batch, Tally(notes=batch.num_rows)) for batch in entered.batches())


def _tracked(job: ReleaseContext, results: Iterator[Deidentified]) -> Iterator[Deidentified]:
    return track(results, "notes", job.say, size=lambda one: one.batch.num_rows)


@contextmanager
def _vault_tables(vault: Path) -> Iterator[Callable[[pa.RecordBatch, pa.RecordBatch | None], None]]:
    """Open `crosswalk.parquet` and `alignment.parquet` of a vault; yields a function that appends to both."""
    writers: dict[str, pq.ParquetWriter] = {}

    def write(crosswalk: pa.RecordBatch, alignment: pa.RecordBatch | None) -> None:
        for name, batch in (("crosswalk", crosswalk), ("alignment", alignment)):
            if batch is not None:
                if name not in writers:
                    writers[name] = pq.ParquetWriter(vault / f"{name}.parquet", batch.schema)
                writers[name].write_batch(batch)

    try:
        yield write
    finally:
        for name, writer in writers.items():
            writer.close()
            (vault / f"{name}.parquet").chmod(0o600)


def released_in_order(job: ReleaseContext, path: Path, released: Corpus) -> Iterator[pa.RecordBatch]:
    """Yield the released notes in source order."""
    return Target.of(job, path).in_source_order(released)
