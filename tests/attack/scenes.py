"""Small scenes for readers: notes of a language with word pairs, obfuscated by a channel of random
neighbours.
"""

import numpy as np

from clinveil.attacks.adversary import AdversaryView, NoteRows
from clinveil.channel import Channel


def channel_of(outputs, chances=None, **more):
    """A channel whose row i has the outputs `outputs[i]`; unknown words are dropped."""
    lengths = [len(row) for row in outputs]
    indptr = np.cumsum([0, *lengths, 0]).astype(np.int64)
    flat = np.concatenate([np.asarray(row) for row in outputs]).astype(np.int32)
    even = [np.full(n, 1 / n) for n in lengths]
    words = [f"w{i}" for i in range(len(outputs))]
    return Channel(
        words,
        indptr,
        flat,
        np.concatenate(chances or even),
        np.ones(len(words), dtype=bool),
        parameters={"low": 2, "high": 2},
        **more,
    )


def random_channel(n_words, k, rng, **more):
    """Each word becomes one of k others, at random."""
    rows = [rng.choice(np.delete(np.arange(n_words), i), k, replace=False) for i in range(n_words)]
    return channel_of(rows, **more)


def language(n_words, rng, *, fan=3):
    """Transition probabilities, (n_words, n_words): after each word mostly one of a few, with
    Zipf's frequencies.
    """
    usual = 1 / np.arange(1, n_words + 1)
    after = np.tile(0.1 * usual / usual.sum(), (n_words, 1))
    for i in range(n_words):
        after[i, rng.choice(n_words, fan, replace=False, p=usual / usual.sum())] += 0.9 / fan
    return after / after.sum(axis=1, keepdims=True)


def written(after, length, rng):
    """A note of a language, as rows."""
    note = [int(rng.integers(len(after)))]
    while len(note) < length:
        note.append(int(rng.choice(len(after), p=after[note[-1]])))
    return np.array(note)


def seen(channel, note, patient, rng):
    """A note as the channel releases it, with fresh draws."""
    drawn = np.array(
        [rng.choice(channel.row(x)[0], p=channel.row(x)[1]) for x in note.tolist()], dtype=np.int64
    )
    return NoteRows(drawn, note, patient)


def view(seed=0, *, n_words=40, k=4, notes=12, others=60, length=40, pairs=0):
    """Notes of one language, two a patient."""
    rng = np.random.default_rng(seed)
    channel = random_channel(n_words, k, rng)
    after = language(n_words, rng)
    plain = [written(after, length, rng) for _ in range(notes)]
    there = [seen(channel, note, i // 2, rng) for i, note in enumerate(plain)]
    theirs = [written(after, length, rng) for _ in range(others)]
    held = [seen(channel, written(after, length, rng), 1000 + i, rng) for i in range(pairs)]
    counts = np.bincount(np.concatenate(plain), minlength=n_words)
    released = [note.outputs for note in (*there, *held)]
    return AdversaryView(channel, there, released, theirs, held, counts)


def right(readings, view):
    """The share of words whose first candidate is right."""
    hits = total = 0
    for reading, note in zip(readings, view.notes, strict=True):
        for t, truth in enumerate(note.truth.tolist()):
            place = slice(reading.starts[t], reading.starts[t + 1])
            total += 1
            hits += (
                place.start < place.stop
                and reading.rows[place][np.argmax(reading.chances[place])] == truth
            )
    return hits / total
