"""Neighbour tables: exact search compared with faiss flat search, and at the size of paper A.

    python benchmarks/neighbours.py exact        100,000 x 100, all against all, in turn with faiss
                                                 (pip install faiss-cpu)
    python benchmarks/neighbours.py large        2.6 million words against 350,000, Zipf counts;
                                                 --share 0.1 for a part

Vectors are trained on public text next to the project (CLINVEIL_DATA) and jittered up to size: each
copy of a word lies at a cosine of about 0.9 from its origin. Keep other work off the machine, or
read the ratios only.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from clinveil.corpus import corpus_of_texts
from clinveil.vectors import (
    Space,
    Vectors,
    VectorSettings,
    exact_search,
    load_vectors,
    neighbours,
    save_vectors,
    train,
)

DATA = Path(os.environ.get("CLINVEIL_DATA", Path(__file__).parents[2] / "shared" / "data"))
TEXTS = (
    ("notes/mtsamples.csv.gz", "transcription"),
    ("classification/ohsumed_train.csv.gz", "text"),
    ("classification/imdb_train.csv.gz", "text"),
)
K = 14
SEED = 1
JITTER = 0.45


def trained(cache: Path, threads: int) -> Vectors:
    """Vectors of the public texts; kept in `cache` from one run to the next."""
    if not cache.exists():
        csv.field_size_limit(2**31 - 1)
        texts = []
        for name, column in TEXTS:
            with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as file:
                texts += [row[column] for row in csv.DictReader(file)]
        corpus = corpus_of_texts(texts)
        with tempfile.TemporaryDirectory() as scratch:
            vectors = train(
                corpus,
                VectorSettings(algorithm="cbow", window=5, epochs=5),
                seed=SEED,
                workers=threads,
                scratch=Path(scratch),
            )
        save_vectors(vectors, cache)
    return load_vectors(cache)


def jittered(matrix: np.ndarray, n_words: int) -> np.ndarray:
    """Copies of the rows, each moved at random by a share of its own size, in random order of
    frequency.
    """
    rng = np.random.default_rng(SEED)
    grown = np.empty((n_words, matrix.shape[1]), np.float32)
    for start in range(0, n_words, len(matrix)):
        rows = matrix[rng.permutation(len(matrix))[: n_words - start]]
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        grown[start : start + len(rows)] = rows + JITTER * rows.std(axis=1, keepdims=True) * noise
    return grown


def against_faiss(vectors: Vectors, n_words: int, threads: int, rounds: int) -> None:
    """Both tables in turn, several times; faiss is given vectors of length 1 and drops nothing."""
    import faiss

    faiss.omp_set_num_threads(threads)
    matrix = jittered(vectors.matrix, n_words)
    rows = np.arange(n_words, dtype=np.int32)
    exact_search(Space.of(matrix[:2000]), rows[:500], rows[:2000], K, threads=1)  # compiles
    for _ in range(rounds):
        (ours, cpu), (ids, _) = timed(
            lambda: exact_search(Space.of(matrix), rows, rows, K, threads=threads)
        )
        (theirs, their_cpu), found = timed(lambda: flat(faiss, matrix))
        without_self = [row[row != query][:K] for query, row in enumerate(found)]
        agree = np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, without_self, strict=True)])
        print(
            f"exact {n_words} x {matrix.shape[1]}: {ours:.1f} s ({cpu:.1f} s CPU), faiss flat"
            f" {theirs:.1f} s ({their_cpu:.1f} s CPU), ratio {ours / theirs:.2f}"
            f" ({cpu / their_cpu:.2f} in CPU), agreement {agree:.5f}"
        )


def flat(faiss, matrix: np.ndarray) -> np.ndarray:
    units = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(matrix.shape[1])
    index.add(units)
    return index.search(units, K + 1)[1]


def timed(work):
    wall = time.perf_counter()
    cpu = time.process_time()
    result = work()
    return (time.perf_counter() - wall, time.process_time() - cpu), result


def at_paper_size(
    vectors: Vectors, n_words: int, n_eligible: int, threads: int, share: float
) -> None:
    """The table of many words; with a share below 1, of eligible words and a random part of the
    others.
    """
    matrix = jittered(vectors.matrix, n_words)
    eligible = np.arange(n_words) < n_eligible
    asked = eligible | (np.random.default_rng(SEED).random(n_words) < share)
    matrix = matrix[asked]
    eligible = eligible[asked]
    made = Vectors([f"w{row}" for row in range(len(matrix))], matrix)
    (wall, cpu), _ = timed(lambda: neighbours(made, K, eligible=eligible, threads=threads))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(made)} words against {int(eligible.sum())}: {wall / 60:.1f} min ({cpu / 60:.1f} min"
        f" CPU), {cpu / len(made) * 1e6:.0f} us CPU a word, peak {peak:.1f} GiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["exact", "large"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", type=int)
    parser.add_argument("--eligible", type=int, default=350_000)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "clinveil-benchmark-vectors"
    )
    given = parser.parse_args()
    vectors = trained(given.cache, given.threads)
    if given.what == "exact":
        against_faiss(vectors, given.words or 100_000, given.threads, given.rounds)
    else:
        at_paper_size(vectors, given.words or 2_612_592, given.eligible, given.threads, given.share)


if __name__ == "__main__":
    main()
