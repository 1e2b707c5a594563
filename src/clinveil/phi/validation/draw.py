"""Count all locations of the notes by stratum and sample some of each, in one pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.corpus.sample import KeySample
from clinveil.phi.detection.detector import detectors
from clinveil.phi.detection.note import NoteView
from clinveil.phi.validation.design import KINDS, allocation
from clinveil.phi.validation.locations import Location, forms, locations, open_parts
from clinveil.phi.validation.sheet import Piece, Sample


@runtime_checkable
class Suspecting(Protocol):
    """A detector that can also return identifiers with a low probability, such as a tagger."""

    def suspect(self, note: NoteView) -> Iterable[Span]:
        """Return spans below the detection threshold."""
        ...


def suspected(note: Note) -> list[Span]:
    """Return the low-probability spans of all detectors that provide them."""
    able = [detector for _, detector in detectors if isinstance(detector, Suspecting)]
    view = NoteView(note.text, note.note_id)
    return [span for detector in able for span in detector.suspect(view)]


MANY = 5  # patients; an unlisted word in the notes of this many is more likely a term than a name
AROUND = 80  # characters of context before and after a location


def usual_forms(notes: Iterable[Note]) -> frozenset[str]:
    """Return the forms of unlisted capitalised words that occur in the notes of at least `MANY` patients."""
    patients: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        for form in set(forms(NoteView(note.text))):
            if len(patients[form]) < MANY:
                patients[form].add(note.patient_id)
    return frozenset(form for form, having in patients.items() if len(having) >= MANY)


class Draw:
    """Count locations and keep a random sample of each stratum."""

    def __init__(self, spots: int, words: int, usual: Set[str], rng: Generator) -> None:
        self.sizes: Counter[str] = Counter()
        self._spots, self._words, self._usual, self._rng = spots, words, usual, rng
        self._kept: dict[str, KeySample[Sample]] = {name: KeySample(spots, rng) for name in KINDS}

    def add(self, note: Note, found: Sequence[Span], suspected: Iterable[Span] = ()) -> list[Location]:
        """Add the locations of one note and return them."""
        view = NoteView(note.text, note.note_id)
        candidates = locations(view, found, suspected=suspected, usual=self._usual, words=self._words)
        for location in candidates:
            self.sizes[location.stratum] += 1
            key = f"{note.note_id}\0{location.start}"
            self._kept[location.stratum].offer(key, lambda p=location: sample(note, p, candidates))  # type: ignore[misc]
        return candidates

    def drawn(self) -> list[Sample]:
        """Return the sample, sized by `allocation`, in random order."""
        taken = allocation(self.sizes, self._spots)
        chosen: list[Sample] = []
        for name, number in taken.items():
            kept = self._kept[name].values
            keys = sorted(kept)
            chosen += [kept[keys[i]] for i in self._rng.permutation(len(keys))[:number]]
        return [chosen[i] for i in self._rng.permutation(len(chosen))]


def sample(note: Note, location: Location, others: Sequence[Location]) -> Sample:
    """Return a location with its text and context."""
    pieces = tuple(_pieces(note.text, location, open_parts(note.text, location, others)))
    before, after = note.text[max(0, location.start - AROUND) : location.start], note.text[location.end :][:AROUND]
    return Sample(note.note_id, location.start, location.end, location.stratum, pieces, before, after)


def _pieces(text: str, location: Location, asked: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    at = location.start
    for start, end in asked:
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < location.end:
        yield text[at : location.end], False
