"""The stages that kinds of release share: read the notes once, replace identifiers, write notes under new ids.

What is no text (vectors, neighbours, channel) is kept for a resumed run; what is text is made anew from the key.
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
from clinveil.corpus.uniqueness import HashLog, count_repeats, hashes
from clinveil.corpus.write import Writer
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.name_index import NameIndex
from clinveil.phi.passes import deidentify_corpus
from clinveil.releases.added import ALONE, OnBoth
from clinveil.releases.crosswalk import CrosswalkOrder, Renamer, by_new_id, by_place, ledger_batches, reordered
from clinveil.releases.ledger import NO_HASHES, Hashes, text_hashes
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.publish import Places
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
    """What one validating pass over the notes found.

    Attributes:
        rows: notes read. patients: distinct patient ids. null: notes without text. empty: notes of no characters.
        characters: code points in all. skipped: rows that the source's preset leaves out, by reason.
        hashes: (n_notes,) what the ledger knows notes by.
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
        """All rows of the source, those that its preset leaves out included."""
        return self.rows + self.skipped.total()

    @property
    def tokens(self) -> int:
        """Estimated words."""
        return round(self.characters / CHARACTERS_PER_WORD)

    def over(self, workers: int) -> Map:
        """Who works on batches of these notes."""
        return over_words(self.tokens, workers)


@dataclass
class CorpusStats:
    """What is seen of notes, batch by batch; sights add up, but for the patients, of whom one may stand in several.

    Attributes:
        rows, null, empty, characters: as in `Preflight`. hashes: what the ledger knows the notes by, in pieces.
    """

    rows: int = 0
    null: int = 0
    empty: int = 0
    characters: int = 0
    hashes: list[Hashes] = field(default_factory=lambda: [NO_HASHES], repr=False)

    def take(self, batch: pa.RecordBatch) -> None:
        """See a batch."""
        text = batch.column(TEXT)
        lengths = pc.utf8_length(text)
        self.rows += batch.num_rows
        self.null += text.null_count
        self.empty += int(pc.sum(pc.equal(lengths, 0)).as_py() or 0)
        self.characters += int(pc.sum(lengths).as_py() or 0)
        self.hashes.append(text_hashes(text.to_pylist()))

    def add(self, other: CorpusStats) -> None:
        """See what another one saw."""
        for name in ("rows", "null", "empty", "characters", "hashes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def preflight(self, patients: int, skipped: Counter[str]) -> Preflight:
        """The result. Raises InputError where there is no note."""
        if not self.rows:
            raise InputError("there is no note in it", hint="name a file with at least one row")
        hashes = np.concatenate(self.hashes)
        return Preflight(self.rows, patients, self.null, self.empty, self.characters, skipped, hashes)


def preflight(corpus: Corpus, say: Say = lambda _: None) -> Preflight:
    """Read all notes once: count them, and let a broken file fail before anything is made. Raises InputError."""
    sight, patients = CorpusStats(), 0
    with closing(HashLog()) as log:
        for batch in track(corpus.batches(), "notes read", say, size=lambda batch: batch.num_rows):
            sight.take(batch)
            found = hashes(batch.column(PATIENT_ID).unique().to_pylist())
            log.add(found)
            patients += len(found)
        patients -= count_repeats(log)
    return sight.preflight(patients, Counter(getattr(corpus, "skipped", {})))


@dataclass(frozen=True)
class MeasuredWith:
    """What a release is measured with in addition to its own notes; it changes no released byte.

    Attributes:
        pairs: files of word pairs with human scores, for `utility.vectors`.
        public: public texts about the same patients, by source patient id, for linkage.
    """

    pairs: tuple[Path, ...] = ()
    public: Corpus | None = field(default=None, repr=False)


NOTHING_MORE = MeasuredWith()


@dataclass(frozen=True)
class ReleaseContext:
    """What every stage works with.

    Attributes:
        facts: of part files, what is known of each; empty for one file. over: who works on the parts.
        broken: parts that cannot be read: without them identifiers are looked for, and nothing more.
        measured_with: word pairs and public texts that the measures use.
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
        """The notes, where they are added to a release."""
        return self.corpus if isinstance(self.corpus, NewNotes) else None

    @property
    def names(self) -> frozenset[str]:
        """Words of the names of known patients, lookup forms."""
        return word_set(" ".join(patient.name) for patient in self.known.values())

    def deidentifier(self, heard: NameIndex | None = None) -> Deidentifier | None:
        """What finds and treats PHI, with what the notes said of one another; None with `--no-phi`."""
        if not self.settings.phi:
            return None
        made = Deidentifier.of(self.settings.identifiers, self.key, patients=self.known)
        return made.with_finder(made.finder.with_context(heard))

    def obfuscator(self, channel: Channel) -> Obfuscator:
        """What draws the released words."""
        return Obfuscator(channel, self.key, align=True)


@dataclass
class Making:
    """A release while it is made.

    Attributes:
        seeds: of training and measuring. both: the release that is added to, together with this one.
        on_both: what was measured on both; known after `make`.
    """

    job: ReleaseContext
    found: Preflight
    clock: StageTimer
    seeds: Mapping[str, int]
    both: ReleaseSeries | None = None
    on_both: OnBoth = ALONE


def protect(
    job: ReleaseContext, heard: Callable[[NameIndex], None] | None = None
) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """The notes as they enter the channel, treated in the scratch folder or (with `--no-phi`) as they are; what was
    found in them (None where nobody looked); and the notes left out, by reason. `heard` as for `deidentify_corpus`."""
    deidentifier = job.deidentifier()
    found: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    if deidentifier is None:
        return job.corpus, None, skipped
    path = job.folder.work / "protected.parquet"
    writer: pq.ParquetWriter | None = None
    try:
        with opened_for(job.settings) as over:
            for result in _tracked(job, deidentify_corpus(job.corpus, deidentifier, over, on_index=heard, say=job.say)):
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
    """Where released notes go: one file or folder, with its crosswalk and its alignment.

    Attributes:
        path: of the notes. vault: the folder of crosswalk and alignment. work: for scratch.
        columns, suffix: of the source, and so of the release. order: keyed or source.
    """

    path: Path
    vault: Path
    work: Path
    columns: Columns
    suffix: str
    order: str

    @classmethod
    def of(cls, job: ReleaseContext, path: Path) -> Target:
        """The notes of a job that is of one file."""
        where = path, job.folder.vault, job.folder.work
        return cls(*where, job.corpus.columns, job.corpus.suffix, job.settings.order)

    def write(self, results: Iterator[Obfuscated], key: Key) -> Tally:
        """Write the notes under new ids; tells what became of their tokens."""
        rename, tally = Renamer(key, patients=self.columns.patient_id is not None), Tally()

        def written(ledger: Callable[[pa.RecordBatch, pa.RecordBatch | None], None]) -> Iterator[pa.RecordBatch]:
            nonlocal tally
            for result in results:
                tally += result.tally
                renamed, crosswalk = rename(result.batch)
                ledger(crosswalk, result.alignment)
                yield renamed

        with Writer(self.path, self.columns, self.suffix) as notes, _ledger(self.vault) as ledger:
            for batch in self._in_order(written(ledger)):
                notes.write(batch)
        return tally

    def _in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The renamed notes as they are released; the files of a folder have no order but that of their names."""
        if self.order == "source" or not self.suffix:
            return batches
        return reordered(batches, by_new_id, self.work / "order")

    def in_source_order(self, released: Corpus) -> Iterator[pa.RecordBatch]:
        """The released notes in source order. The files of a folder of .txt are called up by name."""
        if self.path.is_dir():
            yield from self._called_up()
        elif self.order == "source":
            yield from released.batches()
        else:
            places = CrosswalkOrder(ledger_batches(self.vault, "crosswalk"), self.work / "walk")
            with closing(places):
                yield from reordered(released.batches(), by_place(places), self.work / "read back")

    def _called_up(self) -> Iterator[pa.RecordBatch]:
        left = {file.stem for file in self.path.iterdir()}
        for batch in ledger_batches(self.vault, "crosswalk"):
            ids = [i for i in batch.column("note_id").to_pylist() if i in left]
            left.difference_update(ids)
            texts = [(self.path / f"{i}.txt").read_bytes().decode("utf-8") for i in ids]
            yield from memory_corpus([(i, i, text) for i, text in zip(ids, texts, strict=True)]).batches()
        yield from memory_corpus([(i, i, "") for i in sorted(left)]).batches()


def as_written(entered: Corpus) -> Iterator[Obfuscated]:
    """Notes that leave with the text that they have."""
    return (Obfuscated(batch, Tally(notes=batch.num_rows)) for batch in entered.batches())


def _tracked(job: ReleaseContext, results: Iterator[Deidentified]) -> Iterator[Deidentified]:
    return track(results, "notes", job.say, size=lambda one: one.batch.num_rows)


@contextmanager
def _ledger(vault: Path) -> Iterator[Callable[[pa.RecordBatch, pa.RecordBatch | None], None]]:
    """What takes a batch of `crosswalk.parquet` and of `alignment.parquet`; both lie in the vault, for the owner."""
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
    """The released notes in source order."""
    return Target.of(job, path).in_source_order(released)
