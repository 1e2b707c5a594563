"""The tagger: names by all that stands around them, learnt from examples; what it finds joins what the rules find."""

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
from clinveil.phi.detector import Detector, all_detectors, detectors
from clinveil.phi.detectors._name_lists import ABBREVIATED
from clinveil.phi.note import NoteView

if TYPE_CHECKING:
    from clinveil.phi.settings import PhiSettings
    from clinveil.phi.tagger.tag import Hit, Tagger


_CODE = re.compile(r"[\d^|]")  # BRCA1, HLA-B27, and the fields of messages, which have a detector of their own


_SURE = 0.9
_SUSPECTED = 0.02


@dataclass(frozen=True)
class TaggerDetector:
    """Finds what its model was trained for; reads the file when it is first used.

    Attributes:
        model: a file of `clinveil phi train` in place of the model of this package, which finds NAME.
    """

    model: Path | None = None

    name = "tagger"
    examples = (
        "Handed over to {NAME:Ruvkunen} at noon. A Foley catheter was placed.",
        "Called {NAME:Ward}, who agrees; back to the ward.",
    )

    @cached_property
    def labels(self) -> frozenset[str]:
        """Those of its model."""
        return frozenset({"NAME"}) if self.model is None else _read(self.model).labels

    def find(self, note: NoteView) -> Iterator[Span]:
        """One span a run of tokens whose chance reaches the model's threshold; no part of a code is a name."""
        yield from self._spans(note, None)

    def suspect(self, note: NoteView) -> Iterator[Span]:
        """Also what has a small chance: where people should look (`clinveil validate`)."""
        yield from self._spans(note, _SUSPECTED)

    def _spans(self, note: NoteView, threshold: float | None) -> Iterator[Span]:
        for hit in _read(self.model).hits(note.tokens, threshold):
            if hit.label != "NAME" or threshold is not None or not _is_term(note.plain, hit):
                yield note.span(hit.start, hit.end, hit.label, self.name, hit.chance, why="tagger")


def _is_term(text: str, hit: Hit) -> bool:
    """Whether it is part of a code, a test or a device, whatever stands around it."""
    words = text[hit.start : hit.end].split()
    device = len(words) > 1 and words[-1].lower() in word_list("eponym_nouns") and hit.chance < _SURE
    return device or words[0].lower() in ABBREVIATED or bool(_CODE.search(text[max(0, hit.start - 1) : hit.end + 1]))


def with_tagger(settings: PhiSettings) -> tuple[Detector, ...]:
    """All detectors, with the tagger that settings ask for, or with none.

    Raises UsageError where they ask for both, and InputError for a file that holds no tagger.
    """
    if settings.tagger and settings.no_tagger:
        raise UsageError("--no-tagger and --tagger exclude each other")
    others = tuple(detector for detector in all_detectors() if not isinstance(detector, TaggerDetector))
    if settings.no_tagger:
        return others
    chosen = TaggerDetector(settings.tagger)
    _read(chosen.model)  # at once, not in a worker
    return (*others, chosen)


@lru_cache(maxsize=8)
def _read(model: Path | None) -> Tagger:
    from clinveil.phi.tagger.model import load_tagger, own_tagger
    from clinveil.phi.tagger.tag import Tagger

    return Tagger(own_tagger() if model is None else load_tagger(model))


detectors.register("tagger")(TaggerDetector())
