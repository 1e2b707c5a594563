"""Released words in another order: windows, sentences or whole notes in keyed random orders, compiled.

What stands between the words (white space, punctuation, masks) stays where it is; each word goes to the place of
another one, so a note keeps its length.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, Places, Released, Words64
from clinveil.channel.kernel import numbered
from clinveil.channel.policy import Policy
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Ints, SmallInts

SENTENCES = np.uint64(1 << 32)  # from here on the keyed numbers of a note are of its sentences, not of its words
_BY_SENTENCE, _WHOLE = 0, 1 << 62  # in the place of the size of a window
_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def in_order(out: Released, keys: Words64, policy: Policy) -> Released:
    """The released notes with their words, and where these come from, in the order of the policy.

    Args:
        out: of `obfuscate` with `Options.locate`. keys: (n, 2) the SipHash key of each note's order.
    """
    window = {"none": 1, "window": policy.window, "sentence": _BY_SENTENCE, "note": _WHOLE}[policy.shuffle]
    bits, sentence_bits = numbered(keys, out.aligned, np.uint64(0)), np.zeros(0, dtype=np.uint64)
    if policy.sentences:
        sentence_bits = numbered(keys, out.aligned, SENTENCES)
    order = _order(out.aligned, out.places.sentences, bits, sentence_bits, window)
    starts, ends = (points[order] if points.size else points for points in out.places[:2])
    places = out.places._replace(starts=starts, ends=ends)
    return out._replace(data=_refilled(out.data, out.places, order), places=places)


@helper
def _shuffle(things: Ints, first: int, size: int, bits: Words64, at: int) -> None:
    """Put things[first : first + size] in a random order drawn from bits[at : at + size], all as likely.

    Source: Fisher and Yates; Durstenfeld, Algorithm 235 (CACM 7, 1964).
    """
    for i in range(size - 1, 0, -1):
        bound = np.uint64(i + 1)
        # The upper half of a product of 128 bits: a number below the bound.
        other = np.int64(((bits[at + i] >> _32) * bound + ((bits[at + i] & _LOW) * bound >> _32)) >> _32)
        things[first + i], things[first + other] = things[first + other], things[first + i]


@kernel
def _order(aligned: Ints, sentences: SmallInts, bits: Words64, sentence_bits: Words64, window: int) -> Ints:
    """(n_words,) the word that comes to stand at each place."""
    order, runs = np.arange(aligned[-1]), np.empty(aligned[-1] + 1, dtype=np.int64)
    for note in range(aligned.size - 1):
        first, end = aligned[note], aligned[note + 1]
        if sentence_bits.size:
            order[first:end] = _by_sentences(sentences[first:end], runs, sentence_bits, first)
        while first < end:
            last = min(first + window, end)
            if window == _BY_SENTENCE:
                last = first + 1
                while last < end and sentences[order[last]] == sentences[order[first]]:
                    last += 1
            _shuffle(order, first, last - first, bits, first)
            first = last
    return order


@kernel
def _by_sentences(sentences: SmallInts, runs: Ints, bits: Words64, first: int) -> Ints:
    """The words of one note, (n,) counted from `first` on, with its sentences in a random order."""
    starts, order, n_runs = np.empty(sentences.size + 1, dtype=np.int64), np.empty(sentences.size, dtype=np.int64), 0
    for i in range(sentences.size):
        if i == 0 or sentences[i] != sentences[i - 1]:
            starts[n_runs], runs[n_runs] = i, n_runs
            n_runs += 1
    starts[n_runs] = sentences.size
    _shuffle(runs, 0, n_runs, bits, first)
    written = 0
    for run in runs[:n_runs]:
        for i in range(starts[run], starts[run + 1]):
            order[written] = first + i
            written += 1
    return order


@kernel
def _refilled(data: Bytes, places: Places, order: Ints) -> Bytes:
    """The released text with each word in the place that `order` gives it."""
    text, written, read = np.empty_like(data), 0, 0
    for slot in range(order.size):
        word = order[slot]
        for piece in ((read, places.firsts[slot]), (places.firsts[word], places.lasts[word])):
            for i in range(piece[0], piece[1]):
                text[written] = data[i]
                written += 1
        read = places.lasts[slot]
    text[written:] = data[read:]
    return text
