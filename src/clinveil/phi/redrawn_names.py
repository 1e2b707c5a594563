"""Attack 1's negative control: first, middle and last names dealt out anew in every note, independently.

In each note of a patient every part of his name becomes a part that is drawn from the same place of all patients'
names, anew for each note and each place. Every name token keeps its expected frequency, its role and its contexts; that
a first name and a surname stand together again and again is all that goes, so vectors trained on these notes can know
nothing of who belongs to whom. (Shuffling whole names would not do: they would stay together.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from clinveil.core.keys import Key, Stream
from clinveil.corpus.corpus import TEXT, Corpus, MemoryCorpus, rows, with_texts
from clinveil.corpus.people import Patient
from clinveil.phi.detectors.own_names import name_words, own_words

FIRST, MIDDLE, LAST = "first", "middle", "last"


def redrawn_names(corpus: Corpus, patients: Sequence[Patient], key: Key) -> MemoryCorpus:
    """The corpus with the names of these patients dealt out anew in each of their notes; other notes are unchanged.

    Args:
        corpus: the notes, of which the names were not removed.
        patients: whose names are dealt out, and among whom.
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
