"""Residues: text that looks like an identifier and is the same before and after treatment.

This check shares no code and no rule with `phi/detection`, so it does not repeat the detectors'
mistakes. It reads no
context: a shape of digits, an address of mail or of the web, or a word of the patient's row in the
list is either in a list of clinical shapes or a residue. Shapes are compared by position: text
outside the treated spans is unchanged, so a shifted date that equals another date of the source is
not a residue.

It cannot see names, towns, or ages without a shape, unless they are in the patient list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from clinveil.phi.residue._addresses import SIGNS, Shape, addresses
from clinveil.phi.residue._digits import digit_shapes
from clinveil.phi.residue._row import row_words
from clinveil.phi.treatment.policy import Policy, Treatment

if TYPE_CHECKING:
    from clinveil.core import Span
    from clinveil.corpus import Patient
    from clinveil.phi.treatment.policy import TreatedSpan

Offsets = tuple[int, int]
FEWEST = 20  # notes
CONTEXT = 40  # characters before and after a residue in the vault
LONGEST = 200  # characters of a residue in the vault
_NUMBER_LABELS = frozenset(
    {"SSN", "MRN", "HEALTH_PLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "ID"}
)
# The labels that excuse a shape if their treatment is `keep`.
_LABELS_OF = {
    "DATE": frozenset({"DATE"}),
    "PHONE": frozenset({"PHONE", "FAX"}),
    "ID": _NUMBER_LABELS,
    "EMAIL": frozenset({"EMAIL"}),
    "URL": frozenset({"URL"}),
    "IP": frozenset({"IP"}),
    "NAME": frozenset({"NAME"}),
    "MRN": frozenset({"MRN"}),
    "ADDRESS": frozenset({"ADDRESS"}),
}


class Residue(NamedTuple):
    """A residue: its range in the source text, and the label that fits its shape."""

    start: int
    end: int
    label: str


class FoundResidue(NamedTuple):
    """A residue of a note with its text and context; as secret as the note."""

    note_id: str
    start: int
    end: int
    label: str
    text: str
    context: str

    @classmethod
    def of(cls, note_id: str, text: str, residue: Residue) -> FoundResidue:
        """Return the record of a residue in a text."""
        start, end, label = residue
        context = text[max(0, start - CONTEXT) : min(end, start + LONGEST) + CONTEXT]
        return cls(note_id, start, end, label, text[start:end][:LONGEST], context)


@dataclass
class ResidueTally:
    """Counts of residues.

    Attributes:
        notes: number of treated notes. notes_with_residues: number of those with a residue.
        labels: number of residues by label.
    """

    notes: int = 0
    notes_with_residues: int = 0
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, left: Sequence[Residue]) -> None:
        """Add a note with its residues."""
        self.notes += 1
        self.notes_with_residues += bool(left)
        self.labels.update(residue.label for residue in left)

    def add_counts(self, other: ResidueTally) -> None:
        """Add the counts of other notes."""
        self.notes += other.notes
        self.notes_with_residues += other.notes_with_residues
        self.labels += other.labels

    def allowed(self, limit: float) -> int:
        """Return how many notes may have residues: this share, rounded up from `FEWEST` notes on,
        else down.
        """
        return ceil(limit * self.notes) if self.notes >= FEWEST else floor(limit * self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a record, ready for JSON."""
        return {
            "notes_with_residues": self.notes_with_residues,
            "residues_by_label": dict(self.labels.most_common()),
        }

    def line(self) -> str:
        """Return the counts as a line of text."""
        if not self.notes_with_residues:
            return "residues: none (no unchanged text has the shape of a date, number or address)"
        labels = ", ".join(f"{count} {label}" for label, count in self.labels.most_common())
        return (
            f"residues: {self.notes_with_residues} of {self.notes} notes have unchanged text like"
            f" an identifier ({labels})"
        )


def residues(
    text: str,
    spans: Sequence[Span],
    treated: Sequence[TreatedSpan],
    policy: Policy,
    *,
    patient: Patient | None = None,
    excused: Iterable[Offsets] = (),
) -> list[Residue]:
    """Return the residues of a note, in order.

    Args:
        text: the source text. spans, treated: its spans and their replacements.
        policy: what it keeps on purpose is not a residue.
        patient: the patient's row in the list.
        excused: ranges that a reviewer or a list of words declared not to be an identifier.
    """
    left = _unchanged(text, spans, treated)
    kept = {label for label, needed in _LABELS_OF.items() if needed <= policy.kept}
    years = policy["DATE"] is not Treatment.GENERALISE
    shapes: list[Shape] = [*addresses(left), *digit_shapes(left, years=years)]
    if excused := sorted(excused):
        shapes = [
            shape
            for shape in shapes
            if not any(a <= shape[0] and shape[1] <= b for a, b in excused)
        ]
    if patient is not None:  # a reviewer or a list of words does not excuse the patient's own row
        shapes += row_words(left, patient)
    return _disjoint(Residue(*shape) for shape in shapes if shape[2] not in kept)


def _unchanged(text: str, spans: Sequence[Span], treated: Sequence[TreatedSpan]) -> str:
    """Return the text with each treated span replaced by NUL, so that offsets stay."""
    pieces = list[str]()
    position = 0
    for span, item in zip(spans, treated, strict=True):
        by_policy = item.action in (Treatment.KEEP, Treatment.GENERALISE)
        if item.text == text[span.start : span.end] and not by_policy:
            continue  # the replacement is the identifier itself
        pieces += (text[position : span.start], "\0" * (span.end - span.start))
        position = span.end
    return "".join([*pieces, text[position:]]).translate(SIGNS)


def _disjoint(shapes: Iterable[Residue]) -> list[Residue]:
    """Return the shapes in order, without those that overlap an earlier one."""
    disjoint = list[Residue]()
    for shape in sorted(shapes):
        if not disjoint or shape.start >= disjoint[-1].end:
            disjoint.append(shape)
    return disjoint
