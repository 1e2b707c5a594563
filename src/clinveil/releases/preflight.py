"""Read and validate the input of a release before anything is written: one pass over all notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError
from clinveil.core.files import private_text, read_json, remove
from clinveil.core.neural import need_torch
from clinveil.core.progress import track
from clinveil.core.types import Say
from clinveil.corpus.corpus import PATIENT_ID, TEXT, Corpus
from clinveil.corpus.corpus import rows as note_rows
from clinveil.corpus.open import NotesCorpus, PartedCorpus, open_corpus, open_text
from clinveil.corpus.part_facts import PartFacts, digest_of, part_facts
from clinveil.corpus.part_files import part_files
from clinveil.corpus.people import Patient, read_patients
from clinveil.corpus.uniqueness import hashes, n_distinct
from clinveil.releases.earlier.ledger import NO_HASHES, Hashes, text_hashes
from clinveil.releases.earlier.parent import NewNotes, ParentRelease
from clinveil.releases.producer import producers
from clinveil.releases.settings import ReleaseSettings
from clinveil.scale import Map, serial
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import Broken, each
from clinveil.utility.classifiers import any_neural
from clinveil.vectors.algorithms.cbow import need_gensim
from clinveil.vectors.count import over_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.imported import refuse_foreign
from clinveil.vectors.table import Vectors

CHARACTERS_PER_WORD = 6.6  # of MTSamples, punctuation and spaces included
LEARNT = "learnt.json"  # in the vault: the parts that vectors or model were trained on


@dataclass(frozen=True, slots=True)
class Preflight:
    """Counts of one validating pass over the notes.

    Attributes:
        rows: notes read. patients: distinct patient ids. characters: code points in total.
        skipped: rows left out by the preset of the source, by reason. hashes: (n_notes,) hashes for the ledger.
    """

    rows: int
    patients: int
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
class _Stats:
    """Counts, note hashes and patient hashes of batches of notes; additive."""

    rows: int = 0
    characters: int = 0
    notes: list[Hashes] = field(default_factory=lambda: [NO_HASHES], repr=False)
    patients: list[Hashes] = field(default_factory=list, repr=False)
    skipped: Counter[str] = field(default_factory=Counter)

    def take(self, batch: pa.RecordBatch) -> None:
        text = batch.column(TEXT)
        self.rows += batch.num_rows
        self.characters += int(pc.sum(pc.utf8_length(text)).as_py() or 0)
        self.notes.append(text_hashes(text.to_pylist()))
        self.patients.append(hashes(batch.column(PATIENT_ID).unique().to_pylist()))

    def __iadd__(self, other: _Stats) -> _Stats:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    def preflight(self) -> Preflight:
        if not self.rows:
            raise InputError("contains no notes", hint="pass a file with at least one row")
        patients, hashes_ = n_distinct(self.patients), np.concatenate(self.notes)
        return Preflight(self.rows, patients, self.characters, self.skipped, hashes_)


def preflight(corpus: Corpus, say: Say = lambda _: None) -> Preflight:
    """Read all notes once to count them and to detect a broken file early. Raises InputError."""
    stats = _Stats()
    for batch in track(corpus.batches(), "notes read", say, size=lambda batch: batch.num_rows):
        stats.take(batch)
    stats.skipped = Counter(getattr(corpus, "skipped", {}))
    return stats.preflight()


def preflight_parts(
    corpus: PartedCorpus, over: Map, say: Say, broken: Broken
) -> tuple[PartedCorpus, Preflight, tuple[PartFacts, ...]]:
    """Run `preflight` on the readable parts with rows; return these parts, the totals, and facts per part.

    Args:
        broken: collects unreadable parts.

    Raises:
        Incomplete: the readable parts contain no notes. InputError: an id occurs in two parts.
    """
    total, facts = _Stats(), list[PartFacts]()
    scanned = each(over, _scan, corpus.parts, broken)
    for stats, of_part in track(scanned, "notes read", say, size=lambda part: part[1].rows):
        total += stats
        facts.append(of_part)
    sound = replace(corpus, parts=broken.left(corpus.parts))
    sound.refuse_repeats([of_part.ids for of_part in facts])
    if not total.rows:
        broken.refuse()
    held = [i for i, one in enumerate(facts) if one.rows]  # Spark writes empty parts
    with_rows = replace(sound, parts=tuple(sound.parts[i] for i in held))
    return with_rows, total.preflight(), tuple(facts[i] for i in held)


def _scan(part: NotesCorpus) -> tuple[_Stats, PartFacts]:
    stats = _Stats()
    facts = part_facts(part, stats.take)
    stats.skipped, stats.patients = Counter(part.skipped), [np.unique(np.concatenate([NO_HASHES, *stats.patients]))]
    return stats, facts


def forget_others(vault: Path, facts: Sequence[PartFacts], learned: Sequence[str]) -> None:
    """Remove what an interrupted run learned if the parts have changed since, for example by a correction."""
    of = digest_of(facts)
    if read_json(vault / LEARNT) != {"of": of}:
        for name in learned:
            remove(vault / name)
        private_text(vault / LEARNT, f'{{"of": "{of}"}}')


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


@dataclass(frozen=True, kw_only=True)
class PreparedInput:
    """Validated input of a run.

    Attributes:
        corpus: the notes; with `--add` those that were not released before. found: their counts.
        known: known patients by id. imported: pretrained vectors.
        facts: facts per readable part file; empty for a single file. names: of all parts.
        broken: unreadable parts; the run stops after identifier detection on the others.
        over: executor for parts. measured_with: additional input of the measures.
    """

    corpus: Corpus
    found: Preflight
    known: dict[str, Patient] = field(default_factory=dict)
    imported: Vectors | None = None
    facts: tuple[PartFacts, ...] = ()
    names: tuple[str, ...] = ()
    broken: Broken = field(default_factory=Broken)
    over: Map = serial
    measured_with: MeasuredWith = NOTHING_MORE

    @property
    def added(self) -> NewNotes | None:
        """The new notes, if they are added to a release."""
        return self.corpus if isinstance(self.corpus, NewNotes) else None

    def question(self, source: str) -> str:
        """Return the identity of the notes for resuming: part names (a corrected part may resume), else the hash."""
        return "\n".join(self.names) or source


def prepared(
    notes: Path,
    settings: ReleaseSettings,
    vectors: Path | None,
    over: Map,
    base: ParentRelease | None = None,
    *,
    joint: bool = False,
    say: Say = lambda _: None,
) -> PreparedInput:
    """Read and validate the input of a run; arguments as `pipeline.release`."""
    settings.vectors.refuse_beside(vectors)
    known = read_patients(settings.identifiers.patients) if settings.identifiers.patients else {}
    if any_neural(settings.model):
        need_torch()  # fail now instead of hours later
    if vectors is None:
        need_gensim(settings.vectors.algorithm)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    if base is not None:
        new = NewNotes(corpus, base, joint)
        found = preflight(new, say)
        base.refuse_same(found.hashes, again=settings.again)
        return PreparedInput(corpus=new, found=found, known=known)
    parts: dict[str, Any] = {}
    if isinstance(corpus, PartedCorpus):
        parts = {"names": tuple(part.name for part in corpus.parts), "broken": Broken(), "over": over}
        corpus, found, parts["facts"] = preflight_parts(corpus, over, say, parts["broken"])
    else:
        found = preflight(corpus, say)
    if not (parts and parts["broken"].errors):
        producers.get(settings.kind).refuse_notes(found, settings, corpus)
    if settings.vectors.more_text:
        open_text(settings.vectors.more_text)
    imported = load_vectors(vectors) if vectors else None
    if imported is not None:
        refuse_foreign(imported, (note.text for note in note_rows(corpus)))
    return PreparedInput(corpus=corpus, found=found, known=known, imported=imported, **parts)


def opened_for_parts(notes: Path, settings: ReleaseSettings) -> AbstractContextManager[Map]:
    """Open one executor for part files; with a single file each stage opens its own."""
    return opened_for(settings.executor, settings.workers) if part_files(notes) else nullcontext(serial)
