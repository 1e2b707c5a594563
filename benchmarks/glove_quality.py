"""Compare GloVe's vectors at two values of x_max, and skip-gram's: correlation with human word-pair
scores.

Usage: python benchmarks/glove_quality.py --pairs PAIRS.csv [PAIRS.csv ...] -- FILE:COLUMN ...

PAIRS.csv has the columns term1, term2, score. A term is the mean of its words; a pair counts if all
of its words occur at least 20 times. Prints Spearman's correlation of the cosine with the score,
its 95 % bootstrap interval over pairs, and the interval of its difference from the first model on
the same resampled pairs.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from glove import read
from scipy.stats import spearmanr

from clinveil.core import words
from clinveil.vectors import Glove, Notes, Vectors, VectorSettings, count_words, train

FLOOR = 20
DRAWS = 1000
MODELS = (
    ("GloVe, x_max 10 (default)", {"x_max": 10}),
    ("GloVe, x_max 100", {"x_max": 100}),
)


def term(vectors: Vectors, text: str) -> np.ndarray | None:
    rows = [vectors.ids.get(word) for word in words(text)]
    if not rows or any(row is None or vectors.counts[row] < FLOOR for row in rows):
        return None
    return vectors.matrix[rows].mean(0)


def cosines(vectors: Vectors, pairs: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    found = [
        (term(vectors, p["term1"]), term(vectors, p["term2"]), float(p["score"])) for p in pairs
    ]
    kept = [(a, b, s) for a, b, s in found if a is not None and b is not None]
    likeness = [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b, _ in kept]
    return np.array(likeness), np.array([s for *_, s in kept])


def draws(likeness: np.ndarray, scores: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    samples = rng.integers(0, len(scores), (DRAWS, len(scores)))
    return np.array([spearmanr(likeness[i], scores[i])[0] for i in samples])


def interval(values: np.ndarray) -> str:
    return "{:.2f} to {:.2f}".format(*np.percentile(values, [2.5, 97.5]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("files", nargs="+", metavar="FILE:COLUMN")
    for name, default in (("window", 10), ("min_count", 5), ("dim", 100)):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = parser.parse_args()
    shared = {name: getattr(options, name) for name in ("window", "min_count", "dim")}
    lists = {}
    for path in options.pairs:
        with path.open(encoding="utf-8", newline="") as file:
            lists[path.stem] = list(csv.DictReader(file))
    corpus = read(options.files)
    with tempfile.TemporaryDirectory() as name:
        run = {
            "seed": 0,
            "workers": 2,
            "scratch": Path(name),
            "counts": count_words(corpus, Path(name)),
        }
        models = {
            label: Glove(**shared, **more).train(Notes(corpus, **run)) for label, more in MODELS
        }
        skipgram = VectorSettings(algorithm="skipgram", epochs=5, **shared)
        models["skip-gram, 5 passes"] = train(corpus, skipgram, **run)
    print(
        "| pairs | model | Spearman | 95 % | minus the default, 95 % |\n| --- | --- | ---: | --- |"
        " --- |"
    )
    for list_name, pairs in lists.items():
        first = None
        for label, vectors in models.items():
            likeness, scores = cosines(vectors, pairs)
            drawn = draws(likeness, scores)
            first = drawn if first is None else first
            rho = spearmanr(likeness, scores)[0]
            difference = interval(drawn - first) if drawn is not first else ""
            print(
                f"| {list_name} ({len(scores)}) | {label} | {rho:.2f} | {interval(drawn)} |"
                f" {difference} |"
            )


if __name__ == "__main__":
    main()
