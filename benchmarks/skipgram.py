"""Skip-gram compared with gensim's: time, and loss on held-out notes.

usage: python benchmarks/skipgram.py NOTES [--id …] [--text …] [--window 40] [--passes 5] [--most
10000] One note in ten is held out. The loss is the mean training objective over pairs of words
within the window, with five samples per pair; both models are evaluated on the same pairs and
samples.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from clinveil.core import Floats, NotesSettings, words
from clinveil.corpus import memory_corpus, open_corpus, rows
from clinveil.vectors import END, Ids, Plan, count_words, train_skipgram

DIM = 100
NEGATIVE = 5
HELD_OUT = 10
WARM = Plan(5, NEGATIVE, 1, 2, 1)  # compiles the loop, which is kept for the next run
Model = tuple[Floats, Floats]


def loss(lines: list[Ids], model: Model, chance: np.ndarray, window: int) -> float:
    """Of pairs at every fifth distance up to the window, in the notes held out."""
    rng, (inputs, outputs), total, pairs = np.random.default_rng(8), model, 0.0, 0
    cumulative = np.cumsum(chance)
    for row in lines:
        for far in range(1, min(window + 1, len(row)), 5):
            around = row[:-far]
            centre = row[far:]
            samples = np.minimum(
                np.searchsorted(cumulative, rng.random((len(around), NEGATIVE))), len(chance) - 1
            )
            right = (inputs[around] * outputs[centre]).sum(1)
            wrong = np.einsum("nd,nkd->nk", inputs[around], outputs[samples])
            total += float(np.logaddexp(0, -right).sum() + np.logaddexp(0, wrong).sum())
            pairs += len(right)
    return total / pairs


def main(options: argparse.Namespace) -> None:
    """Print a row for each trainer and number of workers."""
    corpus = open_corpus(options.notes, NotesSettings(id=options.id, text=options.text))
    notes = list(islice(rows(corpus), options.most))
    with tempfile.TemporaryDirectory() as folder:
        counts = count_words(memory_corpus([tuple(note) for note in notes]), Path(folder))
    ids = {word: row for row, word in enumerate(counts.words)}
    lines = [
        np.array([ids[word] for word in words(note.text)], np.int32) for note in notes if note.text
    ]
    seen = [line for i, line in enumerate(lines) if i % HELD_OUT]
    unseen = lines[::HELD_OUT]
    chance = counts.counts**0.75 / (counts.counts**0.75).sum()
    n_words = sum(map(len, seen))
    print(
        f"{n_words:,} words trained on, {len(counts):,} word types, window {options.window},"
        f" {options.passes} passes"
    )
    print(
        "| trainer | workers | clock s | processor s | words and passes a second | loss, notes held"
        " out |"
    )
    print("| --- | --: | --: | --: | --: | --: |")

    def ours(workers: int) -> Callable[[], Model]:
        flat = np.concatenate([np.append(line, np.int32(END)) for line in seen])
        matrix = (
            2 * np.random.default_rng(1).random((len(counts), DIM), np.float32) - 1
        ) / np.float32(DIM)
        plan = Plan(options.window, NEGATIVE, options.passes, workers, 1)
        return lambda: (matrix, train_skipgram(flat, counts.counts, matrix, plan, None))

    def theirs(workers: int) -> Callable[[], Model]:
        from gensim.models import Word2Vec

        how = {
            "vector_size": DIM,
            "window": options.window,
            "negative": NEGATIVE,
            "sg": 1,
            "min_count": 1,
        }
        model = Word2Vec(**how, sorted_vocab=0, workers=workers, seed=1)
        model.build_vocab_from_freq(dict(zip(counts.words, counts.counts.tolist(), strict=True)))
        texts = [[counts.words[i] for i in line.tolist()] for line in seen]

        def run() -> Model:
            model.train(texts, total_examples=len(texts), epochs=options.passes)
            return model.wv.vectors, model.syn1neg

        return run

    train_skipgram(
        np.array([0, 1, END], np.int32),
        counts.counts,
        np.zeros((len(counts), DIM), np.float32),
        WARM,
        None,
    )
    for name, trainer in (("gensim", theirs), ("clinveil", ours)):
        for workers in (1, 2):
            run = trainer(workers)
            clock = time.perf_counter()
            processor = time.process_time()
            model = run()
            clock = time.perf_counter() - clock
            processor = time.process_time() - processor
            speed = n_words * options.passes / clock
            told = loss(unseen, model, chance, options.window)
            print(
                f"| {name} | {workers} | {clock:.1f} | {processor:.1f} | {speed:,.0f} |"
                f" {told:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--id")
    parser.add_argument("--text")
    parser.add_argument("--window", type=int, default=40)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--most", type=int, default=10_000)
    sys.exit(main(parser.parse_args()))
