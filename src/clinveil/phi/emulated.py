"""Paper B's emulation of an imperfect remover: the names of most patients go, those of a few stay.

Removal is per patient. In the notes of a patient who was chosen, every word of his name goes; in the notes of one who
was missed nothing is touched; so a surname that both bear stays in the missed one's notes only. Nothing else is its
business: names of relatives (but for words that are the patient's own name too), of clinicians, dates and numbers stay
as they are. That makes a setting to attack, and never a de-identified corpus.

Source: JMIR 2020;22(7):e18055, Methods, Data: fake names treated as true ones and 99 % of them removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.corpus.corpus import Corpus, MemoryCorpus
from clinveil.phi.deidentifier import Deidentified, Deidentifier, deidentify_corpus
from clinveil.phi.detectors.own_names import OwnNames
from clinveil.phi.policy import Mode
from clinveil.phi.surrogates.names import NameSurrogates
from clinveil.scale import serial

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.corpus.people import Patient
    from clinveil.scale import Map


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
        """The treated corpus; it streams, and makes itself anew at each pass."""

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
        remedy = "name more patients, or a higher rate"
        raise InputError(f"a miss rate of {miss_rate} of {len(patients)} patients misses nobody", remedy=remedy)
    order = sorted(patients, key=lambda patient_id: (key.digest("emulated-miss", patient_id), patient_id))
    return frozenset(order[:count])
