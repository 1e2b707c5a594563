"""Mechanisms at several strengths on the same notes: accuracy of a classifier, and words recovered
from one draw.

Usage: python benchmarks/mechanisms.py NOTES --label COL [--id COL] [--text COL] [--patient COL]
[--notes 1500]
       [--vectors FOLDER] [--only NAME ...]

Without --vectors, word vectors are trained on the notes (skip-gram, window 40, 20 passes). Draws
are fresh and PHI replacement is left out. Macro-F1: logistic regression on the folds that a release
is measured on. One draw: the best guess of an attacker with the channel and the counts, of all
tokens, of words of fewer than 20 occurrences and of words that the lexicons know as names only,
where the attacker knows that the word is such a one. Bits: mutual information of a token and its
output. Cosine: of a token and its output, mean. Writes a Markdown table to stdout, row by row.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.apply import Obfuscator
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.keys import Key
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.open import open_corpus
from clinveil.lexicons.ambiguity import is_name
from clinveil.utility.classifiers import Side, predict
from clinveil.utility.labelled import Labelled, Parts, folds_of, paired, read_labelled, texts_of
from clinveil.utility.scores import score
from clinveil.vectors.count import WordCounts, count_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

RARE = 20
FOLDS = 5
SETTINGS: tuple[dict[str, Any], ...] = (
    {"mechanism": "neighbours", "n": "3-14"},
    {"mechanism": "neighbours", "n": "9-30"},
    {"mechanism": "clusters", "cluster_size": 4},
    {"mechanism": "clusters", "cluster_size": 8},
    {"mechanism": "clusters", "cluster_size": 16},
    {"mechanism": "clusters", "cluster_size": 8, "cluster_outputs": 3},
    {"mechanism": "clusters", "cluster_size": 8, "cluster_outputs": 0},
    {"mechanism": "clusters", "cluster_size": 8, "cluster_share": 0.25},
    {"mechanism": "clusters", "cluster_size": 8, "cluster_share": 0.25, "cluster_outputs": 2},
)


def macro_f1(labelled: Labelled, folds: list[Parts], texts: list[str]) -> float:
    """Over the predictions of all folds together."""
    side = Side(texts, texts)
    guesses = [predict("lr", labelled, parts, 1, side).test for parts in folds]
    return score(
        "macro_f1",
        np.concatenate([labelled.targets[p.test] for p in folds]),
        np.concatenate(guesses),
    )


def one_draw(channel: Channel, counts: NDArray[np.int64], some: NDArray[np.bool_]) -> float:
    """Share of these words' tokens that the best guess among them gets from one output."""
    prior = np.where(some, counts, 0)
    return channel.posterior(prior).vulnerability / prior.sum() if prior.any() else float("nan")


def cosine(channel: Channel, vectors: Vectors, counts: NDArray[np.int64]) -> float:
    """Mean cosine of a token and its output, over the words of the channel."""
    units = vectors.matrix / np.maximum(
        np.linalg.norm(vectors.matrix, axis=1, keepdims=True), 1e-12
    )
    total = 0.0
    for start in range(0, len(counts), 1000):
        some = channel.matrix()[start : min(start + 1000, len(counts))]
        total += float(
            ((some @ units) * units[start : start + 1000]).sum(axis=1)
            @ counts[start : start + 1000]
        )
    return total / float(counts.sum())


def entropy(weights: NDArray[Any]) -> float:
    """Bits of normalised weights."""
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())


def information(channel: Channel, counts: NDArray[np.int64]) -> float:
    """Mutual information of a word and its output, in bits; without background draws."""
    joint = channel.matrix()[: len(counts)].multiply(counts[:, None])
    return entropy(counts) + entropy(channel.outputs(counts)) - entropy(joint.tocsr().data)


def row(name: str, figures: list[float]) -> str:
    """One line of the table."""
    return f"| {name} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |"


def table(
    corpus: Corpus, label: str, vectors: Vectors, counts: WordCounts, args: argparse.Namespace
) -> Iterator[str]:
    """The lines of the table."""
    rng = np.random.default_rng(1)
    labelled = read_labelled(
        corpus.batches(), label, rng, limit=args.notes, min_class=20, merge=True
    )
    folds = folds_of(labelled, rng, FOLDS)
    assert vectors.counts is not None
    seen = vectors.counts
    rare = vectors.counts < RARE
    names = np.array([is_name(word) for word in vectors.words])
    yield (
        f"{len(labelled)} notes of {len(labelled.classes)} classes, {seen.sum():,} tokens,"
        f" {len(seen):,} words,"
    )
    yield (
        f"of tokens {seen[rare].sum() / seen.sum():.1%} rare and"
        f" {seen[names].sum() / seen.sum():.1%} names."
    )
    yield "\n| mechanism | macro-F1 | one draw | rare | names | bits | cosine |\n|" + " --- |" * 7
    yield row("original", [macro_f1(labelled, folds, labelled.texts), 1, 1, 1, entropy(seen), 1])
    for setting in SETTINGS:
        if args.only and setting["mechanism"] not in args.only:
            continue
        how = ChannelSettings(**setting)
        key = Key.from_seed(1)
        channel, _ = build_channel(vectors, how, key=key, threads=2, counts=counts)
        obfuscator = Obfuscator(channel, key)
        released = (obfuscator(batch).batch for batch in corpus.batches())
        kept, texts = paired(labelled, texts_of(labelled, released, None))
        assert len(kept) == len(labelled)
        draws = [one_draw(channel, seen, some) for some in (np.ones_like(rare), rare, names)]
        bits = information(channel, seen)
        said = ", ".join(
            f"{k.replace('_', ' ')} {v}" for k, v in setting.items() if k != "mechanism"
        )
        f1 = macro_f1(labelled, folds, texts)
        yield row(
            f"{setting['mechanism']}, {said}", [f1, *draws, bits, cosine(channel, vectors, seen)]
        )


def main() -> None:
    """The table of one corpus."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--label", required=True)
    for name in ("id", "text", "patient"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--notes", type=int, default=1500)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    columns = NotesSettings(id=args.id, text=args.text, patient=args.patient, preset="none")
    corpus = open_corpus(args.source, columns, label=(args.label,))
    with tempfile.TemporaryDirectory() as scratch:
        counts = count_words(corpus, Path(scratch))
        learning = VectorSettings(algorithm="skipgram", window=40, epochs=20)
        made = load_vectors(args.vectors) if args.vectors else None
        vectors = made or train(
            corpus, learning, seed=1, workers=2, scratch=Path(scratch), counts=counts
        )
        for line in table(corpus, args.label, vectors, counts, args):
            print(line, flush=True)


if __name__ == "__main__":
    main()
