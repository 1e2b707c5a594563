"""Utility and recovery by settings of word vectors and by additional text, on one corpus.

usage: python benchmarks/vectors_default.py NOTES --label COLUMN [--id …] [--text …] SETTING …
A setting is `skipgram`, `skipgram,window=40,epochs=5`, `more_text=FILE`, or `vectors=FOLDER`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np

from clinveil.channel import Channel, ChannelSettings, WordObfuscator, build_channel
from clinveil.core import Key, NotesSettings
from clinveil.corpus import Corpus, open_corpus
from clinveil.utility import ORIGINAL, RELEASED, ClassifierSettings, compared, evaluate
from clinveil.vectors import (
    Vectors,
    VectorSettings,
    WordCounts,
    count_words,
    load_vectors,
    of_notes,
    save_vectors,
    train,
)

RARE = 20
SEED = 20260101
CHANNELS = {"neighbours 3-14": {"n": "3-14"}}


def processor_seconds() -> float:
    """Of this process and all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def vectors_of(
    corpus: Corpus, counts: WordCounts, setting: str, options: argparse.Namespace, scratch: Path
) -> Vectors:
    """Vectors as the setting says: trained, or read and fitted to the notes."""
    told = dict(
        part.split("=", 1) if "=" in part else ("algorithm", part) for part in setting.split(",")
    )
    if "vectors" in told:
        return of_notes(load_vectors(told["vectors"]), counts)
    how = VectorSettings.model_validate(told)
    return train(
        corpus, how, seed=options.seed, workers=options.workers, scratch=scratch, counts=counts
    )


def recovered(channel: Channel, counts: WordCounts) -> tuple[float, float]:
    """Tokens that the best guess from one draw gives back: of all, and of words seen fewer than 20
    times.
    """
    known = dict(zip(counts.words, counts.counts.tolist(), strict=True))
    prior = np.array([known.get(word, 0) for word in channel.words], dtype=np.float64)
    posterior = channel.posterior(prior)
    rows, won = posterior.best
    read = np.bincount(
        rows[rows >= 0], won[rows >= 0] / posterior.prior[rows[rows >= 0]], len(prior) + 1
    )[: len(prior)]
    rare = (prior > 0) & (prior < RARE)
    return float(read @ prior / prior.sum()), float(
        read[rare] @ prior[rare] / max(prior[rare].sum(), 1)
    )


def kept(corpus: Corpus, channel: Channel, key: Key, label: str) -> float:
    """Macro-F1 of logistic regression on released notes, as a share of that on the original
    ones.
    """
    obfuscate = WordObfuscator(channel, key)
    released = (obfuscate(batch).batch for batch in corpus.batches())
    rng = np.random.default_rng(SEED)
    settings = ClassifierSettings(min_class=20)
    task = evaluate(corpus.batches(), released, label, rng, settings)
    both = {
        f.series: f.value
        for f in compared(task, "lr", rng)
        if f.measure == "utility.classification" and f.value is not None
    }
    return both[RELEASED] / both[ORIGINAL]


def main(options: argparse.Namespace) -> None:
    """Print a row for each setting."""
    reading = NotesSettings(id=options.id, text=options.text, patient=options.patient)
    corpus = open_corpus(options.notes, reading, label=(options.label,))
    key = Key.from_seed(options.seed)
    print(
        "| vectors | passes | processor s | "
        + " | ".join(f"{name}: F1 kept / read / rare" for name in CHANNELS)
        + " |"
    )
    print("| --- | --: | --: |" + " --- |" * len(CHANNELS))
    with tempfile.TemporaryDirectory() as folder:
        counts = count_words(corpus, Path(folder))
        for setting in options.settings:
            before = processor_seconds()
            vectors = vectors_of(corpus, counts, setting, options, Path(folder))
            cells = [
                setting,
                str(vectors.meta.get("epochs", "")),
                f"{processor_seconds() - before:.0f}",
            ]
            if options.save:
                save_vectors(vectors, options.save / setting.replace("/", "-"), force=True)
            for how in CHANNELS.values():
                told = ChannelSettings.model_validate({**how, "allow_small": True})
                channel, _ = build_channel(vectors, told, threads=options.workers, counts=counts)
                cells.append(
                    f"{kept(corpus, channel, key, options.label):.3f} / "
                    + " / ".join(f"{share:.3f}" for share in recovered(channel, counts))
                )
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path)
    parser.add_argument("settings", nargs="+")
    parser.add_argument("--label", required=True)
    for name in ("id", "text", "patient"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--save", type=Path, help="folder to keep the vectors in")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    sys.exit(main(parser.parse_args()))
