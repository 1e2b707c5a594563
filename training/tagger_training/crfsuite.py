"""Fit with python-crfsuite and read its model file exactly (the library's own text dump rounds the
weights).
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.phi import EDGE, OFFSETS, PAIRS, Features, pair

# c1 makes most weights 0 and thus the file small; c2 shrinks the others towards 0.
PARAMETERS = {"c1": 0.1, "c2": 0.02, "feature.minfreq": 3, "feature.possible_transitions": True}
ITERATIONS = 80
Examples = Iterable[tuple[Sequence[str], Sequence[str]]]
"""Pairs of tokens and labels, one per text."""
Weights = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]


def items(tokens: Sequence[str], features: Features) -> list[list[str]]:
    """Return the properties of each token in python-crfsuite's format, all with weight 1."""
    padded = [EDGE, EDGE, *tokens, EDGE, EDGE]
    kinds = [features.kind(token) for token in padded]
    return [
        [
            *(
                name
                for offset in OFFSETS
                for name in features.properties(padded[i + offset], offset)
            ),
            *(
                pair(number, kinds[i + first], kinds[i + second])
                for number, (first, second) in enumerate(PAIRS)
            ),
        ]
        for i in range(2, len(tokens) + 2)
    ]


def fit(examples: Examples, labels: Sequence[str], features: Features, iterations: int) -> Weights:
    """Return properties (sorted), weights (property x label) and transitions (from x to) of a
    fitted CRF.

    The same examples in the same order give the same bits.
    """
    return read_weights(
        file_of(lambda file: write_crfsuite(examples, file, features, iterations)), labels
    )


def file_of(write: Callable[[Path], None]) -> bytes:
    """Return the bytes that `write` writes to a file.

    The file may contain words of notes, so it is in memory and disappears with the process. On
    systems without memory files, it is in a private folder that is removed at exit.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryDirectory(prefix="clinveil-") as folder:
            write(Path(folder) / "file")
            return (Path(folder) / "file").read_bytes()
    number = os.memfd_create("clinveil")
    with os.fdopen(number, "rb") as file:
        write(Path(f"/proc/self/fd/{number}"))
        file.seek(0)
        return file.read()


def write_crfsuite(
    examples: Examples, file: Path, features: Features, iterations: int = ITERATIONS
) -> None:
    """Fit a CRF and write the model in python-crfsuite's format."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(
        algorithm="lbfgs", params={**PARAMETERS, "max_iterations": iterations}, verbose=False
    )
    for tokens, labels in examples:
        trainer.append(pycrfsuite.ItemSequence(items(tokens, features)), list(labels))
    trainer.train(str(file))


def read_weights(data: bytes, labels: Sequence[str]) -> Weights:
    """Return the weights from the bytes of a CRFsuite model (format lCRF 100, little-endian)."""
    _, _, _, _, _, _, _, features, label_names, attributes, _, _ = struct.unpack_from(
        "<4sI4s9I", data
    )
    column = {number: labels.index(name) for number, name in _strings(data, label_names)}
    names = dict(_strings(data, attributes))
    weights = np.zeros((len(names), len(labels)))
    transitions = np.zeros((len(labels), len(labels)))
    (count,) = struct.unpack_from("<I", data, features + 8)
    for kind_of, source, target, weight in struct.iter_unpack(
        "<IIId", data[features + 12 :][: 20 * count]
    ):
        if kind_of == 0:
            weights[source, column[target]] = weight
        else:
            transitions[column[source], column[target]] = weight
    used = sorted((name, row) for row, name in names.items() if weights[row].any())
    return tuple(name for name, _ in used), weights[[row for _, row in used]], transitions


def _strings(data: bytes, start: int) -> Iterator[tuple[int, str]]:
    """Yield (number, string) of a string table of the file (CQDB), whose index gives the offset of
    each string.
    """
    entries, index = struct.unpack_from("<II", data, start + 16)
    for number in range(entries):
        (offset,) = struct.unpack_from("<I", data, start + index + 4 * number)
        _, length = struct.unpack_from("<II", data, start + offset)
        yield number, data[start + offset + 8 :][: length - 1].decode("utf-8")
