"""Documents per second of each classifier, compared with a scikit-learn pipeline.

Usage: classification.py NOTES LABEL [DOCUMENTS] [MODEL ...]   (one process, on two cores)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import NotesSettings
from clinveil.corpus import open_corpus
from clinveil.utility import (
    CLASSIFIERS,
    ClassifiedNotes,
    RowsOfSplit,
    parts_of,
    predict,
    read_labelled,
)

CORES = 2


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it returns, seconds on the clock, and seconds of processor time."""
    clock = time.perf_counter()
    processor = time.process_time()
    done = work()
    return done, time.perf_counter() - clock, time.process_time() - processor


def peers(labelled: ClassifiedNotes, parts: RowsOfSplit) -> NDArray[Any]:
    """Scikit-learn's own pipeline: its tokenizer, one strength, trained once."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, min_df=2, max_features=100_000
    )
    pipeline = make_pipeline(
        features, LogisticRegression(C=10, class_weight="balanced", max_iter=200)
    )
    pipeline.fit([labelled.texts[i] for i in parts.learn], labelled.targets[parts.learn])
    return np.asarray(pipeline.predict([labelled.texts[i] for i in parts.test]))


def speed(path: Path, label: str, documents: int, models: Sequence[str]) -> None:
    """A row for each model: documents (trained and tested on) for each second of processor time."""
    rng = np.random.default_rng(1)
    batches = open_corpus(path, NotesSettings(preset="none"), label=(label,)).batches()
    labelled = read_labelled(batches, label, rng, limit=documents)
    parts = parts_of(labelled, rng)
    truth = labelled.targets[parts.test]
    say(
        f"{len(labelled)} documents, {len(parts.learn)} to learn from, {len(labelled.classes)}"
        f" classes, {CORES} cores"
    )

    def row(name: str, guess: NDArray[Any], clock: float, processor: float) -> None:
        right = float((guess == truth).mean())
        say(
            f"{name:16} {len(labelled) / processor:8.1f} documents/s, {clock:7.1f} s clock,"
            f" {processor:7.1f} s processor, accuracy {right:.3f}"
        )

    some = np.arange(0, len(labelled), 10)
    peers(labelled, RowsOfSplit(some, some[:0], some))  # imports are nobody's documents
    row("scikit-learn lr", *timed(lambda: peers(labelled, parts)))
    for name in models:
        made, clock, processor = timed(partial(predict, name, labelled, parts, 1))
        row(name, made.test, clock, processor)


def say(line: str) -> None:
    """A line on stdout."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Print a row for each classifier."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    documents = int((arguments[2:] or ["5000"])[0])
    speed(Path(arguments[0]), arguments[1], documents, arguments[3:] or CLASSIFIERS.names())


if __name__ == "__main__":
    main(sys.argv[1:])
