"""Counts of a run of `clinveil deidentify`, and the files that it writes to its vault: audit log,
crosswalk, spans.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, TextIO

from clinveil.core import GateError, Key, atomic
from clinveil.corpus import PATIENT_ID, Hashes, hashes, n_distinct
from clinveil.phi.residue import FoundResidue, ResidueTally
from clinveil.phi.treatment.audit import Chain, next_log
from clinveil.phi.treatment.crosswalk import CrosswalkWriter
from clinveil.phi.treatment.deidentifier import RAISED, TreatedBatch
from clinveil.phi.treatment.policy import Policy

RECORD = "deidentify.json"
# Measured by an independent reader on 558 notes of 186 invented patients.
NO_PATIENT_LIST = (
    "no patient list: with one, invented notes with a missed identifier fell from 10 % to .2 %."
    " Write a CSV file with the columns patient_id and name"
    " (and record_number, phone, email, address, birth_date), and pass --patients FILE"
)
RESIDUES = "residues.jsonl"
SPANS = "spans.jsonl"
CROSSWALK = re.compile(r"crosswalk-[0-9a-f]{16}\.bin")


@dataclass
class Records:
    """Open files of a run; files that were not requested are None.

    Attributes:
        vault: their folder. run: name of the run, 16 random hex digits. audit: its log.
        spans: all spans, or those of notes with residues.
    """

    vault: Path
    run: str
    audit: Chain
    spans: TextIO
    residues: TextIO
    crosswalk: CrosswalkWriter | None = None

    def add(
        self,
        audit: Iterable[str],
        crosswalk: Sequence[Any],
        spans: Iterable[Any],
        residues: Iterable[Any],
    ) -> None:
        """Add the fields of a `TreatedBatch`, or of its JSON."""
        for body in audit:
            self.audit.add(body)
        if self.crosswalk is not None and crosswalk:
            self.crosswalk.write(crosswalk)
        for note_id, (start, end, label, detector, score, why), text in spans:
            line = {"note_id": note_id, "start": start, "end": end, "label": label}
            line |= {"text": text, "detector": detector, "score": score, "why": why}
            self.spans.write(json.dumps(line, ensure_ascii=False) + "\n")
        write_residues(self.residues, residues)

    def end(self, key: Key, fields: Mapping[str, Any]) -> None:
        """Close the log and the crosswalk."""
        self.audit.end(key, {"run": self.run, **fields})
        if self.crosswalk is not None:
            self.crosswalk.close()


def write_residues(file: TextIO, residues: Iterable[Any]) -> None:
    """Write residues, or the fields of their JSON, one per line."""
    for fields in residues:
        file.write(json.dumps(FoundResidue(*fields)._asdict(), ensure_ascii=False) + "\n")


@contextmanager
def records(vault: Path, key: Key, *, crosswalk: bool) -> Iterator[Records]:
    """Open the files of a run; each appears complete at the end, or not at all."""
    run = token_hex(8)
    path, before = next_log(vault)
    with ExitStack() as stack:

        def part(name: str, *, force: bool = False) -> Path:
            return stack.enter_context(atomic(vault / name, force=force))

        def text(path: Path) -> TextIO:
            return stack.enter_context(path.open("w", encoding="utf-8"))

        chain = Chain(text(part(path.name)), before)
        rows = (
            CrosswalkWriter(stack.enter_context(part(f"crosswalk-{run}.bin").open("wb")), key, run)
            if crosswalk
            else None
        )
        spans, residues = (text(part(name, force=True)) for name in (SPANS, RESIDUES))
        yield Records(vault, run, chain, spans, residues, rows)


@dataclass
class RunCounts:
    """Counts of notes and identifiers of a run.

    Attributes:
        policy: the treatment of each label. known: ids of the known patients.
        read, written: number of notes; `skipped` counts the others by reason.
        labels, detectors: number of identifiers by label and by detector.
        tagged: number of identifiers by label that became a tag because the policy's treatment
            failed.
        date_orders: number of notes with numeric dates by the order in which they were read.
        known_found: ids of the known patients with at least one note.
        unlisted: number of notes of patients who are not in the patient list, if there is one.
        owners: hashes of the ids of listed and of unlisted patients, for each batch.
        residues: counts of residues.
    """

    policy: Policy
    known: AbstractSet[str] = field(default=frozenset(), repr=False)

    read: int = 0
    written: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    detectors: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    date_orders: Counter[str] = field(default_factory=Counter)
    known_found: set[str] = field(default_factory=set, repr=False)
    unlisted: int = 0
    owners: tuple[list[Hashes], list[Hashes]] = field(default_factory=lambda: ([], []), repr=False)
    residues: ResidueTally = field(default_factory=ResidueTally)

    def add(self, result: TreatedBatch) -> None:
        """Add a batch."""
        self.written += result.batch.num_rows
        self.read += result.batch.num_rows + sum(result.skipped.values())
        self.labels += result.counts
        self.detectors += result.by_detector
        self.skipped += result.skipped
        self.tagged += result.tagged
        self.residues.add_counts(result.tally)
        self.date_orders += result.date_orders
        if self.known:
            ids = result.batch.column(PATIENT_ID).to_pylist()
            listed = self.known & set(ids)
            self.known_found.update(listed)
            self.unlisted += sum(patient not in listed for patient in ids)
            for owners, some in zip(self.owners, (listed, {*ids} - listed), strict=True):
                if some:
                    owners.append(hashes(sorted(map(str, some))))

    def add_counts(self, other: RunCounts) -> None:
        """Add the counts of another run or part."""
        self.read += other.read
        self.written += other.written
        self.residues.add_counts(other.residues)
        for name in ("labels", "detectors", "skipped", "tagged", "date_orders"):
            getattr(self, name).update(getattr(other, name))
        self.known_found |= other.known_found
        self.unlisted += other.unlisted
        for owners, other_owners in zip(self.owners, other.owners, strict=True):
            owners += other_owners

    @property
    def kept(self) -> dict[str, int]:
        """Number of identifiers by label that the policy keeps unchanged."""
        return {
            label: self.labels[label]
            for label in self.policy.treatments
            if label in self.policy.kept
        }

    def coverage(self) -> str:
        """Return a line on the notes that the patient list does not cover; empty if it covers
        all.
        """
        if not self.unlisted:
            return ""
        listed, missed = (n_distinct(owners) for owners in self.owners)
        notes = f"{self.unlisted:,} of {self.written:,} notes"
        patients = f"{missed:,} of {listed + missed:,} patients"
        return (
            f"patient list: {notes} ({patients}) have no row in it; only the other detectors"
            " protect them"
        )

    def lines(self) -> Iterator[str]:
        """Yield the counts as text."""
        yield f"{self.written} of {self.read} notes written"
        for reason, count in self.skipped.items():
            yield f"  not written, {reason}: {count}"
        for label, count in self.labels.most_common():
            tagged = (
                f" ({self.tagged[label]} as a tag: no replacement could be made)"
                if self.tagged[label]
                else ""
            )
            yield (
                f"  {label:12}"
                f" {count}{' KEPT as they are' if label in self.policy.kept else ''}{tagged}"
            )
        if self.date_orders:
            read = ", ".join(
                f"{order} in {count}" for order, count in sorted(self.date_orders.items())
            )
            yield f"  numeric dates read: {read} notes"

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a record, ready for JSON."""
        return {
            "notes_read": self.read,
            "notes_written": self.written,
            "skipped": dict(self.skipped),
            "spans_by_label": dict(self.labels.most_common()),
            "spans_by_detector": dict(self.detectors.most_common()),
            "tagged_for_want_of_a_surrogate": dict(self.tagged),
            "notes_by_date_order": dict(self.date_orders),
            "kept": self.kept,
            "notes_of_unlisted_patients": self.unlisted if self.known else None,
            **self.residues.as_dict(),
        }

    def check_failures(self) -> None:
        """Raise GateError if the detectors failed on more than 1 % of the notes."""
        raised = self.skipped[RAISED]
        if raised > 0.01 * self.read:
            hint = "nothing was written; report this error, without any note text"
            raise GateError(f"the detectors failed on {raised} of {self.read} notes", hint=hint)
