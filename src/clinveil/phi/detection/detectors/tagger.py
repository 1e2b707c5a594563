"""The tagger: a statistical model of names in context, trained on examples. Its findings are added to those of the
rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from clinveil.core.errors import UsageError
from clinveil.core.spans import Span
from clinveil.lexicons.words import word_list
from clinveil.phi.detection.detector import Detector, all_detectors, detectors
from clinveil.phi.detection.detectors._name_lists import ABBREVIATED
from clinveil.phi.detection.note import NoteView

if TYPE_CHECKING:
    from clinveil.phi.settings import PhiSettings
    from clinveil.phi.tagger.tag import Hit, Tagger


_CODE = re.compile(r"[\d^|]")  # BRCA1, HLA-B27, and HL7 fields, which have their own detector


_SURE = 0.9
_LOW_THRESHOLD = 0.02


@dataclass(frozen=True)
class TaggerDetector:
    """Detector based on a trained sequence model, loaded on first use.

    Attributes:
        model: a model file that replaces the bundled model. The bundled model detects NAME.
    """

    model: Path | None = None

    name = "tagger"
    examples = (
        "Handed over to {NAME:Ruvkunen} at noon. A Foley catheter was placed.",
        "Called {NAME:Ward}, who agrees; back to the ward.",
    )

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of the model."""
        return frozenset({"NAME"}) if self.model is None else _read(self.model).labels

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield one span per run of tokens above the model's threshold. Parts of medical codes are excluded."""
        yield from self._spans(note, None)

    def suspect(self, note: NoteView) -> Iterator[Span]:
        """Yield also spans with a low probability, as candidates for manual review."""
        yield from self._spans(note, _LOW_THRESHOLD)

    def _spans(self, note: NoteView, threshold: float | None) -> Iterator[Span]:
        for hit in _read(self.model).hits(note.tokens, threshold):
            if hit.label != "NAME" or threshold is not None or not _is_term(note.plain, hit):
                yield note.span(hit.start, hit.end, hit.label, self.name, hit.probability, why="tagger")


def _is_term(text: str, hit: Hit) -> bool:
    """Return whether a hit is part of a code, a test or a device, regardless of context."""
    words = text[hit.start : hit.end].split()
    device = len(words) > 1 and words[-1].lower() in word_list("eponym_nouns") and hit.probability < _SURE
    return device or words[0].lower() in ABBREVIATED or bool(_CODE.search(text[max(0, hit.start - 1) : hit.end + 1]))


def with_tagger(settings: PhiSettings) -> tuple[Detector, ...]:
    """Return all detectors with the configured tagger, or without one.

    Raises UsageError if the settings both name and disable a tagger, and InputError for an invalid model file.
    """
    if settings.tagger and settings.no_tagger:
        raise UsageError("settings no_tagger and tagger exclude each other")
    others = tuple(detector for detector in all_detectors() if not isinstance(detector, TaggerDetector))
    if settings.no_tagger:
        return others
    chosen = TaggerDetector(settings.tagger)
    _read(chosen.model)  # fail here, not in a worker
    return (*others, chosen)


@lru_cache(maxsize=8)
def _read(model: Path | None) -> Tagger:
    from clinveil.phi.tagger.model import load_tagger, own_tagger
    from clinveil.phi.tagger.tag import Tagger

    return Tagger(own_tagger() if model is None else load_tagger(model))


detectors.register("tagger")(TaggerDetector())
