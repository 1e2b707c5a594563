"""Scenes for readers without the channel: a language of word classes, whose neighbours any of its
texts tell.
"""

import numpy as np
from scenes import channel_of, seen, written

from clinveil.attacks.adversary import AdversaryView


def classes(n_classes, size, rng):
    """Transitions (n_words, n_words) of classes of words that are exchanged freely; each class has
    two that follow.
    """
    n_words = n_classes * size
    after = np.full((n_words, n_words), 0.05 / n_words)
    within = 1 / np.arange(1, size + 1)
    for c in range(n_classes):
        for d in rng.choice(n_classes, 2, replace=False):
            after[c * size : (c + 1) * size, d * size : (d + 1) * size] += within / within.sum() / 2
    return after / after.sum(axis=1, keepdims=True)


def near_words(notes, n_words, k):
    """Of each word the k that stand in the most similar company: cosine of counts of the words
    before and after.
    """
    company = np.full((n_words, 2 * n_words), 1e-9)
    for note in notes:
        np.add.at(company, (note[1:], note[:-1]), 1)
        np.add.at(company, (note[:-1], n_words + note[1:]), 1)
    company = np.sqrt(company)
    company /= np.linalg.norm(company, axis=1, keepdims=True)
    cosines = company @ company.T
    np.fill_diagonal(cosines, -1)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :k]


def class_scene(seed=0, *, n_classes=12, size=4, notes=20, others=150, length=60, pairs=0):
    """Notes of classes, obfuscated by the k nearest of the source; the shadow channel by those of
    the other notes.
    """
    rng = np.random.default_rng(seed)
    after = classes(n_classes, size, rng)
    k = size - 1
    n_words = n_classes * size
    plain = [written(after, length, rng) for _ in range(notes)]
    channel = channel_of(near_words(plain * 3, n_words, k))
    there = [seen(channel, note, i // 2, rng) for i, note in enumerate(plain)]
    held = [seen(channel, written(after, length, rng), 1000 + i, rng) for i in range(pairs)]
    theirs = [written(after, length, rng) for _ in range(others)]
    released = [note.outputs for note in (*there, *held)]
    # In place of vectors that are trained on the other notes.
    shadow = channel_of(near_words(theirs, n_words, k)).matrix()[:n_words]
    return AdversaryView(
        channel, there, released, theirs, held, cache={("shadow", id(theirs)): shadow}
    )


def scattered(view, rng):
    """The same scene, its outputs shuffled among all places of all notes: nothing is left to be
    read.
    """
    from dataclasses import replace

    every = rng.permutation(np.concatenate([note.outputs for note in view.notes]))
    parts = np.split(every, np.cumsum([len(note) for note in view.notes])[:-1])
    notes = [replace(note, outputs=part) for note, part in zip(view.notes, parts, strict=True)]
    return replace(view, notes=notes, released=[note.outputs for note in notes])


def blind(view):
    """The share of words that are the most frequent one."""
    every = np.concatenate([note.truth for note in view.notes])
    return np.bincount(every).max() / every.size
