"""What the attacks and utility of a release look at: all of its notes, or whole patients drawn by its key.

Beyond `--measure-words` more notes make no figure better in proportion, but slower: patients are drawn until their
notes have about so many words, and all that is known of these notes, on every side, is laid into the vault's scratch.
What must see every note (the reading back, the own identifiers of known patients, unique layouts and kept values) still
does. Findings on the drawn patients say so, and so does the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, of_release
from clinveil.core.files import private_folder, remove
from clinveil.core.finding import Finding
from clinveil.core.progress import track
from clinveil.core.settings import NotesSettings
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus
from clinveil.corpus.open import open_corpus
from clinveil.corpus.sample import KeyedShare
from clinveil.releases.crosswalk import id_maps
from clinveil.utility.release import UTILITY_SEED, useful

__all__ = ["UTILITY_SEED", "Drawn", "Measured", "attacked", "measured", "skipped", "useful"]

NOTES = frozenset({"original", "released", "entered", "alignment"})
BY_NOTES = ("attack.repeats_in_notes", "attack.inversion_counts")  # of attacks that need no notes, but read them
Kept = Callable[[pa.RecordBatch], pa.Array]
"""Which rows of a batch are taken."""


@dataclass(frozen=True)
class Drawn:
    """How much of a release was measured.

    Attributes:
        notes, patients: of the released ones, those that attacks and utility look at.
        all_notes, all_patients: all released ones.
    """

    notes: int
    patients: int
    all_notes: int
    all_patients: int

    @property
    def said(self) -> str:
        """In words."""
        return (
            f"{self.notes:,} of {self.all_notes:,} notes, those of {self.patients:,} of {self.all_patients:,} patients "
            "drawn by the key"
        )

    def marked(self, finding: Finding) -> Finding:
        """The finding, which says on what it was measured."""
        return replace(finding, detail={**finding.detail, "measured_on": self.said})


@dataclass(frozen=True)
class Measured:
    """A release as its attacks see it.

    Attributes:
        context: what most look at. whole: what those look at that must see every note.
        drawn: how much the first is of the second; None where it is all.
    """

    context: Context
    whole: Context = field(repr=False)
    drawn: Drawn | None = None

    def of(self, attack: type[Attack]) -> Context:
        """What an attack looks at."""
        return self.whole if attack.sees_all else self.context

    def by(self, attack: Attack, rng: Generator) -> list[Finding]:
        """The findings of an attack."""
        found = [_in_its_words(type(attack), one) for one in attack(self.of(type(attack)), rng)]
        if self.drawn is None:
            return found
        if attack.sees_all:  # but for the source notes, in which a control is looked for
            return [replace(f, control_is=f"{f.control_is}, of drawn patients") if f.control_is else f for f in found]
        by_notes = bool(attack.needs & NOTES)
        return [self.drawn.marked(f) if by_notes or f.measure.startswith(BY_NOTES) else f for f in found]

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings of the drawn patients, which say so."""
        return list(findings) if self.drawn is None else [self.drawn.marked(one) for one in findings]


def measured(
    whole: Context, crosswalk: Callable[[], Iterator[pa.RecordBatch]], words: int, salt: bytes, scratch: Path
) -> Measured:
    """What is measured of a release: all of it, or drawn patients, whose notes are laid into `scratch`.

    Args:
        whole: both sides of the release, its channel and counts; without maps of ids.
        crosswalk: gives the ids of every released note. words: of about so many at most; 0: of all.
        salt: what patients are drawn by, secret. scratch: a folder in the vault, made anew.
    """
    assert whole.counts is not None
    n_words = whole.counts.n_tokens
    if not 0 < words < n_words:
        notes, patients = id_maps(crosswalk())
        all_ = replace(whole, notes=notes, patients=patients)
        return Measured(all_, all_)
    if whole.known:  # whose notes are looked through, all of them
        whole = replace(whole, patients=id_maps(crosswalk())[1])
    return _of_drawn(whole, KeyedShare(words / n_words, salt), crosswalk(), scratch)


def _of_drawn(whole: Context, share: KeyedShare, crosswalk: Iterator[pa.RecordBatch], scratch: Path) -> Measured:
    remove(scratch)
    place = private_folder(scratch)
    all_notes, all_patients = _walk(place / "crosswalk.parquet", crosswalk, share)
    notes, patients = id_maps(_batches(place / "crosswalk.parquet"))
    own, theirs = (pa.array(list(ids), pa.string()) for ids in (patients, notes.values()))
    assert whole.original is not None and whole.released is not None and whole.entered is not None
    alignment = place / "alignment.parquet"
    with _Part(alignment) as part:
        for batch in whole.alignment() if whole.alignment else ():
            part.write(batch, _among(batch, NOTE_ID, theirs))
    some = replace(
        whole,
        original=_side(place / "original.parquet", whole.original, _source(share)),
        entered=_side(place / "entered.parquet", whole.entered, _source(share)),
        released=_side(place / "released.parquet", whole.released, lambda batch: _among(batch, PATIENT_ID, own)),
        alignment=lambda: _batches(alignment),
        notes=notes,
        patients=patients,
    )
    drawn = Drawn(len(notes), len(patients), all_notes, all_patients)
    return Measured(some, replace(whole, original=some.original), drawn)


def _walk(path: Path, crosswalk: Iterator[pa.RecordBatch], share: KeyedShare) -> tuple[int, int]:
    """Write the rows of drawn patients down; how many notes and patients there are in all."""
    notes, patients = 0, set[int]()
    with _Part(path) as part:
        for batch in crosswalk:
            whose = batch.column("source_patient_id")
            notes += batch.num_rows
            patients.update(map(hash, pc.unique(whose).to_pylist()))
            part.write(batch, _drawn(whose, share))
    return notes, len(patients)


def _source(share: KeyedShare) -> Kept:
    """The rows of drawn patients; a note without a patient is its own."""
    return lambda batch: _drawn(pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID)), share)


def _drawn(patients: pa.Array, share: KeyedShare) -> pa.Array:
    coded = patients.dictionary_encode()
    taken = pa.array([name in share for name in coded.dictionary.to_pylist()], pa.bool_())
    return taken.take(coded.indices)


def _among(batch: pa.RecordBatch, column: str, ids: pa.Array) -> pa.Array:
    return pc.is_in(batch.column(column), value_set=ids)


class _Part:
    """A Parquet file of the rows that are taken, for its owner only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> _Part:
        return self

    def write(self, batch: pa.RecordBatch, taken: pa.Array) -> None:
        """Write the rows that are taken."""
        if self._file is None:
            self._file = pq.ParquetWriter(self._path, batch.schema, compression="zstd")
        self._file.write_batch(batch.filter(taken))

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
            self._path.chmod(0o600)


def _side(path: Path, corpus: Corpus, takes: Kept) -> Corpus:
    with _Part(path) as part:
        for batch in corpus.batches():
            part.write(batch, takes(batch))
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    columns = corpus.columns
    return open_corpus(path, roles, label=columns.labels, keep=columns.keep)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    if path.exists():
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()


def attacked(seen: Measured, rng: Generator, say: Say = lambda line: None) -> list[Finding]:
    """The findings of all attacks that can be tried, in the order of the report, with one generator in a row."""
    tried = [attack for attack in of_release() if seen.of(attack).has(attack.needs)]
    shown = track(tried, "attacks", say, len(tried))
    return [finding for attack in shown for finding in seen.by(attack(), rng)]


UNITS = frozenset({"notes", "patients", "words", "tokens", "pairs"})


def _in_its_words(attack: type[Attack], finding: Finding) -> Finding:
    """The finding; of an attack that is not ours its numbers alone, for what it writes might hold words of a note.

    Findings stand in the manifest and the report that leave. Raises ValueError for a measure that the attack has no
    words for: its name would be free text too.
    """
    if attack.__module__.startswith("clinveil.attacks."):
        return finding
    if finding.measure not in attack.words:
        raise ValueError("an attack of a release finds only measures that it has words for")
    unit = finding.unit if finding.unit in UNITS else ""
    detail = {} if finding.value is not None else {"why": "it was not measured"}
    told: dict[str, Any] = dict.fromkeys(("source", "method", "question", "p_is", "chance_is", "control_is"), "")
    return replace(finding, unit=unit, detail=detail, **told)


NOT_TRIED = (
    "Attackers with a larger language model, or with more text than other notes of this corpus. Context of three words "
    "recovers a few points more (clinveil attack inversion, benchmarks/adversaries.md).",
    "Linkage by 1, 20 and 200 known pairs; known pairs were used to recover words and names.",
    "Inference of attributes that are not kept columns (clinveil attack inference).",
    "Linkage by row order, where --order source keeps it.",
)
_AT_HAND = {
    "known": "no known-patient feed was given",
    "keep": "no column is kept",
    "earlier": "the ledger holds no other release, or its vault is gone",
}


def skipped(context: Context) -> tuple[str, ...]:
    """What no attack of this version tries, and the attacks of every release that lacked what they need here."""
    known = [field.name for field in fields(context)]
    lacking = []
    for attack in of_release():
        missing = [need for need in known if need in attack.needs and not context.has(frozenset({need}))]
        if missing:
            why = " and ".join(_AT_HAND.get(need, f"no {need.replace('_', ' ')}") for need in missing)
            lacking.append(f"{attack.help().rstrip('.')}: {why}.")
    if context.public is None:
        lacking.append("Linkage with public texts about the patients: none were given.")
    return (*NOT_TRIED, *lacking)
