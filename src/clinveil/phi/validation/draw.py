"""One pass over notes and what was found in them: all places counted by stratum, and some of each drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.corpus.sample import KeySample
from clinveil.phi.detector import detectors
from clinveil.phi.note import NoteView
from clinveil.phi.validation.design import KINDS, allocation
from clinveil.phi.validation.places import Place, forms, open_parts, places
from clinveil.phi.validation.sheet import Piece, Spot


@runtime_checkable
class Suspecting(Protocol):
    """A detector that can also say what it takes for an identifier with a small probability, such as a tagger."""

    def suspect(self, note: NoteView) -> Iterable[Span]:
        """Spans that it is not sure enough of to find them."""
        ...


def suspected(note: Note) -> list[Span]:
    """What the detectors that can say so suspect in a note."""
    able = [detector for _, detector in detectors if isinstance(detector, Suspecting)]
    view = NoteView(note.text, note.note_id)
    return [span for detector in able for span in detector.suspect(view)]


MANY = 5  # patients whose notes have a word that stands in no list: more likely a term than a name
AROUND = 80  # characters before and after a place


def usual_forms(notes: Iterable[Note]) -> frozenset[str]:
    """The forms of capitalised words in no list that the notes of `MANY` patients have."""
    patients: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        for form in set(forms(NoteView(note.text))):
            if len(patients[form]) < MANY:
                patients[form].add(note.patient_id)
    return frozenset(form for form, having in patients.items() if len(having) >= MANY)


class Draw:
    """Counts places and keeps a random sample of each stratum."""

    def __init__(self, spots: int, words: int, usual: Set[str], rng: Generator) -> None:
        self.sizes: Counter[str] = Counter()
        self._spots, self._words, self._usual, self._rng = spots, words, usual, rng
        self._kept: dict[str, KeySample[Spot]] = {name: KeySample(spots, rng) for name in KINDS}

    def add(self, note: Note, found: Sequence[Span], suspected: Iterable[Span] = ()) -> list[Place]:
        """Take in the places of one note; returns them."""
        view = NoteView(note.text, note.note_id)
        made = places(view, found, suspected=suspected, usual=self._usual, words=self._words)
        for place in made:
            self.sizes[place.stratum] += 1
            self._kept[place.stratum].offer(f"{note.note_id}\0{place.start}", lambda p=place: spot(note, p, made))  # type: ignore[misc]
        return made

    def drawn(self) -> list[Spot]:
        """The sample, by `allocation`, in random order."""
        taken = allocation(self.sizes, self._spots)
        some: list[Spot] = []
        for name, number in taken.items():
            kept = self._kept[name].values
            keys = sorted(kept)
            some += [kept[keys[i]] for i in self._rng.permutation(len(keys))[:number]]
        return [some[i] for i in self._rng.permutation(len(some))]


def spot(note: Note, place: Place, others: Sequence[Place]) -> Spot:
    """A place with its text, and with what stands around it."""
    pieces = tuple(_pieces(note.text, place, open_parts(note.text, place, others)))
    before, after = note.text[max(0, place.start - AROUND) : place.start], note.text[place.end :][:AROUND]
    return Spot(note.note_id, place.start, place.end, place.stratum, pieces, before, after)


def _pieces(text: str, place: Place, asked: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    at = place.start
    for start, end in asked:
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < place.end:
        yield text[at : place.end], False
