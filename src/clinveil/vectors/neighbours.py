"""Compute, write and read the table of nearest neighbours of a vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError
from clinveil.core.files import private_folder, save_array
from clinveil.vectors.table import Neighbours, Vectors

if TYPE_CHECKING:
    from clinveil.vectors.search import Lists, Space

# The table is exact up to this many comparisons (200,000 words, each with all others).
EXACT_UP_TO = 200_000**2
TARGET_RECALL = 0.97
SAMPLED, _TUNED_ON = 2_000, 600


def neighbours(
    vectors: Vectors,
    k: int,
    *,
    eligible: NDArray[np.bool_],
    threads: int,
    seed: int,
    exact: bool | None = None,
) -> Neighbours:
    """Return the k nearest eligible words of every word by cosine, nearest first, without the word itself.

    Ties go to the lower row.

    Args:
        vectors: the words.
        k: neighbours per word.
        eligible: (n_words,) bool, words that may be a neighbour (`output_floor`).
        threads: number of threads; it does not change the table.
        seed: public seed of the centroids and of the sample that recall is measured on.
        exact: whether to compare each word with each eligible one; None: exact up to `EXACT_UP_TO` comparisons.

    Returns:
        The table. A word with a zero vector has cosine 0 with all words. An approximate table (inverted lists) has its
        recall, measured against the exact neighbours of 2,000 words sampled by frequency band.

    Raises:
        InputError: k < 1, a mask of another length, or not more than k eligible words.
    """
    from clinveil.vectors.search import Space, exact_search

    candidates = np.flatnonzero(eligible).astype(np.int32)
    if eligible.shape != (len(vectors),):
        raise InputError(f"the mask has shape {eligible.shape}, but there are {len(vectors)} words")
    if k < 1 or len(candidates) <= k:
        raise InputError(
            f"{k} neighbours per word require more than {max(k, 1)} eligible words; there are {len(candidates)}"
        )
    if exact is None:
        exact = len(vectors) * len(candidates) <= EXACT_UP_TO
    space, queries = Space.of(vectors.matrix), np.arange(len(vectors), dtype=np.int32)
    if not exact:
        return _approximate(vectors, space, k, eligible, threads, seed)
    ids, cosines = exact_search(space, queries, candidates, k, threads=threads)
    return Neighbours(ids, cosines, eligible, 1.0, {"method": "exact", "k": k, "candidates": len(candidates)})


def _approximate(
    vectors: Vectors, space: Space, k: int, eligible: NDArray[np.bool_], threads: int, seed: int
) -> Neighbours:
    from clinveil.vectors.recall import draw_sample, recall
    from clinveil.vectors.search import approximate_search, build_lists, exact_search

    candidates = np.flatnonzero(eligible).astype(np.int32)
    lists = build_lists(space, candidates, n_lists=max(1, int(2 * len(candidates) ** 0.5)), seed=seed)
    n_probed = _enough_lists(vectors, space, lists, k, threads, seed)
    queries = np.arange(len(vectors), dtype=np.int32)
    ids, cosines = approximate_search(space, lists, queries, k, n_probed=n_probed, threads=threads)
    sample = draw_sample(vectors.counts, len(vectors), SAMPLED, np.random.default_rng([seed, 2]))
    _, true = exact_search(space, sample.rows, candidates, k, threads=threads)
    share, bands = recall(sample, cosines[sample.rows], true)
    meta = {
        "method": "inverted lists",
        "k": k,
        "candidates": len(candidates),
        "lists": len(lists),
        "lists_probed": n_probed,
        "seed": seed,
        "recall_weighted_by": "tokens" if vectors.counts is not None else "words",
        "recall_by_band": bands,
    }
    return Neighbours(ids, cosines, eligible, share, meta)


def _enough_lists(vectors: Vectors, space: Space, lists: Lists, k: int, threads: int, seed: int) -> int:
    """Return how many lists to probe per query for the target recall, weighted by tokens and by words.

    The number is chosen on a different sample from the one that recall is reported on.
    """
    from clinveil.vectors.recall import draw_sample, recall
    from clinveil.vectors.search import approximate_search, exact_search

    sample = draw_sample(vectors.counts, len(vectors), _TUNED_ON, np.random.default_rng([seed, 1]))
    _, true = exact_search(space, sample.rows, np.sort(lists.candidates), k, threads=threads)
    n_probed = min(16, len(lists))
    while n_probed < len(lists):
        _, cosines = approximate_search(space, lists, sample.rows, k, n_probed=n_probed, threads=threads)
        by_token, bands = recall(sample, cosines, true)
        words = sum(band["words"] for band in bands)
        by_word = sum(band["recall"] * band["words"] for band in bands) / words
        if min(by_token, by_word) >= TARGET_RECALL:
            break
        n_probed = min(n_probed * 3 // 2, len(lists))
    return n_probed


def save_neighbours(table: Neighbours, path: Path, *, force: bool = False) -> None:
    """Write a table atomically as a private folder: ids.npy, similarities.npy, eligible.npy and meta.json."""
    with atomic(path, force=force) as folder:
        private_folder(folder)
        for name, column in _columns(table).items():
            save_array(folder / f"{name}.npy", column)
        meta = {"schema": "clinveil.neighbours/1", "secret": True, "recall": table.recall, "meta": dict(table.meta)}
        (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def load_neighbours(path: Path) -> Neighbours:
    """Read a table. Raises InputError with the name of the file if it is missing or malformed."""
    columns = {name: _array(path / f"{name}.npy", kind) for name, kind in _KINDS.items()}
    file = path / "meta.json"
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
        return Neighbours(**columns, recall=float(meta["recall"]), meta=dict(meta["meta"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("cannot be read as the description of a neighbour table", where=file.name) from None


_KINDS = {"ids": "<i4", "similarities": "<f4", "eligible": "?"}


def _columns(table: Neighbours) -> dict[str, NDArray[Any]]:
    return {name: getattr(table, name) for name in _KINDS}


def _array(file: Path, kind: str) -> NDArray[Any]:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InputError("cannot be read as an array", where=file.name) from None
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(kind) or array.ndim not in (1, 2):
        raise InputError(f"is not an array of {np.dtype(kind)}", where=file.name)
    return array
