"""Leaked names among surrogates: the words of released notes as an attacker sees them, and which are truly leaked.

A de-identifier that replaces names hides the few that it missed among those it invented. The attacker has the notes
and, as it is public, the de-identifier; not its key. The truth comes from the known patients: a part of a patient's own
name in the patient's own released notes is a leak, since a surrogate never is what it replaces.

What is counted is a name in a patient's notes, once, however often it stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context, source_id
from clinveil.core.finding import ControlKind, Finding
from clinveil.core.types import Ints
from clinveil.corpus.corpus import Note, rows
from clinveil.corpus.sample import KeySample
from clinveil.lexicons.names import name_form
from clinveil.lexicons.unlisted import unlisted_name
from clinveil.phi.detector import detectors
from clinveil.phi.finder import Finder
from clinveil.phi.note import NoteView, Word
from clinveil.phi.surrogates.pools import pool as surrogate_pool
from clinveil.phi.validation.survival import own_words
from clinveil.stats import share_by_patient, share_method

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

Name = tuple[str, str]
"""A patient, and the form of a word of a name in their notes."""
Names = frozenset[Name]

SHORTEST = 3
FEW, FEW_SHARE = 3, 0.01  # patients whose notes have a name that is no term
PLANTED = 0.1  # of the patients get a planted leak
FEWEST_PLANTED = 5


@dataclass(frozen=True)
class Read:
    """A released note as the attacker reads it.

    Attributes:
        plain: its plain copy. words: those of three letters and more, placed in the copy.
        again: whether the de-identifier, asked again, takes each for a name. other: for another identifier, as a place.
    """

    note: Note = field(repr=False)
    plain: str = field(repr=False)
    words: Sequence[Word] = field(repr=False)
    again: Sequence[bool] = field(repr=False)
    other: Sequence[bool] = field(repr=False)

    @property
    def forms(self) -> list[str]:
        """The form of each word."""
        return [name_form(word.text) for word in self.words]


class Released(NamedTuple):
    """Released notes of some patients, and their leaked names."""

    notes: list[Read]
    leaked: Names


def engine() -> Finder:
    """The de-identifier as anybody has it: its detectors, without known patients."""
    return Finder([detectors.get(name) for name in detectors.names() if name != "known"])


def read(note: Note, finder: Finder) -> Read:
    """A note with the names that the de-identifier finds in it."""
    view = NoteView(note.text, note.note_id)
    spans = finder.find(note.text)
    words = [word for word in view.words if len(word.text) >= SHORTEST]
    places = [view.aligned.source_offsets(word.start, word.end) for word in words]
    labels = [{s.label for s in spans if s.start < end and start < s.end} for start, end in places]
    again = ["NAME" in found for found in labels]
    return Read(note, view.plain, words, again, [bool(found - {"NAME"}) for found in labels])


def released(context: Context, patients: int, rng: Generator) -> Released:
    """The notes of a sample of patients, under their source ids, and the leaked names of those who are known.

    Raises InputError for a released patient whom the crosswalk does not know.
    """
    assert context.released is not None and context.known is not None
    sample: KeySample[list[Note]] = KeySample(patients, rng)
    for note in rows(context.released):
        patient = source_id(note.patient_id, context.patients)
        kept = sample.offer(patient, list)
        if kept is not None:
            kept.append(note._replace(patient_id=patient))
    finder = engine()
    notes = [read(note, finder) for patient in sorted(sample.values) for note in sample.values[patient]]
    return Released(notes, leaked(notes, context.known))


def leaked(notes: Iterable[Read], known: Mapping[str, Patient]) -> Names:
    """Parts of known patients' own names that stand in their own notes, but for ordinary words in lower case."""
    own = {patient: own_words(one) for patient, one in known.items()}
    return frozenset(
        (one.note.patient_id, form)
        for one in notes
        if one.note.patient_id in own
        for word, form in zip(one.words, one.forms, strict=True)
        if form in own[one.note.patient_id] and (word.capital or not word.ordinary)
    )


def seen_as_names(notes: Sequence[Read]) -> Names:
    """All that looks like a name to somebody who reads the release.

    That is what the de-identifier finds again, and what is capitalised, no ordinary word, and in few patients' notes:
    a term stands in many.
    """
    again = {name for one in notes for name in _names(one, one.again)}
    capital = {name for one in notes for name in _names(one, _capitals(one))}
    patients = Counter(form for _, form in capital)
    most = max(FEW, FEW_SHARE * len({one.note.patient_id for one in notes}))
    return frozenset(again | {name for name in capital if patients[name[1]] <= most})


def _capitals(one: Read) -> list[bool]:
    return [w.capital and not w.ordinary and not o for w, o in zip(one.words, one.other, strict=True)]


def _names(one: Read, which: Iterable[bool]) -> Iterator[Name]:
    return ((one.note.patient_id, form) for form, yes in zip(one.forms, which, strict=True) if yes)


def pool() -> Collection[str]:
    """The forms of all names that the de-identifier's surrogates are drawn from."""
    return {name_form(name) for name in (*surrogate_pool("given").names, *surrogate_pool("family").names)}


def planted(notes: Sequence[Read], rng: Generator) -> Released:
    """The positive control: in the notes of some patients a surrogate becomes a name that stands in no list.

    It stands where the surrogate stood, throughout the patient's notes, and the de-identifier is taken to miss it.
    """
    by_patient: dict[str, list[Read]] = {}
    for one in notes:
        by_patient.setdefault(one.note.patient_id, []).append(one)
    able = [patient for patient, some in by_patient.items() if any(any(one.again) for one in some)]
    number = min(len(able), max(FEWEST_PLANTED, int(PLANTED * len(able))))
    truth = set()
    for index in sorted(rng.permutation(len(able))[:number]):
        patient = able[index]
        forms = sorted({f for one in by_patient[patient] for f, a in zip(one.forms, one.again, strict=True) if a})
        old, new = forms[int(rng.integers(len(forms)))], unlisted_name(lambda n: int(rng.integers(n)))
        by_patient[patient] = [_renamed(one, old, new) for one in by_patient[patient]]
        truth.add((patient, name_form(new)))
    return Released([one for some in by_patient.values() for one in some], frozenset(truth))


def _renamed(one: Read, old: str, new: str) -> Read:
    """A note in which one name is another, read as the attacker reads it."""
    pieces: list[str] = []
    at = 0
    for word, form in zip(one.words, one.forms, strict=True):
        if form == old:
            pieces += [one.plain[at : word.start], new.upper() if word.shouted else new]
            at = word.end
    if not at:
        return one
    made = read(one.note._replace(text="".join([*pieces, one.plain[at:]])), engine())
    mine = [form == name_form(new) for form in made.forms]
    seen = (zip(side, mine, strict=True) for side in (made.again, made.other))
    again, other = ([found and not planted for found, planted in side] for side in seen)
    return replace(made, again=again, other=other)


def scored(
    measure: str, flagged: Names, truth: Released, names: Names, control: float | None, **more: Any
) -> list[Finding]:
    """Precision and recall of an attacker who takes the names `flagged` for leaked ones, with intervals by patient.

    Args:
        names: all that may be flagged. control: recall on planted leaks.
    """
    patients = sorted({one.note.patient_id for one in truth.notes})
    hits = flagged & truth.leaked
    base = len(truth.leaked & names) / len(names) if names else 0.0
    detail = {"leaked": len(truth.leaked), "flagged": len(flagged), "names": len(names), "patients": len(patients)}
    kind: ControlKind = "positive"
    about: dict[str, Any] = {"better": "lower", "unit": "names", "detail": detail, **more}
    found = _ratio(f"{measure}_precision", hits, flagged, patients, (base, LEAKED), **about)
    planted_is = {"control": control, "control_is": CONTROL_IS, "control_kind": kind} if control is not None else {}
    share = len(flagged) / len(names) if names else 0.0
    return [found, _ratio(f"{measure}_recall", hits, truth.leaked, patients, (share, GUESS), **about, **planted_is)]


LEAKED, GUESS = "leaked names among all", "as many names, drawn from all"
CONTROL_IS = "names of no list, planted where surrogates stood"


def _ratio(
    measure: str, hits: Names, of: Names, patients: Sequence[str], chance: tuple[float, str], **about: Any
) -> Finding:
    if not of:
        why = "nothing was taken for a leak" if measure.endswith("precision") else "no known patient's name is left"
        return Finding(measure, None, 0, **{**about, "detail": {**about["detail"], "why": why}})
    table = _by_patient(hits, of, patients)
    low, high = share_by_patient(table)
    more: dict[str, Any] = {"count": len(hits), "method": share_method(table, "patients")}
    more |= {"chance": min(chance[0], 1.0), "chance_is": chance[1]}
    return Finding(measure, len(hits) / len(of), len(of), low=low, high=high, **about, **more)


def _by_patient(hits: Names, all_: Names, patients: Sequence[str]) -> Ints:
    place = {patient: i for i, patient in enumerate(patients)}
    table = np.zeros((len(patients), 2), dtype=np.int64)
    for column, names in enumerate((hits, all_)):
        for patient, _ in names:
            table[place[patient], column] += 1
    return table
