"""Choose what attacks and utility are measured on: all notes, or a keyed sample of patients.

Beyond `--measure-words`, more notes improve the figures little but cost time. Then patients are
sampled up to about this many words, and all versions of their notes are copied to the vault's
scratch folder. Checks that need every note (output check, own identifiers, unique kept values)
still use all. Findings on a sample state so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import Generator

from clinveil.attacks import Attack, Context, of_release
from clinveil.core import Finding, Say, private_folder, remove, track
from clinveil.corpus import (
    AS_BATCHES,
    NOTE_ID,
    PATIENT_ID,
    Corpus,
    Hashes,
    KeyedShare,
    hashes,
    n_distinct,
    open_corpus,
)
from clinveil.releases.crosswalk import TableWriter, VaultTable, id_maps
from clinveil.scale import Map, each_batch, serial

FEWEST = 50  # patients that a sample has on average at least
NOTES = frozenset({"original", "released", "entered"})


@dataclass(frozen=True)
class AttackSample:
    """Input of the attacks on a release.

    Attributes:
        context: for most attacks. whole: for attacks that need every note.
        description: size of the sample, as text; "" if `context` is the whole release.
    """

    context: Context
    whole: Context = field(repr=False)
    description: str = ""

    def case_for(self, attack: type[Attack]) -> Context:
        """Return the input of an attack."""
        return self.whole if attack.sees_all else self.context

    def run(self, attack: Attack, rng: Generator) -> list[Finding]:
        """Run an attack and return its findings."""
        found = [
            _safe_text(type(attack), finding)
            for finding in attack(self.case_for(type(attack)), rng)
        ]
        if not self.description:
            return found
        if attack.sees_all:  # except controls, which search the sampled source notes
            return [
                replace(f, control_is=f"{f.control_is}, of sampled patients") if f.control_is else f
                for f in found
            ]
        return self.labelled(found) if attack.needs & NOTES else found

    def labelled(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings on the sample with a note on it."""
        return [replace(finding, sample=self.description) for finding in findings]


def sample_case(
    whole: Context, vault: Path, words: int, salt: bytes, scratch: Path, executor: Map = serial
) -> AttackSample:
    """Return the input of attacks: the whole release, or a sample of patients copied to `scratch`.

    Args:
        whole: source and released notes, channel and counts, without id maps.
        vault: with the crosswalk. words: approximate maximum; 0: all.
        salt: secret of the sampling. scratch: folder in the vault; replaced.
        executor: map that reads part files.
    """
    assert whole.counts is not None
    n_words = whole.counts.n_tokens
    share = max(words / max(n_words, 1), FEWEST / max(whole.counts.n_patients, 1))
    if not words or share >= 1:
        notes, patients = id_maps(VaultTable(vault / "crosswalk.parquet").batches())
        all_ = replace(whole, notes=notes, patients=patients)
        return AttackSample(all_, all_)
    return _of_drawn(whole, KeyedShare(share, salt), vault, scratch, executor)


def _of_drawn(
    whole: Context, share: KeyedShare, vault: Path, scratch: Path, executor: Map
) -> AttackSample:
    """Copy all sides of the notes of sampled patients to the scratch folder."""
    remove(scratch)
    private_folder(scratch)
    all_notes = 0
    owners = list[Hashes]()
    drawn = list[pa.RecordBatch]()
    all_patients = dict[str, str]()
    for n_notes, patients_of, drawn_of, ids_of in each_batch(
        executor,
        partial(_drawn_ids, share, bool(whole.known)),
        VaultTable(vault / "crosswalk.parquet"),
    ):
        all_notes += n_notes
        owners.append(patients_of)
        drawn.append(drawn_of)
        all_patients |= ids_of
    notes, patients = id_maps(iter(drawn))
    new_ids = pa.array(list(patients), pa.string())
    of_share = partial(_of_share, share)
    of_ids = partial(_of_ids, PATIENT_ID, new_ids)
    assert whole.original is not None
    assert whole.entered is not None
    assert whole.released is not None
    some = replace(
        whole,
        original=_copied(whole.original, of_share, scratch / "original.parquet", executor),
        entered=_copied(whole.entered, of_share, scratch / "entered.parquet", executor),
        released=_copied(whole.released, of_ids, scratch / "released.parquet", executor),
        notes=notes,
        patients=patients,
    )
    size = (
        f"{len(notes):,} of {all_notes:,} notes, those of {len(patients):,} of"
        f" {n_distinct(owners):,} patients sampled with the key"
    )
    return AttackSample(
        some, replace(whole, original=some.original, patients=all_patients or None), size
    )


def _copied(
    corpus: Corpus, taken: Callable[[pa.RecordBatch], pa.RecordBatch], path: Path, executor: Map
) -> Corpus:
    """Copy the taken rows of each batch to a file, and return the corpus of it."""
    _copy(each_batch(executor, taken, corpus), path)
    return open_corpus(path, AS_BATCHES, label=corpus.columns.labels, keep=corpus.columns.keep)


def _drawn_ids(
    share: KeyedShare, known: bool, crosswalk: pa.RecordBatch
) -> tuple[int, Hashes, pa.RecordBatch, dict[str, str]]:
    """Return the number of notes, hashes of their patients, the sampled rows, and for known
    patients all their ids.
    """
    source, released = (crosswalk.column(name) for name in ("source_patient_id", "patient_id"))
    ids = dict(zip(released.to_pylist(), source.to_pylist(), strict=True)) if known else {}
    owners = np.unique(hashes(source.unique().to_pylist()))
    return crosswalk.num_rows, owners, crosswalk.filter(_in_share(share, source)), ids


def _in_share(share: KeyedShare, patients: pa.Array) -> pa.Array:
    coded = patients.dictionary_encode()
    return pa.array([name in share for name in coded.dictionary.to_pylist()], pa.bool_()).take(
        coded.indices
    )


def _of_share(share: KeyedShare, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the source notes of sampled patients; a note without a patient id is its own
    patient.
    """
    return batch.filter(
        _in_share(share, pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID)))
    )


def _of_ids(column: str, ids: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.is_in(batch.column(column), value_set=ids))


def _copy(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    with TableWriter(path) as table:
        for batch in batches:
            table.write(batch)


def attacked(sample: AttackSample, rng: Generator, say: Say = lambda line: None) -> list[Finding]:
    """Run all applicable attacks in the order of the report, with one random generator."""
    tried = [attack for attack in of_release() if sample.case_for(attack).has(attack.needs)]
    shown = track(tried, "attacks", say, len(tried))
    return [finding for attack in shown for finding in sample.run(attack(), rng)]


UNITS = frozenset({"notes", "patients", "words", "tokens", "pairs"})


def _safe_text(attack: type[Attack], finding: Finding) -> Finding:
    """Return the finding; of a third-party attack the numbers only, as its texts might contain
    words of a note.

    Findings are part of the released manifest and report. Raises ValueError for a measure without a
    text of the
    attack: its name would be free text too.
    """
    if attack.__module__.startswith("clinveil.attacks."):
        return finding
    if finding.measure not in attack.words:
        raise ValueError("an attack on a release may only return measures listed in its `words`")
    unit = finding.unit if finding.unit in UNITS else ""
    return Finding(
        finding.measure,
        finding.value,
        finding.n,
        better=finding.better,
        low=finding.low,
        high=finding.high,
        chance=finding.chance,
        control=finding.control,
        count=finding.count,
        p=finding.p,
        control_kind=finding.control_kind,
        unit=unit,
        why="" if finding.value is not None else "it was not measured",
    )


NOT_TRIED = (
    (
        "Attackers with a larger language model, or with more text than other notes of this corpus."
        " Three words of context recover a few points more."
    ),
    "Linkage with known pairs; these were used to recover words and names only.",
    "Inference of attributes that are not kept columns (clinveil attack inference).",
)
_MISSING = {
    "channel": "does not apply, because words are not replaced one by one",
    "original": "does not apply, because no released note is the protected form of a source note",
    "known": "no known-patient list was given",
    "keep": "no column is kept",
}


def skipped(context: Context, kind: str, listed: bool) -> tuple[str, ...]:
    """Return one sentence per attack that was not run: it does not apply, or its input was missing.

    Args:
        kind: kind of the release. listed: whether a known-patient list was given.
    """
    of_synthetic = {"known": "does not apply to synthetic notes; see the gate on known names"}
    reasons = _MISSING | (of_synthetic if kind == "synthetic" and listed else {})
    lines = list(NOT_TRIED if context.channel else NOT_TRIED[-1:])
    for attack in of_release():
        missing = {need for need in attack.needs if not context.has(frozenset({need}))}
        if missing:
            named = (why for need, why in reasons.items() if need in missing)
            why = next(named, f"a release has no {', '.join(sorted(missing))}")
            lines.append(f"{attack.help().rstrip('.')}: {why}.")
    if context.public is None and kind != "synthetic":
        lines.append("Linkage with public texts about the patients: none were given.")
    return tuple(lines)
