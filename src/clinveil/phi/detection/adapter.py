"""`Adapter`: how to load an external library as one more detector.

To add one, write a file in `adapters/` and add its `Adapter` to `ADAPTERS` of
`adapters/__init__.py`. Nothing is downloaded: a model is a local folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

PREFIX = re.compile(r"^[BIESLU]-")


class Prediction(NamedTuple):
    """Half-open span of the input text, in code points, with the library's own label and a score in
    (0, 1].
    """

    start: int
    end: int
    label: str
    score: float


class ExternalModel(Protocol):
    """A loaded model of an external library."""

    @property
    def labels(self) -> Iterable[str]:
        """All labels that the model can return, under the library's names; labels
        without a mapping are ignored.
        """
        ...

    def predict(self, text: str) -> Iterable[Prediction]:
        """Return the identifiers in a text."""
        ...


@dataclass(frozen=True)
class Adapter:
    """How to load one library.

    Attributes:
        name: as in `--also NAME:FOLDER`.
        load: returns the model of a folder, or of None if the library needs no folder. Raises
            MissingExtra if the library is not installed, InputError if the folder does not contain
            a suitable model.
        needs_path: whether a folder is required.
    """

    name: str
    load: Callable[[Path | None], ExternalModel]
    needs_path: bool = True
