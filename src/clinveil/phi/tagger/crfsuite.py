"""Fitting by python-crfsuite, and its model file read to the last bit: its own dump rounds the weights."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.phi.tagger.features import OFFSETS, PAIRS, Features, pair
from clinveil.phi.tagger.tokens import EDGE

# c1 makes most weights 0 and so the file small; c2 keeps the others near 0.
PARAMETERS = {"c1": 0.1, "c2": 0.02, "feature.minfreq": 3, "feature.possible_transitions": True}
ITERATIONS = 80
Examples = Iterable[tuple[Sequence[str], Sequence[str]]]
"""(tokens, labels) of each text."""
Weights = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]


def items(found: Sequence[str], features: Features) -> list[list[str]]:
    """The properties of each place, as python-crfsuite takes them; all of weight 1."""
    around = [EDGE, EDGE, *found, EDGE, EDGE]
    kinds = [features.kind(token) for token in around]
    return [
        [
            *(name for offset in OFFSETS for name in features.properties(around[at + offset], offset)),
            *(pair(number, kinds[at + one], kinds[at + other]) for number, (one, other) in enumerate(PAIRS)),
        ]
        for at in range(2, len(found) + 2)
    ]


def fit(examples: Examples, labels: Sequence[str], features: Features, iterations: int) -> Weights:
    """Properties (sorted), their weights (property x label) and the moves (from x to) of a CRF of (tokens, labels).

    The same examples in the same order give the same bits.
    """
    return read_weights(file_of(lambda file: write_crfsuite(examples, file, features, iterations)), labels)


def file_of(write: Callable[[Path], None]) -> bytes:
    """What a library writes to a file: it may hold words of notes, so it lies in memory, and a killed run leaves none.

    Where a system has no files in memory, it lies in a private folder that is removed at exit.
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


def write_crfsuite(examples: Examples, file: Path, features: Features, iterations: int = ITERATIONS) -> None:
    """Fit, and leave the model as python-crfsuite writes it."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={**PARAMETERS, "max_iterations": iterations}, verbose=False)
    for found, labels in examples:
        trainer.append(pycrfsuite.ItemSequence(items(found, features)), list(labels))
    trainer.train(str(file))


def read_weights(data: bytes, labels: Sequence[str]) -> Weights:
    """The weights in the bytes of a model of CRFsuite (format lCRF 100, little-endian)."""
    _, _, _, _, _, _, _, features, label_names, attributes, _, _ = struct.unpack_from("<4sI4s9I", data)
    column = {number: labels.index(name) for number, name in _strings(data, label_names)}
    names = dict(_strings(data, attributes))
    weights, moves = np.zeros((len(names), len(labels))), np.zeros((len(labels), len(labels)))
    (count,) = struct.unpack_from("<I", data, features + 8)
    for kind_of, source, target, weight in struct.iter_unpack("<IIId", data[features + 12 :][: 20 * count]):
        if kind_of == 0:
            weights[source, column[target]] = weight
        else:
            moves[column[source], column[target]] = weight
    used = sorted((name, row) for row, name in names.items() if weights[row].any())
    return tuple(name for name, _ in used), weights[[row for _, row in used]], moves


def _strings(data: bytes, start: int) -> Iterator[tuple[int, str]]:
    """(number, string) of one of the file's tables of strings (CQDB): by number, where each string stands."""
    entries, where = struct.unpack_from("<II", data, start + 16)
    for number in range(entries):
        (place,) = struct.unpack_from("<I", data, start + where + 4 * number)
        _, length = struct.unpack_from("<II", data, start + place)
        yield number, data[start + place + 8 :][: length - 1].decode("utf-8")
