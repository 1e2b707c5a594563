"""Adapters of identifier detectors from other libraries, one per file. Each needs an optional extra
and works offline.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from clinveil.core import LABELS, InputError, InputWarning, Span, UsageError
from clinveil.phi.detection.adapter import PREFIX, Adapter
from clinveil.phi.detection.adapters.huggingface import HUGGINGFACE
from clinveil.phi.detection.adapters.presidio import PRESIDIO
from clinveil.phi.detection.note import NoteView

ADAPTERS: tuple[Adapter, ...] = (HUGGINGFACE, PRESIDIO)


ALIASES = {"hf": "huggingface"}
_TITLE = re.compile(r"(?:Dr|Drs|Mr|Mrs|Ms|Mx|Prof)\b\.?\s+", re.IGNORECASE)
# Models of general text also label `daily` and `two weeks ago` as dates.
_DATE = re.compile(
    r"\d{1,4}[/.-]\d|\b(?:19|20)\d\d\b|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov"
    r"|dec)[a-z]*\b",
    re.IGNORECASE,
)


_OTHER_CLASSES = (  # not identifiers; of ages, only those over 89 are
    "NORP PRODUCT EVENT WORK_OF_ART LAW LANGUAGE TIME PERCENT MONEY QUANTITY ORDINAL CARDINAL MISC"
    " NRP AGE STATE COUNTRY PROFESSION"
)
_CLASSES = {
    "NAME": (
        "PERSON PER PATIENT DOCTOR STAFF HCW USERNAME PATIENT_NAME FIRSTNAME LASTNAME GIVENNAME"
    ),
    "CITY": "GPE LOC LOCATION LOCATION-OTHER LOCATION_OTHER COUNTY",
    "ADDRESS": "STREET",
    "HOSPITAL": "FAC ORG HOSP ORGANIZATION PATORG VENDOR",
    "DATE": "DATE_TIME",
    "EMAIL": "EMAIL_ADDRESS",
    "PHONE": "TELEPHONE PHONE_NUMBER",
    "ACCOUNT": "CREDIT_CARD IBAN_CODE US_BANK_NUMBER",
    "IP": "IP_ADDRESS",
    "DEVICE": "MAC_ADDRESS",
    "LICENSE": "MEDICAL_LICENSE US_DRIVER_LICENSE US_NPI",
    "HEALTH_PLAN": "US_MBI HEALTHPLAN",
    "SSN": "US_SSN CA_SIN UK_NINO",
    "MRN": "UK_NHS MEDICALRECORD",
    "ZIP": "UK_POSTCODE ZIPCODE",
    "ID": "US_ITIN US_PASSPORT IDNUM OTHERPHI OTHER UNIQUE",
    "BIOMETRIC": "BIOID",
}
# Labels of the i2b2 models, OntoNotes, CoNLL, WikiNER and Presidio; those of `spans.LABELS` map to
# themselves.
KNOWN_LABELS: Mapping[str, str | None] = {
    **{name: label for label, names in _CLASSES.items() for name in names.split()},
    **{label: label for label in LABELS},
    **dict.fromkeys(_OTHER_CLASSES.split()),
    "O": None,
}


class AdapterDetector:
    """A detector that runs the model of an adapter. Unpickling it in another process loads the
    model again.
    """

    examples: tuple[str, ...] = ()  # the results depend on the model

    def __init__(self, spec: str) -> None:
        kind, _, folder = spec.partition(":")
        self.spec = spec
        self.name = ALIASES.get(kind, kind)
        adapter = _adapter(self.name)
        if adapter.needs_path and not folder:
            raise UsageError(f"identifiers.also: {kind} needs a folder", hint=f"pass {kind}:FOLDER")
        if folder and not Path(folder).is_dir():
            hint = "pass a local folder with the model; models are never downloaded"
            raise InputError("no such folder", where=f"identifiers.also {kind}", hint=hint)
        self._model = adapter.load(Path(folder) if folder else None)
        self.unknown = sorted(
            label for label in self._model.labels if _plain(label) not in KNOWN_LABELS
        )
        self.labels = frozenset(label for label in map(self._mapped, self._model.labels) if label)
        if not self.labels:
            hint = f"its labels are {', '.join(sorted(self._model.labels)[:8])}"
            raise InputError(
                "none of the model's labels is an identifier",
                where=f"identifiers.also {kind}",
                hint=hint,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return loaded_adapter, (self.spec,)

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield the model's predictions with a label that is mapped to one of `spans.LABELS`."""
        for prediction in self._model.predict(note.plain) if note.plain.strip() else ():
            label = self._mapped(prediction.label)
            start, end = _trimmed(note.plain, prediction.start, prediction.end, label)
            if label and start < end and (label != "DATE" or _DATE.search(note.plain, start, end)):
                score = min(1.0, max(0.01, prediction.score))
                yield note.span(
                    start, end, label, self.name, score, PREFIX.sub("", prediction.label)
                )

    def _mapped(self, label: str) -> str | None:
        return KNOWN_LABELS.get(_plain(label))


def _adapter(name: str) -> Adapter:
    for adapter in ADAPTERS:
        if adapter.name == name:
            return adapter
    names = ", ".join(adapter.name for adapter in ADAPTERS)
    raise UsageError(f"unknown adapter {name!r}", hint=f"use one of {names}")


def _plain(label: str) -> str:
    return PREFIX.sub("", label).upper()


def _trimmed(text: str, start: int, end: int, label: str | None) -> tuple[int, int]:
    """Strip white space and masked characters from both ends of a span, and the title from a
    name.
    """
    while start < end and (text[start].isspace() or text[start] == "\0"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] == "\0"):
        end -= 1
    title = _TITLE.match(text, start, end) if label == "NAME" else None
    return (title.end() if title else start), end


@lru_cache(maxsize=8)
def loaded_adapter(spec: str) -> AdapterDetector:
    """Return the detector of `KIND` or `KIND:PATH`, loaded once per process.

    Raises UsageError for an unknown kind, InputError and MissingExtra as the adapter does.
    """
    return AdapterDetector(spec)


def adapters_for(specs: Iterable[str]) -> list[AdapterDetector]:
    """Return the detectors of some specs; warn (`InputWarning`) about labels that have no
    mapping.
    """
    detectors = [loaded_adapter(spec) for spec in dict.fromkeys(specs)]
    for detector in detectors:
        if detector.unknown:
            message = (
                f"identifiers.also {detector.name}: ignored labels without a mapping:"
                f" {', '.join(detector.unknown)}"
            )
            warnings.warn(message, InputWarning, stacklevel=3)
    return detectors
