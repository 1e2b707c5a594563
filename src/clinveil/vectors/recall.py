"""Recall of an approximate neighbour table, by frequency band and weighted by tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.types import Floats

# Bands of occurrences, or of the row for vectors without counts. The few words that make up most tokens have separate
# bands, because otherwise one of them more or less in the sample would change the result.
_BOUNDS = np.array([2, 10, 100, 1_000, 10_000, 100_000, 1_000_000])


@dataclass(frozen=True)
class Sample:
    """Queries sampled at random within each frequency band.

    Attributes:
        rows: (n,) int32, ascending.
        band: (n,) int64, band of each query.
        weight: (n,) float64, share of all tokens that the query represents; sums to 1.
        names: name of each band.
        shares: (n_bands,) float64 share of all tokens.
        sizes: (n_bands,) int64 words of each band.
    """

    rows: NDArray[np.int32]
    band: NDArray[np.int64]
    weight: NDArray[np.float64]
    names: tuple[str, ...]
    shares: NDArray[np.float64]
    sizes: NDArray[np.int64]


def draw_sample(counts: NDArray[np.int64] | None, n_words: int, size: int, rng: np.random.Generator) -> Sample:
    """Sample about `size` words: all words of a small band, and an equal share of each other band.

    Args:
        counts: (n_words,) occurrences; without them bands are ranges of rows, and all words weigh the same.
        n_words: words in all.
        size: number of queries.
        rng: random generator.
    """
    figures = np.arange(1, n_words + 1) if counts is None else counts
    weights = np.ones(n_words) if counts is None else np.maximum(counts, 1).astype(np.float64)
    bands = np.searchsorted(_BOUNDS, figures, side="right")
    sizes = np.bincount(bands, minlength=len(_BOUNDS) + 1)
    filled = [band for band in np.argsort(sizes, kind="stable") if sizes[band]]  # small bands use less than their share
    rows: list[NDArray[np.int64]] = []
    weight: list[NDArray[np.float64]] = []
    for band, left in zip(filled, range(len(filled), 0, -1), strict=True):
        members = np.flatnonzero(bands == band)
        fair = -(-(size - sum(len(drawn) for drawn in rows)) // left)
        drawn = np.sort(rng.choice(members, min(len(members), fair), replace=False))
        rows.append(drawn)
        weight.append(weights[drawn] / weights[drawn].sum() * weights[members].sum())
    order = np.argsort(np.concatenate(rows))
    chosen = np.concatenate(rows)[order].astype(np.int32)
    shares = np.bincount(bands, weights, len(_BOUNDS) + 1) / weights.sum()
    return Sample(
        chosen,
        bands[chosen],
        np.concatenate(weight)[order] / weights.sum(),
        _names("place" if counts is None else "count"),
        shares,
        sizes,
    )


def _names(unit: str) -> tuple[str, ...]:
    ends = [*(str(bound - 1) for bound in _BOUNDS), ""]
    return tuple(
        f"{unit} {first}" if str(first) == last else f"{unit} {first}-{last}" if last else f"{unit} {first} and more"
        for first, last in zip([1, *_BOUNDS.tolist()], ends, strict=True)
    )


def recall(sample: Sample, found: Floats, true: Floats) -> tuple[float, list[dict[str, Any]]]:
    """Return the recall of the nearest words, weighted by tokens, and its mean in each band.

    A neighbour is a hit if its cosine reaches that of the k-th true neighbour, so ties are not misses.

    Args:
        sample: the queries.
        found, true: (n, k) float32 cosines of the approximate and of the exact table.
    """
    hits = (found >= true[:, -1:]).mean(axis=1)
    bands = [
        {
            "band": sample.names[band],
            "words": int(sample.sizes[band]),
            "sampled": int((sample.band == band).sum()),
            "token_share": round(float(sample.shares[band]), 6),
            "recall": round(float(hits[sample.band == band].mean()), 6),
        }
        for band in np.unique(sample.band)
    ]
    return float((hits * sample.weight).sum()), bands
