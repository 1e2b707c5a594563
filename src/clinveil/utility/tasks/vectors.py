"""Word vectors: trained on the release, correlation of cosines with human similarity scores of word pairs.

Skip-gram at its default settings, with fewer passes. Compared with vectors trained on the real notes in the same way,
on the pairs that both know. Floor: 0, which random vectors reach on average.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.corpus.corpus import corpus_of_texts
from clinveil.stats.findings import unmeasured
from clinveil.utility.evaluations.similarity import pair_similarities
from clinveil.utility.pairs import PairList, prepared, products, read_pairs
from clinveil.utility.shares import DRAWS, SOURCE, Arms, share_finding
from clinveil.utility.tasks.notes import Sides, Texts
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

LEAST, LEAST_COUNT, PASSES = 20, 5, 10
METHOD = "bootstrap over word pairs, 95 %"


def vectors(release: Sides, texts: Texts, pairs: Sequence[Path], rng: Generator) -> list[Finding]:
    """Return `utility.vectors` for each list of word pairs; nothing without lists.

    Raises InputError for a file that is not a list of word pairs.
    """
    if not pairs:
        return []
    lists = [read_pairs(path) for path in pairs]
    seed = int(rng.integers(2**31))
    with tempfile.TemporaryDirectory(prefix="utility-vectors", dir=release.scratch) as scratch:
        released, real = (
            train(
                corpus_of_texts(side),
                VectorSettings(min_count=LEAST_COUNT, epochs=PASSES),
                seed=seed,
                workers=release.workers,
                scratch=Path(scratch) / name,
            )
            for name, side in (("released", texts.released), ("real", texts.real))
        )
    return [_compared(released, real, each, rng) for each in lists]


def _compared(released: Vectors, real: Vectors, pairs: PairList, rng: Generator) -> Finding:
    ours, theirs = (pair_similarities(side, pairs) for side in (real, released))
    common = ~np.isnan(ours) & ~np.isnan(theirs)
    n = int(common.sum())
    detail: dict[str, Any] = {"list": pairs.name, "metric": "Spearman", "pairs": len(pairs)}
    detail["pairs_real"] = int((~np.isnan(ours)).sum())
    if n < LEAST:
        why = f"Vectors of both sides contain {n} of the {len(pairs)} pairs; {LEAST} are required."
        entries = {"task": "vectors", **detail}
        return unmeasured("utility.vectors", why, n, detail=entries, better="higher", source=SOURCE)
    chosen = rng.integers(n, size=(DRAWS, n))
    values = {"released": theirs[common], "ceiling": ours[common]}
    scores, draws = {"floor": 0.0}, {"floor": np.zeros(DRAWS)}
    human = pairs.scores[common]
    for arm, cosines in values.items():
        scores[arm] = float(products(prepared(cosines[None], "spearman"), prepared(human[None], "spearman"))[0])
        draws[arm] = products(prepared(cosines[chosen], "spearman"), prepared(human[chosen], "spearman"))
    return share_finding("utility.vectors", Arms(scores, draws), n, detail, unit="word pairs", method=METHOD)
