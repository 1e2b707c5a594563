"""Paper B's emulation of an imperfect remover: the names of most patients go, those of a few stay.

Removal is per patient. In the notes of a patient who was chosen, every word of their name goes; in the notes of one who
was missed nothing is touched; so a surname that both bear stays in the missed one's notes only. Nothing else is its
business: names of relatives (but for words that are the patient's own name too), of clinicians, dates and numbers stay
as they are. That makes a setting to attack, and never a de-identified corpus.

Words are told apart as everywhere (an apostrophe or a hyphen splits), and compared by name form, so that case and
accents do not matter. A part of one letter (an initial, the O of O'Brien) counts only beside another word of the name.
A patient called May loses every `may` of her notes, as under paper B's removal of name tokens. Misspellings stay.

Source: JMIR 2020;22(7):e18055, Methods, Data: fake names treated as true ones and 99 % of them removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.core.spans import Span
from clinveil.core.tokens import Kind, tokenize, words
from clinveil.corpus.corpus import Corpus, MemoryCorpus
from clinveil.lexicons.names import name_form
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.note import NoteView
from clinveil.phi.passes import deidentify_corpus
from clinveil.phi.policy import Mode
from clinveil.phi.surrogates.names import NameSurrogates
from clinveil.scale import serial

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.corpus.people import Patient
    from clinveil.scale import Map


from collections.abc import Sequence

import pyarrow as pa

from clinveil.core.keys import Stream
from clinveil.corpus.corpus import TEXT, rows, with_texts
from clinveil.corpus.people import Patient

# A word never crosses an ASCII character that is no letter.
_RUN = re.compile("[A-Za-z\x80-\U0010ffff]+")
_JOINTS = frozenset("'’-‐‑")
_LETTER = re.compile(r"[^\W_]")
_NEXT = 3  # characters at most between two words that stand beside each other: ", " and the like
FIRST, MIDDLE, LAST = "first", "middle", "last"


class NamePlace(NamedTuple):
    """Where a word of the name stands, and its name form."""

    start: int
    end: int
    form: str


class OwnNames:
    """Finds NAME: the words of the name of the note's patient; nothing where the patient is not known."""

    name = "own name"
    labels = frozenset({"NAME"})
    examples = ("{NAME:O'BRIEN}'s mother, Ann {NAME:Brien}, came with {NAME:mary}.",)  # of Mary O'Brien

    def find(self, note: NoteView) -> Iterator[Span]:
        """One span a word, or a run of words that only an apostrophe or a hyphen parts."""
        if note.patient is None:
            return
        start = end = -1
        for place in own_words(note.text, note.patient.name):
            if note.text[end : place.start] not in _JOINTS or end < 0:
                if end > 0:
                    yield Span(start, end, "NAME", self.name)
                start = place.start
            end = place.end
        if end > 0:
            yield Span(start, end, "NAME", self.name)


def name_words(name: tuple[str, ...]) -> list[list[str]]:
    """The name forms of the words of each token of a name: `Anne-Marie O'Brien` is [anne, marie], [o, brien]."""
    return [[form for word in words(token) if (form := name_form(word))] for token in name]


def own_words(text: str, name: tuple[str, ...]) -> list[NamePlace]:
    """Where the words of a name stand in a text, in order."""
    forms = _forms(name)
    found = [place for place in _places(text) if place.form in forms]
    return [place for at, place in enumerate(found) if len(place.form) > 1 or _beside(text, found, at)]


@lru_cache(maxsize=1 << 12)
def _forms(name: tuple[str, ...]) -> frozenset[str]:
    return frozenset(form for part in name_words(name) for form in part)


def _beside(text: str, found: list[NamePlace], at: int) -> bool:
    """Whether a longer word of the name stands just before or after, with no more than signs between."""
    near = [(other, found[at]) for other in found[max(0, at - 1) : at]]
    near += [(found[at], other) for other in found[at + 1 : at + 2]]
    return any(
        max(len(one.form), len(two.form)) > 1
        and len(gap := text[one.end : two.start]) <= _NEXT
        and not _LETTER.search(gap)
        for one, two in near
    )


def _places(text: str) -> Iterator[NamePlace]:
    for run in _RUN.finditer(text):
        if run[0].isascii():
            yield NamePlace(run.start(), run.end(), run[0].lower())
            continue
        for token in tokenize(run[0]):
            if token.kind == Kind.WORD:
                start, end = run.start() + token.start, run.start() + token.end
                yield NamePlace(start, end, name_form(text[start:end]))


class EmulatedRemover:
    """Removes, replaces or tags the names of all patients but a share that is missed.

    Who is missed is drawn by the key from patient ids alone, so it depends on no order, and a patient who is missed at
    one rate is missed at every higher one.

    Args:
        key: the draw, and the surrogates of mode `replace`, come from it.
        patients: known patients by patient id; notes of others are not touched.
        miss_rate: share of the patients who are missed, 0 to 1; 1 is no removal at all, the positive control.
        mode: what becomes of the names that are not missed.

    Attributes:
        missed: the patients whose names stay, in the order of `patients`: the secret truth of the attacks.
        deidentifier: what treats the notes.

    Raises:
        UsageError: a rate outside [0, 1].
        InputError: no patients, or so few that a rate over 0 would miss nobody.
    """

    def __init__(
        self,
        key: Key,
        patients: Mapping[str, Patient],
        miss_rate: float,
        mode: Mode = "remove",
        *,
        keep_spans: bool = False,
    ) -> None:
        left = _missed(key, patients, miss_rate)
        self.missed = [patient for patient_id, patient in patients.items() if patient_id in left]
        treated = {patient_id: patient for patient_id, patient in patients.items() if patient_id not in left}
        self.deidentifier = Deidentifier(key, mode=mode, patients=treated, keep_spans=keep_spans, finders=(OwnNames(),))

    def __call__(self, batch: pa.RecordBatch) -> Deidentified:
        """Treat a batch that begins with note_id, patient_id, text."""
        return self.deidentifier(batch)

    def over(self, corpus: Corpus, map: Map = serial) -> MemoryCorpus:
        """The treated corpus, made in a stream at each pass."""

        def batches() -> Iterator[pa.RecordBatch]:
            return (done.batch for done in deidentify_corpus(corpus, self.deidentifier, map))

        return MemoryCorpus(batches, corpus.columns, corpus.suffix)

    def surrogate_patients(self) -> list[Patient]:
        """Under mode `replace`, the patients who were not missed, by the names that stand in their notes now."""
        if self.deidentifier.mode != "replace":
            return []
        return [self._renamed(patient_id, patient) for patient_id, patient in self.deidentifier.patients.items()]

    def _renamed(self, patient_id: str, patient: Patient) -> Patient:
        made = NameSurrogates(self.deidentifier.key, patient_id, patient)
        return replace(patient, name=tuple(made.of(token) for token in patient.name))


def _missed(key: Key, patients: Mapping[str, Patient], miss_rate: float) -> frozenset[str]:
    if not 0 <= miss_rate <= 1:
        raise UsageError(f"--miss-rate is a share from 0 to 1, not {miss_rate}")
    count = round(miss_rate * len(patients))
    if not patients or (miss_rate and not count):
        hint = "name more patients, or a higher rate"
        raise InputError(f"a miss rate of {miss_rate} of {len(patients)} patients misses nobody", hint=hint)
    order = sorted(patients, key=lambda patient_id: (key.digest("emulated-miss", patient_id), patient_id))
    return frozenset(order[:count])


def redrawn_names(corpus: Corpus, patients: Sequence[Patient], key: Key) -> MemoryCorpus:
    """The corpus with the names of these patients redrawn in each of their notes: attack 1's negative control.

    In each note of a patient every part of their name becomes a part that is drawn from the same place of all patients'
    names, independently for each note and each place. Every name token keeps its expected frequency, its role and its
    contexts; only that a first name and a surname stand together again and again is lost, so vectors trained on these
    notes can know nothing of who belongs to whom. (Shuffling whole names would not do: they would stay together.)

    Args:
        corpus: the notes, of which the names were not removed.
        patients: whose names are redrawn, and from whose names.
        key: of the draws, each a function of the note id and the place in the name alone.
    """
    by_id = {patient.patient_id: patient for patient in patients}
    pools = _pools(patients)

    def batches() -> Iterator[pa.RecordBatch]:
        return (_treat(batch, by_id, pools, key) for batch in corpus.batches())

    return MemoryCorpus(batches, corpus.columns, corpus.suffix)


def _pools(patients: Sequence[Patient]) -> dict[str, list[list[str]]]:
    """The parts that stand at each place of the names, as often as they do."""
    pools: dict[str, list[list[str]]] = {FIRST: [], MIDDLE: [], LAST: []}
    for patient in patients:
        for place, part in _placed(patient):
            pools[place].append(part)
    return pools


def _placed(patient: Patient) -> list[tuple[str, list[str]]]:
    parts = [part for part in name_words(patient.name) if part]
    places = [FIRST, *[MIDDLE] * (len(parts) - 2), LAST][: len(parts)]
    return list(zip(places, parts, strict=True))


def _treat(
    batch: pa.RecordBatch, patients: Mapping[str, Patient], pools: Mapping[str, list[list[str]]], key: Key
) -> pa.RecordBatch:
    batch = batch.filter(batch.column(TEXT).is_valid())
    texts = [
        _redraw(note.text, patients[note.patient_id], pools, key.stream("redrawn-names", note.note_id))
        if note.patient_id in patients
        else note.text
        for note in rows([batch])
    ]
    return with_texts(batch, texts)


def _redraw(text: str, patient: Patient, pools: Mapping[str, list[list[str]]], stream: Stream) -> str:
    new: dict[str, str] = {}
    for place, part in _placed(patient):
        drawn = stream.choice(pools[place])
        for number, form in enumerate(part):
            new[form] = drawn[min(number, len(drawn) - 1)]
    pieces, position = [], 0
    for start, end, form in own_words(text, patient.name):
        pieces += [text[position:start], _in_case_of(text[start:end], new[form])]
        position = end
    return "".join([*pieces, text[position:]])


def _in_case_of(original: str, drawn: str) -> str:
    if original.isupper() and len(original) > 1:
        return drawn.upper()
    return drawn if original.islower() else drawn.capitalize()
