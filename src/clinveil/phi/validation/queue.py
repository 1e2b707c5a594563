"""The sampled locations as a queue of the review page.

The page does not show whether the engine detected a location: the reviewer is blind to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clinveil.core import InputError, Key, Location, Span, fingerprint
from clinveil.corpus import Note, open_corpus, rows
from clinveil.phi.review.past_runs import PastRun, ReviewEntry, past_run
from clinveil.phi.validation.design import STRATA
from clinveil.phi.validation.marks import (
    DESIGN,
    Design,
    excerpt,
    location_name,
    read_design,
    shown_parts,
)

SAMPLED = "sample"
"""Detector name of a sampled location on the page."""
LABEL = "ID"
"""Label of all identifiers in the sample; the page does not show it."""
_CHANGED = "not the notes of this run, or changed since"


@dataclass(frozen=True)
class SampledRun:
    """A completed `clinveil validate` run, whose sample is judged blind."""

    vault: Path
    notes: Location
    design: Design

    @property
    def key(self) -> Key:
        """Key of the text hashes."""
        return self.design.key

    def deidentifier(self) -> None:
        """Return None: no treated text is shown."""

    def entries(self) -> Iterator[ReviewEntry]:
        """Yield each sampled location with its context, in random order.

        Raises InputError if the notes are not those of the run.
        """
        if fingerprint(self.notes) != self.design.fingerprint:
            hint = "pass the notes of the run with --notes, or run validate again"
            raise InputError(_CHANGED, where=self.notes.name, hint=hint)
        wanted: dict[str, list[int]] = {}
        for number, sample in enumerate(self.design.samples):
            wanted.setdefault(sample.note_id, []).append(number)
        excerpts: dict[int, str] = {}
        for note in rows(open_corpus(self.notes, self.design.columns)):
            for number in wanted.get(note.note_id, ()):
                sample = self.design.samples[number]
                excerpts[number] = excerpt(sample, note.text)
        for number, sample in enumerate(self.design.samples):
            parts = tuple(shown_parts(sample))
            detected = STRATA[sample.stratum].detected
            yield ReviewEntry(
                note=Note(location_name(number), "", excerpts[number]),
                spans=tuple(Span(a, b, LABEL, SAMPLED) for a, b in parts) if detected else (),
                suspects=() if detected else parts,
                number=number,
            )


def review_of(
    out: Path, *, vault: Path | None = None, notes: Path | None = None
) -> PastRun | SampledRun:
    """Return the run to be reviewed: of `clinveil deidentify`, or of `clinveil validate`.

    Args:
        notes: current path of the notes, if they were moved.

    Raises UsageError or InputError as `past_run` and `read_design`.
    """
    if not (out / DESIGN).is_file():
        return past_run(out, vault=vault, notes=notes)
    design = read_design(out)
    read = notes or design.notes
    if not read.exists():
        raise InputError("notes not found", where=read.name, hint="pass their path with --notes")
    return SampledRun(vault or out, read, design)
