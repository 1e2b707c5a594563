"""spaCy pipelines in a local folder: setting `also`, value `spacy:/path/to/pipeline`. Entities
become findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, MissingExtra
from clinveil.phi.detection.adapter import Adapter, Prediction, adapters

SCORE = 0.7  # spaCy returns no confidence


def load_pipeline(where: Path) -> Any:
    """Load a pipeline from a folder.

    Raises MissingExtra without spaCy, and InputError if the folder contains no valid pipeline.
    """
    try:
        import spacy
    except ImportError:
        raise MissingExtra("spaCy", "spacy") from None
    try:
        language = spacy.load(where)
    except Exception:  # noqa: BLE001  any fault of its configuration; the original message may be long
        raise InputError(
            "cannot load a spaCy pipeline from this folder", where=where.name
        ) from None
    language.max_length = 1 << 30
    return language


class _Pipeline:
    def __init__(self, where: Path | None) -> None:
        assert where is not None
        self._language = load_pipeline(where)

    @property
    def labels(self) -> list[str]:
        """Return the labels of the components that produce entities."""
        factories = ("ner", "entity_ruler", "span_ruler", "beam_ner")
        pipes = self._language.pipe_labels
        meta = self._language.get_pipe_meta
        return sorted(
            {label for name in pipes for label in pipes[name] if meta(name).factory in factories}
        )

    def predict(self, text: str) -> Iterator[Prediction]:
        """Yield the entities."""
        for entity in self._language(text).ents:
            yield Prediction(entity.start_char, entity.end_char, entity.label_, SCORE)


adapters.register("spacy")(Adapter(_Pipeline))
