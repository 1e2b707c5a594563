"""The detectors in use. To add one: write its file, and name it here."""

from __future__ import annotations

from clinveil.phi.detector import Detector
from clinveil.phi.detectors import (
    addresses,
    ages,
    biometrics,
    dates,
    emails_urls,
    hospitals,
    known,
    names,
    phones,
    record_numbers,
)


def detectors() -> tuple[Detector, ...]:
    """All detectors; the order means nothing."""
    rooms = (known, names, dates, ages, phones, emails_urls, record_numbers, addresses, hospitals, biometrics)
    return tuple(room.detector() for room in rooms)


def covered() -> frozenset[str]:
    """The labels that some detector can find, from the detectors themselves."""
    return frozenset[str]().union(*(detector.labels for detector in detectors()))
