"""Compute and write the table of nearest neighbours of a vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.core import InputError, atomic, private_folder, save_array
from clinveil.vectors.table import Neighbours, Vectors

_COLUMNS = ("ids", "similarities", "eligible")


def neighbours(
    vectors: Vectors, k: int, *, eligible: NDArray[np.bool_], threads: int
) -> Neighbours:
    """Return the k nearest eligible words of every word by cosine, nearest first, without the word
    itself.

    Ties go to the lower row. A word with a zero vector has cosine 0 with all words.

    Args:
        vectors: the words.
        k: neighbours per word.
        eligible: (n_words,) bool, words that may be a neighbour (`output_floor`).
        threads: number of threads; it does not change the table.

    Raises:
        InputError: k < 1, a mask of another length, or not more than k eligible words.
    """
    from clinveil.vectors.search import Space, exact_search

    candidates = np.flatnonzero(eligible).astype(np.int32)
    if eligible.shape != (len(vectors),):
        raise InputError(f"the mask has shape {eligible.shape}, but there are {len(vectors)} words")
    if k < 1 or len(candidates) <= k:
        raise InputError(
            f"{k} neighbours per word require more than {max(k, 1)} eligible words; there are"
            f" {len(candidates)}"
        )
    queries = np.arange(len(vectors), dtype=np.int32)
    ids, cosines = exact_search(Space.of(vectors.matrix), queries, candidates, k, threads=threads)
    return Neighbours(
        ids, cosines, eligible, {"method": "exact", "k": k, "candidates": len(candidates)}
    )


def save_neighbours(table: Neighbours, path: Path) -> None:
    """Write a table atomically as a private folder: ids.npy, similarities.npy, eligible.npy and
    meta.json.
    """
    with atomic(path) as folder:
        private_folder(folder)
        for name in _COLUMNS:
            save_array(folder / f"{name}.npy", getattr(table, name))
        meta = {
            "schema": "clinveil.neighbours/1",
            "secret": True,
            "recall": 1.0,
            "meta": dict(table.meta),
        }
        (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
