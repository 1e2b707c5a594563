"""Cost of training vectors on a sample of the notes: utility of the release, and words recovered
from one draw.

`python benchmarks/subsampled.py NOTES [--words 0 500000 250000] [--label LABEL] [--epochs 5]`
trains vectors on all words (0) and on parts, makes the default channel of each under one key,
writes the notes with it, and prints a Markdown
row each: seconds of training, the loss of a classifier, token inversion, and how many of a word's
ten nearest words are those of full training.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from clinveil.attacks import inversion
from clinveil.channel import WordObfuscator, build_channel
from clinveil.core import Key, NotesSettings
from clinveil.corpus import open_corpus
from clinveil.releases import ReleaseSettings
from clinveil.scale import threads
from clinveil.utility import ClassifierSettings, compared, evaluate
from clinveil.vectors import Vectors, VectorSettings, count_words, train

ASKED = 3000  # words whose neighbours are compared, the most frequent ones


def nearest(vectors: Vectors) -> np.ndarray:
    """The ten nearest words of each of the most frequent, (n, 10)."""
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    close = unit[:ASKED] @ unit.T
    np.fill_diagonal(close, -2)
    return np.argpartition(-close, 10, axis=1)[:, :10]


def main() -> None:
    """Print a row for each size of the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--words", type=int, nargs="+", default=[0, 500_000, 250_000])
    parser.add_argument("--label", default="diagnosis_group")
    parser.add_argument("--epochs", type=int, default=5)
    known = parser.parse_args()
    corpus = open_corpus(known.notes, NotesSettings(), label=(known.label,))
    how = ReleaseSettings(kind="obfuscated")
    full = None
    print(
        "| words trained on | training, s of processor | loss | 95 % | inversion | rare words |"
        " neighbours kept |"
    )
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        counts = count_words(corpus, scratch)
        for words in known.words:
            began = time.process_time()
            settings = VectorSettings(epochs=known.epochs, train_words=words)
            vectors = train(corpus, settings, seed=1, workers=2, scratch=scratch, counts=counts)
            seconds = time.process_time() - began
            near = nearest(vectors)
            full = near if full is None else full
            kept = np.mean(
                [len({*a} & {*b}) / 10 for a, b in zip(full.tolist(), near.tolist(), strict=True)]
            )
            key = Key.from_seed(1)
            channel, _ = build_channel(vectors, how.channel, threads=2, counts=counts)
            made = [one.batch for one in threads(2)(WordObfuscator(channel, key), corpus.batches())]
            found = {f.measure: f for f in inversion(channel, counts.counts)}
            rng = np.random.default_rng(1)
            settings = ClassifierSettings(min_class=20)
            task = evaluate(corpus.batches(), made, known.label, rng, settings)
            losses = compared(task, "lr", rng)
            loss = next(f for f in losses if "loss" in f.measure)
            read, rare = (found[f"attack.inversion{kind}"].value for kind in ("", "_rare"))
            ends = f"{loss.low:.3f} to {loss.high:.3f}"
            row = f"| {words or counts.n_tokens:,} | {seconds:,.0f} | {loss.value:.3f} | {ends} |"
            print(f"{row} {read:.4f} | {rare:.4f} | {kept:.2f} |", flush=True)


if __name__ == "__main__":
    main()
