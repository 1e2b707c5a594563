"""Emulation of an imperfect remover (paper B): the names of most patients are removed, those of a
few are kept.

Removal is per patient. In the notes of a treated patient, every word of their name is removed; the
notes of a missed patient are unchanged, so a surname that both share remains only in the notes of
the missed one. Names of relatives (except words of the patient's own name), names of clinicians,
dates and numbers are not removed. The result is a corpus for attacks, not a de-identified corpus.

Words are split at apostrophes and hyphens and compared by name form, so case and accents do not
matter. A part of one letter (an initial, the O of O'Brien) counts only next to another word of the
name. For a patient called May, every `may` in their notes is removed, as in paper B. Misspellings
are kept.

Source: JMIR 2020;22(7):e18055, Methods, Data: fake names treated as true ones and 99 % of them
removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from clinveil.core import InputError, Key, Kind, Span, UsageError, splice, tokenize, words
from clinveil.corpus import TEXT, Corpus, MemoryCorpus, Note, Patient, rows, with_texts
from clinveil.lexicons import name_form
from clinveil.phi import (
    Mode,
    NameSurrogates,
    NoteDeidentifier,
    NoteView,
    deidentify_corpus,
    in_case_of,
)
from clinveil.scale import serial

if TYPE_CHECKING:
    from clinveil.scale import Map

# A word does not contain ASCII characters other than letters.
_RUN = re.compile("[A-Za-z\x80-\U0010ffff]+")
_JOINTS = frozenset("'’-‐‑")
_LETTER = re.compile(r"[^\W_]")
_LONGEST_GAP = 3  # characters between two adjacent words, such as ", "
FIRST = "first"
MIDDLE = "middle"
LAST = "last"


class NameWord(NamedTuple):
    """Occurrence of a word of a name, with its name form."""

    start: int
    end: int
    form: str


class OwnNames:
    """Detects the words of the name of the note's patient; nothing if the patient is not known."""

    name = "own name"
    labels = frozenset({"NAME"})
    # Of Mary O'Brien.
    examples = ("{NAME:O'BRIEN}'s mother, Ann {NAME:Brien}, came with {NAME:mary}.",)

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield one span per word, or per run of words separated only by an apostrophe or a
        hyphen.
        """
        if note.patient is None:
            return
        start = end = -1
        for word in own_words(note.text, note.patient.name):
            if note.text[end : word.start] not in _JOINTS or end < 0:
                if end > 0:
                    yield Span(start, end, "NAME", self.name)
                start = word.start
            end = word.end
        if end > 0:
            yield Span(start, end, "NAME", self.name)


def name_words(name: tuple[str, ...]) -> list[list[str]]:
    """Return the name forms of the words of each token of a name: `Anne-Marie O'Brien` is [anne,
    marie], [o, brien].
    """
    return [[form for word in words(token) if (form := name_form(word))] for token in name]


def own_words(text: str, name: tuple[str, ...]) -> list[NameWord]:
    """Return the occurrences of the words of a name in a text; one letter counts only next to a
    longer word.
    """
    forms = _forms(name)
    words = list[NameWord]()
    for run in _RUN.finditer(text):
        if run[0].isascii():
            words.append(NameWord(run.start(), run.end(), run[0].lower()))
            continue
        for token in tokenize(run[0]):
            if token.kind == Kind.WORD:
                start = run.start() + token.start
                end = run.start() + token.end
                words.append(NameWord(start, end, name_form(text[start:end])))
    words = [word for word in words if word.form in forms]

    def adjacent(first: NameWord, second: NameWord) -> bool:
        gap = text[first.end : second.start]
        return (
            len(first.form + second.form) > 2
            and len(gap) <= _LONGEST_GAP
            and not _LETTER.search(gap)
        )

    pairs = [False, *(adjacent(first, second) for first, second in pairwise(words)), False]
    return [word for i, word in enumerate(words) if len(word.form) > 1 or pairs[i] or pairs[i + 1]]


@lru_cache(maxsize=1 << 12)
def _forms(name: tuple[str, ...]) -> frozenset[str]:
    return frozenset(form for part in name_words(name) for form in part)


class EmulatedRemover:
    """Removes, replaces or tags the names of all patients except a random share of missed ones.

    The missed patients are drawn with the key from the patient ids alone, so they do not depend on
    the order, and a patient missed at one rate is missed at every higher rate.

    Args:
        key: source of the draw and of the surrogates of mode `replace`.
        patients: known patients by patient id; notes of other patients are unchanged.
        miss_rate: share of missed patients, 0 to 1; 1 removes nothing and is the positive control.
        mode: treatment of the other names.

    Attributes:
        missed: the missed patients, in the order of `patients`; the secret ground truth of attacks.
        deidentifier: treats the notes.

    Raises:
        UsageError: a rate outside [0, 1].
        InputError: no patients, or too few for a missed one at a rate above 0.
    """

    def __init__(
        self,
        key: Key,
        patients: Mapping[str, Patient],
        miss_rate: float,
        mode: Mode = "remove",
    ) -> None:
        if not 0 <= miss_rate <= 1:
            raise UsageError(f"miss_rate must be between 0 and 1, not {miss_rate}")
        count = round(miss_rate * len(patients))
        if not patients or (miss_rate and not count):
            hint = "pass more patients or a higher rate"
            raise InputError(
                f"a miss rate of {miss_rate} misses none of {len(patients)} patients", hint=hint
            )
        order = sorted(
            patients, key=lambda patient_id: (key.digest("emulated-miss", patient_id), patient_id)
        )
        missed = frozenset(order[:count])
        self.missed = [patient for patient_id, patient in patients.items() if patient_id in missed]
        treated = {
            patient_id: patient
            for patient_id, patient in patients.items()
            if patient_id not in missed
        }
        self.deidentifier = NoteDeidentifier(
            key, mode=mode, patients=treated, finders=(OwnNames(),)
        )

    def over(self, corpus: Corpus, map: Map = serial) -> MemoryCorpus:
        """Return the treated corpus, computed again at each pass."""

        def batches() -> Iterator[pa.RecordBatch]:
            return (done.batch for done in deidentify_corpus(corpus, self.deidentifier, map))

        return MemoryCorpus(batches, corpus.columns, corpus.suffix)

    def surrogate_patients(self) -> list[Patient]:
        """Return the treated patients under their surrogate names; none unless the mode is
        `replace`.
        """
        if self.deidentifier.mode != "replace":
            return []
        renamed = []
        for patient in self.deidentifier.patients.values():
            surrogates = NameSurrogates(self.deidentifier.key, patient.patient_id, patient)
            renamed.append(
                replace(patient, name=tuple(surrogates.of(token) for token in patient.name))
            )
        return renamed


def redrawn_names(corpus: Corpus, patients: Sequence[Patient], key: Key) -> MemoryCorpus:
    """Return the corpus with redrawn patient names, the negative control of attack 1.

    In each note of a patient, every part of their name is replaced with a part drawn from the same
    position of all patients' names, independently for each note and position. Every name token
    keeps its expected frequency, role and contexts. Only the repeated co-occurrence of first name
    and surname is lost, so vectors trained on these notes contain no information on which names
    belong together. (Complete names, if shuffled, would still co-occur.)

    Args:
        corpus: notes with their original names.
        patients: the patients whose names are redrawn, and the pool of names.
        key: key of the draws; each is a function of the note id and the position in the name.
    """
    by_id = {patient.patient_id: patient for patient in patients}
    pools: dict[str, list[list[str]]] = {FIRST: [], MIDDLE: [], LAST: []}  # with repetitions
    for patient in patients:
        for position, part in _positions(patient):
            pools[position].append(part)

    def redrawn(note: Note) -> str:
        if (patient := by_id.get(note.patient_id)) is None:
            return note.text
        new = dict[str, str]()
        stream = key.stream("redrawn-names", note.note_id)
        for position, part in _positions(patient):
            drawn = stream.choice(pools[position])
            new |= {form: drawn[min(number, len(drawn) - 1)] for number, form in enumerate(part)}
        words = own_words(note.text, patient.name)
        spans = [Span(start, end, "NAME") for start, end, _ in words]
        return splice(
            note.text, spans, [in_case_of(note.text[w.start : w.end], new[w.form]) for w in words]
        )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in corpus.batches():
            valid = batch.filter(batch.column(TEXT).is_valid())
            yield with_texts(valid, [redrawn(note) for note in rows([valid])])

    return MemoryCorpus(batches, corpus.columns, corpus.suffix)


def _positions(patient: Patient) -> list[tuple[str, list[str]]]:
    parts = [part for part in name_words(patient.name) if part]
    positions = [FIRST, *[MIDDLE] * (len(parts) - 2), LAST][: len(parts)]
    return list(zip(positions, parts, strict=True))
