"""The detectors, one kind of identifier per file; their order does not affect the result."""

from __future__ import annotations

from clinveil.phi.detection.detector import Detector
from clinveil.phi.detection.detectors.addresses import ADDRESSES
from clinveil.phi.detection.detectors.ages import AGES
from clinveil.phi.detection.detectors.biometrics import BIOMETRICS
from clinveil.phi.detection.detectors.dates import DATES
from clinveil.phi.detection.detectors.emails_urls import EMAILS_URLS
from clinveil.phi.detection.detectors.hl7 import HL7
from clinveil.phi.detection.detectors.hospitals import HOSPITALS
from clinveil.phi.detection.detectors.keyed_fields import KEYED_FIELDS
from clinveil.phi.detection.detectors.known import KNOWN
from clinveil.phi.detection.detectors.names import NAMES
from clinveil.phi.detection.detectors.phones import PHONES
from clinveil.phi.detection.detectors.record_numbers import RECORD_NUMBERS
from clinveil.phi.detection.detectors.tables import TABLES
from clinveil.phi.detection.detectors.tagger import TAGGER

DETECTORS: tuple[Detector, ...] = (
    ADDRESSES,
    AGES,
    BIOMETRICS,
    DATES,
    EMAILS_URLS,
    HL7,
    HOSPITALS,
    KEYED_FIELDS,
    KNOWN,
    NAMES,
    PHONES,
    RECORD_NUMBERS,
    TABLES,
    TAGGER,
)


def covered_labels() -> frozenset[str]:
    """Return the labels that at least one detector can find."""
    return frozenset[str]().union(*(detector.labels for detector in DETECTORS))
