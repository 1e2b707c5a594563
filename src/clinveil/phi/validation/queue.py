"""The sampled locations as a queue of the review page, and the marks that follow from decisions.

The folder of a run holds offsets, not text; the text is read from the notes again. The page does
not show whether the engine detected a location: the reviewer is blind to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from clinveil.core import (
    InputError,
    Key,
    LabelledNotesSettings,
    Location,
    Span,
    as_location,
    fingerprint,
    private_text,
    read_json,
)
from clinveil.corpus import Note, open_corpus, rows
from clinveil.phi.review.decisions import NoteDecisions, hash_key, read_file
from clinveil.phi.review.past_runs import PastRun, ReviewEntry, past_run
from clinveil.phi.validation.design import STRATA, JudgedStratum
from clinveil.phi.validation.sample import AROUND, PASSAGES, Sample

DESIGN = "design.json"
SCHEMA = "clinveil.locations/1"
SAMPLED = "sample"
"""Detector name of a sampled location on the page."""
LABEL = "ID"
"""Label of all identifiers in the sample; the page does not show it."""
UNSURE = -1
_CHANGED = "not the notes of this run, or changed since"


class Design(NamedTuple):
    """The sampling design of a run.

    Attributes:
        run: name of the run, from its settings and notes.
        notes: path of the notes. columns: how they are read. fingerprint: their hash.
        sizes: number of locations per stratum.
        samples: in random order.
    """

    run: str
    notes: Location
    columns: LabelledNotesSettings
    fingerprint: str
    sizes: Mapping[str, int]
    samples: tuple[Sample, ...]

    @property
    def key(self) -> Key:
        """Key of the text hashes in the files of decisions, which tells the runs apart."""
        return Key.from_seed(int(self.run, 16))

    def write(self, folder: Path) -> None:
        """Write the design, readable by the owner only."""
        record = {
            "schema": SCHEMA,
            "run": self.run,
            "notes": str(self.notes.absolute()),
            "columns": self.columns.model_dump(mode="json"),
            "fingerprint": self.fingerprint,
            "sizes": dict(self.sizes),
            "samples": [list(sample) for sample in self.samples],
        }
        private_text(folder / DESIGN, json.dumps(record))


def read_design(folder: Path) -> Design:
    """Read the design of a validation folder. Raises InputError if there is none."""
    record: Any = read_json(folder / DESIGN)
    try:
        if record["schema"] != SCHEMA:
            raise ValueError
        samples = tuple(
            Sample(note_id, start, end, stratum, tuple((first, last) for first, last in parts))
            for note_id, start, end, stratum, parts in record["samples"]
        )
        if not {sample.stratum for sample in samples} <= STRATA.keys():
            raise ValueError
        return Design(
            run=record["run"],
            notes=as_location(record["notes"]),
            columns=LabelledNotesSettings.model_validate(record["columns"]),
            fingerprint=record["fingerprint"],
            sizes=record["sizes"],
            samples=samples,
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "not the folder of a finished validate run",
            where=folder.name,
            hint="pass its OUT folder",
        ) from None


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
                excerpts[number] = note.text[_first(sample) : sample.end + AROUND]
        for number, sample in enumerate(self.design.samples):
            parts = tuple(_in_excerpt(sample))
            passage = sample.stratum in PASSAGES
            yield ReviewEntry(
                note=Note(_name(number), "", excerpts[number]),
                spans=() if passage else tuple(Span(a, b, LABEL, SAMPLED) for a, b in parts),
                suspects=parts if passage else (),
                number=number,
            )


def _name(number: int) -> str:
    return f"location {number + 1}"


def _first(sample: Sample) -> int:
    """Return the offset of the excerpt in the note."""
    return max(0, sample.start - AROUND)


def _in_excerpt(sample: Sample) -> Iterator[tuple[int, int]]:
    """Yield the parts to be judged, with offsets in the excerpt."""
    for start, end in sample.parts:
        yield start - _first(sample), end - _first(sample)


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


def read_marks(path: Path, design: Design) -> dict[int, int]:
    """Return the marks in a file of decisions: number of the sample -> identifiers, or `UNSURE`.

    Only locations that the reviewer has finished count. Raises InputError for a file of another run
    and if no location is finished.
    """
    decided = read_file(path)
    if decided.key != hash_key(design.key):
        hint = "pass the marks together with the folder of their run"
        raise InputError("belongs to another run", where=path.name, hint=hint)
    marks = {
        number: _mark(sample, decided.notes[name])
        for number, sample in enumerate(design.samples)
        if (name := _name(number)) in decided.notes and decided.notes[name].done
    }
    if not marks:
        raise InputError("no marks", where=path.name, hint="judge the sample: clinveil review OUT")
    return marks


def _mark(sample: Sample, decisions: NoteDecisions) -> int:
    """Return the number of confirmed identifiers in the parts to be judged; 1 at most unless it is
    a passage.
    """
    parts = list(_in_excerpt(sample))
    kept = [verdict for verdict in decisions.verdicts.values() if verdict is not None]
    hits = sum(any(k.start < end and start < k.end for start, end in parts) for k in kept)
    if sample.stratum in PASSAGES:
        return hits
    if hits:
        return 1
    return 0 if parts[0] in decisions.verdicts else UNSURE


def annotated(
    design: Design, marks: Mapping[int, int], *, unsure: tuple[int, int] = (0, 1)
) -> dict[str, JudgedStratum]:
    """Return the annotations per stratum.

    Args:
        unsure: values of an unsure mark for a detected and an undetected location.

    Raises InputError if a stratum has no marks.
    """
    strata = {}
    for name, size in design.sizes.items():
        counts = [
            marks[n] for n, s in enumerate(design.samples) if s.stratum == name and n in marks
        ]
        if size and not counts:
            hint = (
                "judge more locations in the order of the page, which is random, until each stratum"
                " has one"
            )
            raise InputError(f"no marks in stratum '{STRATA[name].description}'", hint=hint)
        detected = STRATA[name].detected
        values = [unsure[not detected] if count == UNSURE else count for count in counts]
        strata[name] = JudgedStratum(detected, size, len(counts), tuple(n for n in values if n))
    return strata
