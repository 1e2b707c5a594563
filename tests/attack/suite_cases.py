"""Releases of an invented language, for tests of the adversary suite."""

import numpy as np

from clinveil.attacks import Context
from clinveil.channel import Channel, WordObfuscator
from clinveil.core import Key
from clinveil.corpus import MemoryCorpus, memory_corpus
from clinveil.vectors import count_words

NAMES = ["baumgartner", "kowalczyk", "petrosyan", "lindqvist"]


def language(rng, patients=12, notes=3, length=60):
    """Notes of words that come in fixed pairs; each patient has a surname among them."""
    left = [f"{a}{b}o" for a in "bdfgk" for b in "aeiu"]
    texts = []
    for patient in range(patients):
        for note in range(notes):
            words = [
                w for i in rng.integers(20, size=length // 2) for w in (left[i], left[i][::-1])
            ]
            words.insert(3, NAMES[patient % 4])
            texts.append(
                (
                    f"n{patient}-{note}",
                    f"p{patient}",
                    ". ".join(" ".join(words[i : i + 9]) for i in range(0, length, 9)),
                )
            )
    return texts


def channel_over(words, rng, k):
    """A channel of each word to k other words with equal probability."""
    n = len(words)
    rows_ = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    if k == 1:  # a substitution cipher: no two words share an output
        rows_ = np.roll(np.arange(n), 1)[:, None]
    indptr = np.append(np.arange(0, n * k + 1, k), n * k)
    return Channel(
        words,
        indptr,
        rows_.ravel().astype(np.int32),
        np.full(n * k, 1 / k),
        np.ones(n, dtype=bool),
        parameters={"low": 2, "high": 2},
    )


def context(tmp_path, seed=0, patients=12, k=4, length=60):
    """Notes of the language, and their release by such a channel."""
    rng = np.random.default_rng(seed)
    entered = memory_corpus(language(rng, patients, length=length))
    counts = count_words(entered, tmp_path)
    channel = channel_over(list(counts.words), rng, k)
    obfuscator = WordObfuscator(channel, Key.from_seed(seed))
    released = MemoryCorpus(tuple(obfuscator(batch).batch for batch in entered.batches()))
    return Context(
        channel=channel, counts=counts, released=released, entered=entered, original=entered
    )
