"""Our own tool in an attacker's hands: vectors and a channel of notes that they hold, in the words of the release."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array, identity

from clinveil.attacks.adversaries._tables import Table, frequency, table_of
from clinveil.attacks.adversary import AdversaryView
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import mechanisms
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.types import Doubles, Ints
from clinveil.corpus.corpus import corpus_of_texts
from clinveil.vectors.count import count_words
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

WINDOW, WORK = 20, 3_000_000  # of shadow vectors: context words on either side; words in all passes


def kept_shadow(view: AdversaryView, source: str, rng: Generator) -> csr_matrix:
    """`shadow_matrix` of the other notes ("others") or of the release ("released"), trained once for all readings."""
    notes: Sequence[Ints] = getattr(view, source)
    place = source if source == "released" else (source, id(notes))
    return view.kept(("shadow", place), lambda: shadow_matrix(view, notes, rng))


def shadow_matrix(view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> csr_matrix:
    """P(output | input) of a channel made of some notes, each of a patient of its own, (n_words, n_words).

    By the words of `view.channel`; what only one of the two vocabularies knows is nothing. Without `view.shadow` the
    vectors are trained at the defaults. Nothing at all where the notes are too few for vectors.
    """
    if view.channel.mechanism not in mechanisms:  # words come out as they went in: there is nothing to train
        return csr_matrix(identity(len(view.channel.words)))
    try:
        made = _by_tool(view, notes) if view.shadow is not None else _by_hand(view, notes, rng)
    except InputError:  # fewer words than the mechanism draws from
        return csr_matrix((len(view.channel.words),) * 2)
    return _in_words_of(view.channel, made)


def _by_tool(view: AdversaryView, notes: Sequence[Ints]) -> Channel:
    assert view.shadow is not None
    return view.shadow(notes, range(len(notes)))[0]


def _by_hand(view: AdversaryView, notes: Sequence[Ints], rng: Generator) -> Channel:
    known, seed = np.array([*view.channel.words, ""], dtype=object), int(rng.integers(2**31))
    corpus = corpus_of_texts(" ".join(known[note]) for note in notes)
    with _folder(view) as folder:
        counts = count_words(corpus, folder)
        vectors = train(corpus, shadow_settings(counts.n_tokens), seed=seed, workers=1, scratch=folder, counts=counts)
    written = np.unique(np.concatenate([np.zeros(0, np.int64), *view.released]))
    outputs = {view.channel.words[row] for row in written.tolist()}
    return channel_like(view.channel, vectors, outputs, Key.from_seed(seed), view.threads)


def channel_like(channel: Channel, vectors: Vectors, outputs: Set[str], key: Key, threads: int) -> Channel:
    """The channel that the tool makes of an attacker's vectors under the settings of a release, which are public.

    Args:
        outputs: words that occur in the release; no other word can come out, and the attacker sees which.

    Raises:
        InputError: too few of these words have a vector.
    """
    patients = np.array([word in outputs for word in vectors.words], dtype=np.int64)
    limited = replace(vectors, patients=patients, n_patients=1)
    return build_channel(limited, settings_of(channel), key=key, threads=threads)[0]


def shadow_settings(n_words: int) -> VectorSettings:
    """Settings of shadow vectors: about `WORK` words in all passes together."""
    return VectorSettings(window=WINDOW, epochs=min(15, max(2, WORK // max(n_words, 1))))


@contextmanager
def _folder(view: AdversaryView) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".clinveil-shadow", dir=view.scratch) as folder:
        yield Path(folder)


def settings_of(channel: Channel) -> ChannelSettings:
    """The settings that made a channel, as far as its parameters record them, without a floor of patients."""
    given = dict(channel.parameters)
    if {"low", "high"} <= given.keys():
        given["n"] = (given["low"], given["high"])
    known = ChannelSettings.flags().keys()
    own = {name: value for name, value in given.items() if name in known}
    return ChannelSettings(**{**own, "mechanism": channel.mechanism, "min_patients": 1, "allow_small": True})


def _in_words_of(channel: Channel, other: Channel) -> csr_matrix:
    rows = np.array([channel.ids.get(word, -1) for word in other.words], dtype=np.int64)
    parts, n_words = other.matrix()[: len(other.words)].tocoo(), len(channel.words)
    inputs, outputs = rows[parts.row], rows[parts.col]
    shared = (inputs >= 0) & (outputs >= 0)
    return csr_matrix((parts.data[shared], (inputs[shared], outputs[shared])), shape=(n_words, n_words))


def shadow_table(view: AdversaryView, matrix: csr_matrix, prior: Doubles, background: float) -> Table:
    """What somebody believes who takes a shadow channel for the true one, with so much doubt.

    P(x | y) is in proportion to prior(x) [(1 - b) C'(y | x) + b q(y)], with C' the shadow channel, b the doubt and q
    how often each output stands in the release. Where no input of C' gives y, its own outputs there, and the words that
    have outputs in common with it, stand for its inputs: near words are mostly near both ways.

    Args:
        matrix: (n_words, n_words) C'. prior: (n_words,).
    """
    outputs = frequency(view.released, prior.size)
    unread = (np.asarray(matrix.sum(axis=0)).ravel() == 0) & (outputs > outputs.min())
    near = csr_matrix(diags_array(unread.astype(np.float64)) @ matrix)
    turned = (near + near @ matrix.T).T
    joint = csc_matrix(diags_array((1 - background) * prior) @ (matrix + turned))
    return table_of(joint, background * outputs, prior)
