"""Choose what attacks and utility are measured on: all notes, or a keyed sample of patients.

Beyond `--measure-words`, more notes improve the figures little but cost time. Then patients are sampled up to about
this many words, and all versions of their notes are copied to the vault's scratch folder. Checks that need every note
(output check, own identifiers, unique layouts and kept values) still use all. Findings on a sample state so.
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
from clinveil.releases.crosswalk import TableWriter, id_maps
from clinveil.utility.evaluations.transfer import UTILITY_SEED, useful

__all__ = ["UTILITY_SEED", "Drawn", "Measured", "attacked", "measured", "skipped", "useful"]

FEWEST = 50  # patients that a sample has on average at least
NOTES = frozenset({"original", "released", "entered", "alignment"})
BY_NOTES = "attack.repeats_in_notes"  # measured on notes though its attack needs none
Kept = Callable[[pa.RecordBatch], pa.Array]
"""Function that returns a mask of the rows to keep."""


@dataclass(frozen=True)
class Drawn:
    """The size of the measured sample.

    Attributes:
        notes, patients: numbers in the sample.
        all_notes, all_patients: numbers in the release.
    """

    notes: int
    patients: int
    all_notes: int
    all_patients: int

    @property
    def description(self) -> str:
        """The sample as text."""
        return (
            f"{self.notes:,} of {self.all_notes:,} notes, those of {self.patients:,} of {self.all_patients:,} patients "
            "sampled with the key"
        )

    def marked(self, finding: Finding) -> Finding:
        """Return the finding with a note on its sample."""
        return replace(finding, detail={**finding.detail, "measured_on": self.description})


@dataclass(frozen=True)
class Measured:
    """Input of the attacks on a release.

    Attributes:
        context: for most attacks. whole: for attacks that need every note.
        drawn: size of the sample; None if `context` is the whole release.
    """

    context: Context
    whole: Context = field(repr=False)
    drawn: Drawn | None = None

    def of(self, attack: type[Attack]) -> Context:
        """Return the input of an attack."""
        return self.whole if attack.sees_all else self.context

    def by(self, attack: Attack, rng: Generator) -> list[Finding]:
        """Run an attack and return its findings."""
        found = [_safe_text(type(attack), finding) for finding in attack(self.of(type(attack)), rng)]
        if self.drawn is None:
            return found
        if attack.sees_all:  # except controls, which search the sampled source notes
            return [replace(f, control_is=f"{f.control_is}, of sampled patients") if f.control_is else f for f in found]
        by_notes = bool(attack.needs & NOTES)
        return [self.drawn.marked(f) if by_notes or f.measure.startswith(BY_NOTES) else f for f in found]

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings on the sample with a note on it."""
        return list(findings) if self.drawn is None else [self.drawn.marked(finding) for finding in findings]


def measured(
    whole: Context, crosswalk: Callable[[], Iterator[pa.RecordBatch]], words: int, salt: bytes, scratch: Path
) -> Measured:
    """Return the input of attacks: the whole release, or a sample of patients copied to `scratch`.

    Args:
        whole: source and released notes, channel and counts, without id maps.
        crosswalk: yields the ids of every released note. words: approximate maximum; 0: all.
        salt: secret of the sampling. scratch: folder in the vault; replaced.
    """
    assert whole.counts is not None
    n_words = whole.counts.n_tokens
    share = max(words / max(n_words, 1), FEWEST / max(whole.counts.n_patients, 1))
    if not words or share >= 1:
        notes, patients = id_maps(crosswalk())
        all_ = replace(whole, notes=notes, patients=patients)
        return Measured(all_, all_)
    if whole.known:  # all of their notes are searched
        whole = replace(whole, patients=id_maps(crosswalk())[1])
    return _of_drawn(whole, KeyedShare(share, salt), crosswalk(), scratch)


def _of_drawn(whole: Context, share: KeyedShare, crosswalk: Iterator[pa.RecordBatch], scratch: Path) -> Measured:
    remove(scratch)
    place = private_folder(scratch)
    all_notes, all_patients = _copy_crosswalk(place / "crosswalk.parquet", crosswalk, share)
    notes, patients = id_maps(_batches(place / "crosswalk.parquet"))
    own, theirs = (pa.array(list(ids), pa.string()) for ids in (patients, notes.values()))
    assert whole.original is not None and whole.released is not None and whole.entered is not None
    alignment = place / "alignment.parquet"
    with TableWriter(alignment) as part:
        for batch in whole.alignment() if whole.alignment else ():
            part.write(batch.filter(_among(batch, NOTE_ID, theirs)))
    some = replace(
        whole,
        original=_side(place / "original.parquet", whole.original, _source(share)),
        entered=_side(place / "entered.parquet", whole.entered, _source(share)),
        released=_side(place / "released.parquet", whole.released, lambda batch: _among(batch, PATIENT_ID, own)),
        alignment=(lambda: _batches(alignment)) if whole.alignment else None,
        notes=notes,
        patients=patients,
    )
    drawn = Drawn(len(notes), len(patients), all_notes, all_patients)
    return Measured(some, replace(whole, original=some.original), drawn)


def _copy_crosswalk(path: Path, crosswalk: Iterator[pa.RecordBatch], share: KeyedShare) -> tuple[int, int]:
    """Write the rows of sampled patients down; how many notes and patients there are in all."""
    notes, patients = 0, set[int]()
    with TableWriter(path) as part:
        for batch in crosswalk:
            owners = batch.column("source_patient_id")
            notes += batch.num_rows
            patients.update(map(hash, pc.unique(owners).to_pylist()))
            part.write(batch.filter(_drawn(owners, share)))
    return notes, len(patients)


def _source(share: KeyedShare) -> Kept:
    """Select rows of sampled patients; a note without a patient id is its own patient."""
    return lambda batch: _drawn(pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID)), share)


def _drawn(patients: pa.Array, share: KeyedShare) -> pa.Array:
    coded = patients.dictionary_encode()
    taken = pa.array([name in share for name in coded.dictionary.to_pylist()], pa.bool_())
    return taken.take(coded.indices)


def _among(batch: pa.RecordBatch, column: str, ids: pa.Array) -> pa.Array:
    return pc.is_in(batch.column(column), value_set=ids)


def _side(path: Path, corpus: Corpus, takes: Kept) -> Corpus:
    with TableWriter(path) as part:
        for batch in corpus.batches():
            part.write(batch.filter(takes(batch)))
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    columns = corpus.columns
    return open_corpus(path, roles, label=columns.labels, keep=columns.keep)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    if path.exists():
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()


def attacked(seen: Measured, rng: Generator, say: Say = lambda line: None) -> list[Finding]:
    """Run all applicable attacks in the order of the report, with one random generator."""
    tried = [attack for attack in of_release() if seen.of(attack).has(attack.needs)]
    shown = track(tried, "attacks", say, len(tried))
    return [finding for attack in shown for finding in seen.by(attack(), rng)]


UNITS = frozenset({"notes", "patients", "words", "tokens", "pairs"})


def _safe_text(attack: type[Attack], finding: Finding) -> Finding:
    """Return the finding; of a third-party attack the numbers only, as its texts might contain words of a note.

    Findings are part of the external manifest and report. Raises ValueError for a measure without a text of the
    attack: its name would be free text too.
    """
    if attack.__module__.startswith("clinveil.attacks."):
        return finding
    if finding.measure not in attack.words:
        raise ValueError("an attack on a release may only return measures listed in its `words`")
    unit = finding.unit if finding.unit in UNITS else ""
    detail = {} if finding.value is not None else {"why": "it was not measured"}
    texts: dict[str, Any] = dict.fromkeys(("source", "method", "question", "p_is", "chance_is", "control_is"), "")
    return replace(finding, unit=unit, detail=detail, **texts)


NOT_TRIED = (
    "Attackers with a larger language model, or with more text than other notes of this corpus. Three words of context "
    "recover a few points more.",
    "Linkage with known pairs; these were used to recover words and names only.",
    "Inference of attributes that are not kept columns (clinveil attack inference).",
    "Linkage by row order with --order source.",
)
_AT_HAND = {
    "known": "no known-patient list was given",
    "keep": "no column is kept",
}


def skipped(context: Context) -> tuple[str, ...]:
    """Return one sentence per attack that was not run: not available, or its input was missing."""
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
