"""`TaggerModel` and its file format: NumPy arrays and a JSON header in a zip (.npz) with a hash; no
pickle.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import LABELS, InputError
from clinveil.phi.tagger.features import VERSION

SCHEMA = "clinveil.tagger/1"
_ARRAYS = ("properties", "weights", "moves", "vocabulary")
_DTYPES = [np.uint8, np.float64, np.float64, np.uint32]
_LARGEST = 64 << 20
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    zipfile.BadZipFile,
    NotImplementedError,
)


@dataclass(frozen=True)
class TaggerModel:
    """The weights of a CRF.

    Attributes:
        labels: "O", then "B-NAME", "I-NAME" and so on: outside, and the first and later tokens of
            each PHI label.
        properties: property names of `features`, sorted, without line breaks.
        weights: property x label, in nats.
        moves: transition weights, from x to, in nats.
        vocabulary: sorted hashes (`features.word_hash`) of words that are not names.
        threshold: minimum probability of a token.
        card: provenance: texts, counts, bound, date; no words of notes.
    """

    labels: tuple[str, ...]
    properties: tuple[str, ...] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)
    moves: NDArray[np.float64] = field(repr=False)
    vocabulary: NDArray[np.uint32] = field(repr=False)
    threshold: float
    card: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        kinds = {label.partition("-")[2] for label in self.labels[1:]}
        size = len(self.labels)
        if (
            self.labels[:1] != ("O",)
            or not kinds
            or not kinds <= LABELS.keys()
            or size != 2 * len(kinds) + 1
        ):
            raise ValueError("labels are not PHI labels")
        if (
            self.vocabulary.ndim != 1
            or self.weights.shape != (len(self.properties), size)
            or self.moves.shape != (size, size)
        ):
            raise ValueError("array shapes are inconsistent")
        if not (
            np.isfinite(self.weights).all()
            and np.isfinite(self.moves).all()
            and 0 < self.threshold <= 1
        ):
            raise ValueError("weights or threshold are not finite numbers in range")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that determines the model's output."""
        identity = [VERSION, self.labels, self.threshold]
        digest = hashlib.sha256(json.dumps(identity).encode())
        for array in arrays_of(self).values():
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def load_tagger(path: Path) -> TaggerModel:
    """Read a model. Raises InputError for an invalid or damaged file or another feature version."""
    try:
        with zipfile.ZipFile(path) as outer:
            if sum(member.file_size for member in outer.infolist()) > _LARGEST:
                raise ValueError
        with np.load(path, allow_pickle=False) as stored:
            record = json.loads(stored["header"].tobytes())
            arrays = [stored[name] for name in _ARRAYS]
        if record["schema"] != SCHEMA or [array.dtype for array in arrays] != _DTYPES:
            raise ValueError
        names, weights, moves, known = arrays
        properties = tuple(names.tobytes().decode("utf-8").split("\n"))
        labels = tuple(map(str, record["labels"]))
        threshold = float(record["threshold"])
        model = TaggerModel(
            labels, properties, weights, moves, known, threshold, dict(record["card"])
        )
    except _BROKEN:
        hint = "train one with `training/` of the repository"
        raise InputError("not a tagger model", where=path.name, hint=hint) from None
    if record["features"] != VERSION:
        raise InputError(
            "tagger model of another version of clinveil", where=path.name, hint="train it again"
        )
    if record["sha256"] != model.digest:
        raise InputError("damaged tagger model", where=path.name, hint="copy or train it again")
    return model


@cache
def own_tagger() -> TaggerModel:
    """Return the bundled model, which detects NAME.

    `training/train_bundled.py` trains it; `docs/deidentification.md` contains its model card.
    """
    with as_file(files("clinveil.phi.tagger").joinpath("names.npz")) as path:
        return load_tagger(path)


def arrays_of(model: TaggerModel) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model file, without its header."""
    names = np.frombuffer("\n".join(model.properties).encode("utf-8"), np.uint8)
    return {
        "properties": names,
        "weights": model.weights,
        "moves": model.moves,
        "vocabulary": model.vocabulary,
    }
