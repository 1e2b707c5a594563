"""Closest pairs of name tokens: seconds and memory, compared with SciPy's pdist.

    python benchmarks/closest_pairs.py [--tokens 100000] [--dim 100] [--k 600] [--threads 2]

Vectors are simulated: clusters of different size and length, so that distances resemble those of trained vectors.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from datetime import date

import numpy as np
from scipy.spatial.distance import pdist

from clinveil.attacks.vectors._closest_pairs import METRICS, closest_pairs

PEER = 8_000  # tokens whose 32 million distances SciPy holds in 256 MB


def made_up(n: int, dim: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(max(1, n // 50), dim))
    vectors = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, dim))
    return (vectors * rng.lognormal(sigma=0.3, size=(n, 1))).astype(np.float32)


def by_scipy(matrix: np.ndarray, k: int, metric: str) -> np.ndarray:
    distances = pdist(matrix, metric)
    return np.sort(np.partition(distances, k - 1)[:k])


def timed(work, *arguments, **more) -> tuple[float, float, object]:
    """Seconds by the clock, seconds of all CPUs, and the result."""
    clock, used = time.perf_counter(), time.process_time()
    result = work(*arguments, **more)
    return time.perf_counter() - clock, time.process_time() - used, result


def large(matrix: np.ndarray, k: int, threads: int) -> None:
    print("| metric | by the clock (s) | CPU (s) | peak of the process (MB) |")
    print("| --- | ---: | ---: | ---: |")
    for metric in METRICS:
        closest_pairs(matrix[:500], k, metric)  # compiles
        clock, used, _ = timed(closest_pairs, matrix, k, metric, threads=threads)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"| {metric} | {clock:.0f} | {used:.0f} | {peak} |", flush=True)


def beside_scipy(matrix: np.ndarray, k: int) -> None:
    print(f"\n| {PEER:,} tokens, one thread | pdist (CPU s) | ours (CPU s) | times |")
    print("| --- | ---: | ---: | ---: |")
    for metric in METRICS:
        _, theirs, expected = timed(by_scipy, matrix, k, metric)
        _, ours, found = timed(closest_pairs, matrix, k, metric, threads=1)
        np.testing.assert_allclose(found.distances, expected, rtol=1e-4, atol=1e-6)
        print(f"| {metric} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("tokens", 100_000), ("dim", 100), ("k", 600), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f} before the run, {date.today()}")
    pairs = asked.tokens * (asked.tokens - 1) // 2
    print(f"first {asked.k} of {pairs:.2e} pairs, {asked.dim} dimensions, {asked.threads} threads\n")
    large(made_up(asked.tokens, asked.dim), asked.k, asked.threads)
    beside_scipy(made_up(PEER, asked.dim), asked.k)


if __name__ == "__main__":
    main()
