"""Patient-level permutation test: clinveil compared with a plain NumPy loop and SciPy's
permutation_test, in one run.

Usage: python benchmarks/association.py [--patients 638] [--draws 1000] [--diagnoses 500] [--threads
2]

Distances are random; each patient has 1 to 8 diagnoses. SciPy is timed on a few patients and scaled
up. Writes a Markdown table to stdout.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import permutation_test

from clinveil.stats import uniform_counts

SCIPY_PATIENTS = 5


def numpy_loop(
    far: np.ndarray, has: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """For each patient the ranks of random keys as group, all draws at once."""
    counts = np.zeros(len(far), dtype=np.int64)
    m = far.shape[1]
    for p, (row, own) in enumerate(zip(far, has, strict=True)):
        size = int(own.sum())
        groups = np.argpartition(rng.random((draws, m)), size, axis=1)[:, :size]
        centre = row.sum() * size / m
        counts[p] = (
            np.abs(row[groups].sum(axis=1) - centre) >= abs(row[own].sum() - centre) - 1e-9
        ).sum()
    return counts


def scipy_loop(far: np.ndarray, has: np.ndarray, draws: int, rng: np.random.Generator) -> None:
    def gap(one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
        return one.mean(axis=axis) - other.mean(axis=axis)

    for row, own in zip(far, has, strict=True):
        permutation_test(
            (row[own], row[~own]), gap, n_resamples=draws, vectorized=True, random_state=rng
        )


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("patients", 638), ("draws", 1000), ("diagnoses", 500), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    o = parser.parse_args()
    rng = np.random.default_rng(0)
    far = rng.random((o.patients, o.diagnoses))
    has = np.zeros(far.shape, dtype=bool)
    for row in has:
        row[rng.choice(o.diagnoses, rng.integers(1, 9), replace=False)] = True
    many = np.zeros(far.shape, dtype=bool)
    for row in many:
        row[rng.choice(o.diagnoses, o.diagnoses // 2, replace=False)] = True
    start = time.perf_counter()
    uniform_counts(far[:2], has[:2], 2, rng)
    compiling = time.perf_counter() - start
    full = round(o.patients / 0.05) - 1
    run = {"threads": o.threads}
    rows = [
        ("clinveil, random groups", seconds(lambda: uniform_counts(far, has, o.draws, rng, **run))),
        (
            "clinveil, random groups of half of the diagnoses",
            seconds(lambda: uniform_counts(far, many, o.draws, rng, **run)),
        ),
        (
            f"clinveil, random groups, {full:,} draws",
            seconds(lambda: uniform_counts(far, has, full, rng, **run), 1),
        ),
        (
            "NumPy, all draws of a patient at once",
            seconds(lambda: numpy_loop(far, has, o.draws, rng), 1),
        ),
        (
            f"SciPy permutation_test ({SCIPY_PATIENTS} patients, scaled up)",
            seconds(lambda: scipy_loop(far[:SCIPY_PATIENTS], has[:SCIPY_PATIENTS], o.draws, rng), 1)
            * o.patients
            / SCIPY_PATIENTS,
        ),
    ]
    print(
        f"{o.patients} patients, {o.draws:,} draws, {o.diagnoses} diagnoses, {o.threads} threads\n"
    )
    print("| | seconds | times the first |\n| --- | ---: | ---: |")
    for name, taken in rows:
        print(f"| {name} | {taken:.3f} | {taken / rows[0][1]:.1f} |")
    print(f"\nCompiling, once a process: {compiling:.1f} s.")


if __name__ == "__main__":
    main()
