"""Shadow vectors: an attacker trains vectors on their own notes and builds a channel from them with
this software.
"""

from __future__ import annotations

import tempfile
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array, identity

from clinveil.attacks.adversaries._sequence import frequency, in_context_candidates, table_of
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Recovery
from clinveil.channel import (
    NEIGHBOURS,
    Channel,
    ChannelSettings,
    NeighbourRange,
    build_channel,
    mechanism_of,
    with_context,
)
from clinveil.core import InputError
from clinveil.corpus import Corpus, corpus_of_texts
from clinveil.vectors import Vectors, VectorSettings, count_words, train

# Shadow vectors: context words on either side; words in all passes together.
WINDOW = 20
WORK = 3_000_000
REPEATED = 2  # released notes that share an n-gram of the attacker's language model
DOUBT = 0.5  # weight of output frequencies relative to the shadow channel


class OwnVectors(Adversary):
    """Train shadow vectors on other notes, build a channel of the known mechanism, and recover
    words one by one.

    P(x | y) is proportional to prior(x) [(1 - b) C'(y | x) + b q(y)], with the shadow channel C',
    the doubt b and the frequency q(y) of each output in the release. An output that no input of C'
    can produce uses its own outputs under C' instead, and the words that share outputs with it,
    because neighbourhood is mostly symmetric.

    Source: threat model A9 (i); unigram Bayes with the shadow channel in place of the true one.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({},)
    order: ClassVar[int] = 500

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words of only one vocabulary use the background frequencies."""
        if view.channel.in_context:
            mechanism = mechanism_of(shadow_channel(view, rng))
            tables = (
                in_context_candidates(note.likelihood(mechanism), view) for note in view.notes
            )
            return [Recovery(table.starts, table.rows, table.posterior) for table in tables]
        matrix = shadow_matrix(view, rng)
        outputs = frequency(view.released, view.prior.size)
        unreachable = (np.asarray(matrix.sum(axis=0)).ravel() == 0) & (outputs > outputs.min())
        near = csr_matrix(diags_array(unreachable.astype(np.float64)) @ matrix)
        turned = (near + near @ matrix.T).T
        joint = csc_matrix(diags_array((1 - DOUBT) * view.prior) @ (matrix + turned))
        return table_of(joint, DOUBT * outputs, view.prior).recoveries(view)


def shadow_matrix(view: AdversaryView, rng: Generator) -> csr_matrix:
    """Return P(output | input), (n_words, n_words), of a channel built from the attacker's other
    notes; cached.

    Rows and columns are words of `view.channel`; words of only one vocabulary have no entry. The
    matrix is empty if the notes are too few for training.
    """
    return view.cached(("shadow", id(view.others)), lambda: _shadow_matrix(view, rng))


def _shadow_matrix(view: AdversaryView, rng: Generator) -> csr_matrix:
    channel = view.channel
    n_words = len(view.channel.words)
    # The release does not replace words: there is nothing to train.
    if channel.mechanism != NEIGHBOURS:
        return csr_matrix(identity(n_words))
    try:
        shadow = _trained(view, rng)
    except InputError:  # fewer words than the channel needs
        return csr_matrix((n_words, n_words))
    rows = np.array([channel.ids.get(word, -1) for word in shadow.words], dtype=np.int64)
    entries = shadow.matrix()[: len(shadow.words)].tocoo()
    inputs = rows[entries.row]
    outputs = rows[entries.col]
    shared = (inputs >= 0) & (outputs >= 0)
    return csr_matrix(
        (entries.data[shared], (inputs[shared], outputs[shared])), shape=(n_words, n_words)
    )


def shadow_channel(view: AdversaryView, rng: Generator) -> Channel:
    """Return a channel that draws in context over the words of `view.channel`, with the attacker's
    neighbours and a language model of the release; cached.
    """
    channel: Channel = view.cached(
        ("shadow channel", id(view.others)),
        lambda: channel_with_model(view, shadow_matrix(view, rng)),
    )
    return channel


def channel_with_model(view: AdversaryView, matrix: csr_matrix) -> Channel:
    """Return a channel that draws in context, with these neighbours and a language model of the
    release.

    Args:
        matrix: (n_words, n_words) weights of the outputs of each word; a row may be empty.
    """
    assert view.release is not None
    matrix = csr_matrix(matrix)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    released = np.unique(np.concatenate([np.zeros(0, np.int64), *view.released]))
    eligible = np.zeros(len(view.channel.words), dtype=np.bool_)
    eligible[released] = True
    eligible[matrix.indices] = True
    shadow = Channel(
        view.channel.words,
        indptr=np.append(matrix.indptr, matrix.nnz).astype(np.int64),
        indices=matrix.indices.astype(np.int32),
        probabilities=matrix.data / np.repeat(sums, np.diff(matrix.indptr)),
        eligible=eligible,
    )
    with tempfile.TemporaryDirectory(prefix=".clinveil-shadow", dir=view.scratch) as scratch:
        return shadow_context(shadow, view.channel, view.release, view.threads, Path(scratch))


def _trained(view: AdversaryView, rng: Generator) -> Channel:
    known = np.array([*view.channel.words, ""], dtype=object)
    seed = int(rng.integers(2**31))
    corpus = corpus_of_texts(" ".join(known[note]) for note in view.others)
    with tempfile.TemporaryDirectory(prefix=".clinveil-shadow", dir=view.scratch) as scratch:
        folder = Path(scratch)
        counts = count_words(corpus, folder)
        vectors = train(
            corpus,
            shadow_settings(counts.n_tokens),
            seed=seed,
            workers=1,
            scratch=folder,
            counts=counts,
        )
    released = np.unique(np.concatenate([np.zeros(0, np.int64), *view.released]))
    outputs = {view.channel.words[row] for row in released.tolist()}
    return channel_like(view.channel, vectors, outputs, view.threads)


def channel_like(channel: Channel, vectors: Vectors, outputs: Set[str], threads: int) -> Channel:
    """Build the channel of an attacker's vectors under the settings of a release, which are public.

    Args:
        outputs: words that occur in the release. No other word can be an output, and the attacker
            can observe this.

    Raises:
        InputError: too few of these words have a vector.
    """
    patients = np.array([word in outputs for word in vectors.words], dtype=np.int64)
    limited = replace(vectors, patients=patients, n_patients=1)
    return build_channel(limited, settings_of(channel), threads=threads)[0]


def shadow_context(
    shadow: Channel, channel: Channel, released: Corpus, threads: int, scratch: Path
) -> Channel:
    """Return a shadow channel that draws in context, with a language model of the released notes.

    The policy of the channel and the name of its label are public. The attacker doubts the
    neighbours of their own vectors: the model has a larger share than in the release.
    """
    assert channel.context is not None
    policy = channel.policy
    background = 1 - (1 - policy.background) * (1 - DOUBT)
    shadow = replace(shadow, policy=replace(policy, background=background))
    return with_context(
        shadow,
        released,
        ngram_patients=REPEATED,
        label=channel.context.label or None,
        workers=threads,
        scratch=scratch,
        fewest=1,
        released=True,
    )


def shadow_settings(n_words: int) -> VectorSettings:
    """Return settings of shadow vectors: about `WORK` words in all passes together."""
    return VectorSettings(window=WINDOW, epochs=min(15, max(2, WORK // max(n_words, 1))))


def settings_of(channel: Channel) -> ChannelSettings:
    """Return the settings recorded in a channel's parameters, without the minimum number of
    patients.
    """
    n = NeighbourRange(low=channel.parameters["low"], high=channel.parameters["high"])
    return ChannelSettings(n=n, min_patients=1, allow_small=True)
