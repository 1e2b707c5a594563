"""Interval and permutation test of a word-pair correlation, compared with SciPy's.

Usage: similarity.py [PAIRS] [DRAWS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from clinveil.utility import PERMUTATIONS, Correlated, Statistic

PEERS: dict[Statistic, Any] = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main(n_pairs: int, draws: int) -> None:
    """Print a row for each statistic; SciPy works on the same numbers, as many draws."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=n_pairs)
    cosines = np.clip(scores / 3 + rng.normal(0, 0.3, n_pairs), -1, 1)
    for statistic, peer in PEERS.items():
        ours = Correlated(cosines, scores, statistic)
        ours.resampled(rng, 10)

        def scipys(peer: Any = peer) -> None:
            def value(a: Any, b: Any) -> float:
                return float(peer(a, b)[0])

            data = {"vectorized": False, "n_resamples": draws, "method": "percentile", "rng": rng}
            scipy.stats.bootstrap((cosines, scores), value, paired=True, **data)
            for _ in range(PERMUTATIONS):
                value(cosines, rng.permutation(scores))

        def own(ours: Correlated = ours) -> None:
            ours.resampled(rng, draws)
            ours.permuted(rng)

        mine = seconds(own)
        theirs = seconds(scipys)
        sys.stdout.write(
            f"{statistic}: {mine:.3f} s, SciPy {theirs:.3f} s, {theirs / mine:.1f} times\n"
        )


if __name__ == "__main__":
    sizes = [int(argument) for argument in sys.argv[1:]]
    main(*(sizes + [566, 1_000][len(sizes) :]))
