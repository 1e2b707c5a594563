"""Documents per second of each classifier compared with scikit-learn's pipeline, and memory of hashed features.

Usage: classification.py speed NOTES LABEL [DOCUMENTS] [MODEL ...]   (one process, on two cores)
       classification.py memory DOCUMENTS [WORDS]                    (peak of this process; run once a size)
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.settings import NotesSettings
from clinveil.corpus.open import open_corpus
from clinveil.utility.classifiers import ClassifierSettings, Job, Side, classifier, classifiers, predict
from clinveil.utility.labelled import Labelled, Parts, parts_of, read_labelled

CORES, VOCABULARY, SIGNAL = 2, 50_000, 200
PASSES = 2  # of a network here; their cost a pass does not change


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it returns, seconds on the clock, and seconds of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - clock, time.process_time() - processor


def peers(labelled: Labelled, parts: Parts) -> NDArray[Any]:
    """Scikit-learn's own pipeline: its tokenizer, one strength, trained once."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, max_features=100_000)
    pipeline = make_pipeline(features, LogisticRegression(C=10, class_weight="balanced", max_iter=200))
    pipeline.fit([labelled.texts[i] for i in parts.learn], labelled.targets[parts.learn])
    return np.asarray(pipeline.predict([labelled.texts[i] for i in parts.test]))


def speed(path: Path, label: str, documents: int, models: Sequence[str]) -> None:
    """A row for each model: documents (training passes and test together) for each second of processor time."""
    rng = np.random.default_rng(1)
    batches = open_corpus(path, NotesSettings(preset="none"), label=(label,)).batches()
    labelled = read_labelled(batches, label, rng, limit=documents)
    parts = parts_of(labelled, rng)
    truth = labelled.targets[parts.test]
    say(f"{len(labelled)} documents, {len(parts.learn)} to learn from, {len(labelled.classes)} classes, {CORES} cores")

    def row(name: str, guess: NDArray[Any], clock: float, processor: float, read: int) -> None:
        right = float((guess == truth).mean())
        say(
            f"{name:16} {len(labelled) / processor:8.1f} documents/s whole, {read / processor:8.1f} read/s, "
            f"{clock:7.1f} s clock, {processor:7.1f} s processor, accuracy {right:.3f}"
        )

    some = np.arange(0, len(labelled), 10)
    peers(labelled, Parts(some, some[:0], some))  # imports are nobody's documents
    row("scikit-learn lr", *timed(lambda: peers(labelled, parts)), len(labelled))
    for model in models:
        name, _, features = model.partition(":")
        settings = ClassifierSettings.model_validate({"epochs": PASSES, "features": features or "tfidf"})
        made, clock, processor = timed(lambda: predict(name, labelled, parts, 1, settings=settings))  # noqa: B023
        passes = PASSES * (len(parts.train) + len(parts.valid)) if classifier(name).neural else len(parts.learn)
        row(model, made.test, clock, processor, passes + len(parts.test))


class Invented(Sequence[str]):
    """Texts made when they are asked for, so that they take no memory; the class of each shows in one word in ten."""

    def __init__(self, documents: int, words: int) -> None:
        self._documents, self._words = documents, words

    def __len__(self) -> int:
        return self._documents

    def __getitem__(self, index: Any) -> str:
        rng = np.random.default_rng(int(index))
        drawn = rng.integers(VOCABULARY, size=self._words)
        marks = rng.random(self._words) < 0.1
        drawn[marks] = VOCABULARY + (index % 2) * SIGNAL + drawn[marks] % SIGNAL
        return " ".join([_spelt(number) for number in drawn.tolist()])


def _spelt(number: int) -> str:
    """A word of letters, as a number would split."""
    return "".join(chr(97 + int(digit)) for digit in str(number))


def memory(documents: int, words: int) -> None:
    """The peak of resident memory while logistic regression learns from hashed features of invented texts."""
    texts = Invented(documents, words)
    targets = np.arange(documents, dtype=np.int64) % 2
    rows = np.random.default_rng(0).permutation(documents)
    cut = [documents * 6 // 10, documents * 3 // 4]
    train, valid, test = (np.sort(part) for part in np.split(rows, cut))
    parts = Parts(train, valid, test)
    before = peak()
    settings = ClassifierSettings(features="hashed")
    made, clock, _ = timed(lambda: classifier("lr")(Job(Side(texts, texts), targets, 2, parts, 1, settings)))
    right = float((made.test == targets[parts.test]).mean())
    say(f"{documents} documents of {words} words: peak {peak()} MiB, {before} before, {clock:.0f} s, right {right:.3f}")


def peak() -> int:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def say(line: str) -> None:
    """A line on stdout."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Run one of the two."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    if arguments[0] == "memory":
        memory(int(arguments[1]), int((arguments[2:] or ["20"])[0]))
        return
    documents = int((arguments[3:] or ["5000"])[0])
    speed(Path(arguments[1]), arguments[2], documents, arguments[4:] or [*classifiers.names(), "lr:hashed"])


if __name__ == "__main__":
    main(sys.argv[1:])
