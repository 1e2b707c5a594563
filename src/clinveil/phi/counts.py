"""What became of the notes of a run of `clinveil deidentify`, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from clinveil.core.errors import GateError
from clinveil.corpus.corpus import PATIENT_ID
from clinveil.phi.deidentifier import RAISED, Deidentified
from clinveil.phi.policy import Policy

MOST_RAISED = 0.01  # share of the notes


@dataclass
class Counts:
    """What became of the notes of a run.

    Attributes:
        read, written: notes; `skipped` says why the others were not written.
        labels, detectors: identifiers, by what they are and by who found them.
        tagged: identifiers that got a tag, as nothing better could be made.
        met: those of the known patients who have notes here.
        policy: what became of each label. known: patients that are known beforehand.
    """

    policy: Policy
    known: AbstractSet[str] = field(default=frozenset(), repr=False)

    read: int = 0
    written: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    detectors: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    met: set[str] = field(default_factory=set, repr=False)

    def add(self, done: Deidentified) -> None:
        """Add a batch."""
        self.written += done.batch.num_rows
        self.read += done.batch.num_rows + sum(done.skipped.values())
        self.labels += done.counts
        self.detectors += done.by_detector
        self.skipped += done.skipped
        self.tagged += done.tagged
        if self.known:
            self.met.update(self.known & set(done.batch.column(PATIENT_ID).to_pylist()))

    def add_counts(self, other: Counts) -> None:
        """Add what others counted."""
        self.read += other.read
        self.written += other.written
        for name in ("labels", "detectors", "skipped", "tagged"):
            getattr(self, name).update(getattr(other, name))
        self.met |= other.met

    @property
    def kept(self) -> dict[str, int]:
        """Identifiers that the policy left as they are."""
        return {label: self.labels[label] for label in self.policy.treatments if label in self.policy.kept}

    def lines(self) -> Iterator[str]:
        """The counts for people."""
        yield f"{self.written} of {self.read} notes written"
        for reason, count in self.skipped.items():
            yield f"  not written, {reason}: {count}"
        for label, count in self.labels.most_common():
            tagged = f" ({self.tagged[label]} as a tag: nothing better could be made)" if self.tagged[label] else ""
            yield f"  {label:12} {count}{' KEPT as they are' if label in self.policy.kept else ''}{tagged}"

    def as_dict(self) -> dict[str, Any]:
        """The counts for a record, ready for JSON."""
        return {
            "notes_read": self.read,
            "notes_written": self.written,
            "skipped": dict(self.skipped),
            "spans_by_label": dict(self.labels.most_common()),
            "spans_by_detector": dict(self.detectors.most_common()),
            "tagged_for_want_of_a_surrogate": dict(self.tagged),
            "kept": self.kept,
        }

    def check_failures(self) -> None:
        """Raise GateError where the detectors failed on more than 1 % of the notes."""
        raised = self.skipped[RAISED]
        if raised > MOST_RAISED * self.read:
            hint = "nothing was written; report it, without any note text"
            raise GateError(f"the detectors failed on {raised} of {self.read} notes", hint=hint)
