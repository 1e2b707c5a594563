"""Arrays passed to and returned by the token loop (`kernel.py`); texts are UTF-8 bytes with
offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Doubles, Floats, Ints, Mask, SmallInts

Bytes = NDArray[np.uint8]
Words64 = NDArray[np.uint64]


class NoteArrays(NamedTuple):
    """A batch of notes.

    Attributes:
        data, offsets: uint8 and (n + 1,) int64, the texts.
        rows: (n_occurrences,) int64, row (-1 if unknown) of each non-ASCII word, in order.
    """

    data: Bytes
    offsets: Ints
    rows: Ints


class NoteWords(NamedTuple):
    """The words of a batch of notes.

    Attributes:
        rows: (n,) int32, row of each word; the row of unknown words for an unknown one.
        stops: (n,) bool, whether a sentence end is written between the word and the one written
            before it.
        offsets: (n_notes + 1,) int64, first word of each note.
        drawn: (n,) int32, row of each output; -1 for a word that is not written.
    """

    rows: SmallInts
    stops: Mask
    offsets: Ints
    drawn: SmallInts


class ChannelTables(NamedTuple):
    """Lookup tables of a channel.

    Attributes:
        kinds: (0x110000,) uint8, the `Kind` of each code point.
        lower: (256,) uint8, lower case of ASCII letters; 0 for other bytes.
        data, offsets: uint8 and (n_words + 1,) int64, the words.
        slots: (2^b,) int32, open-addressing hash table of the words: row + 1, or 0 if free.
        kept: (n_words,) bool, words kept on request.
        indptr, indices: the channel's rows and outputs.
        limits, others: (n_entries,) uint64 and int32, Walker's alias table: entry j of a row yields
            indices[j] with probability limits[j] / 2^64, otherwise others[j].
    """

    kinds: Bytes
    lower: Bytes
    data: Bytes
    offsets: Ints
    slots: SmallInts
    kept: Mask
    indptr: Ints
    indices: SmallInts
    limits: Words64
    others: SmallInts


class ContextTables(NamedTuple):
    """Tables of a context model; "token" is the number of a word in the model.

    Attributes:
        ids: (n_words + 1,) int32, token of each row of the channel; -1 for a word that is not in
            the model. rows: (size,) int32, row of each token.
        probabilities: (n_entries,), of the entries of the channel's rows.
        starts, weights: (n_contexts + n_levels,), first n-gram and weight of each context, level
            after level; the entry after the last context of a level is the end of its n-grams.
        first_context, first_ngram: (n_levels,), of each level.
        tokens, shares, limits, others: (n_ngrams,), the last token of each n-gram, its share of its
            context, and the alias tables of the contexts. The first n-grams are the single tokens.
        factors: (n_labels, size) float32. highest: (n_labels,), the highest of each label.
        ends: (size,) float32, factors of the last word of a sentence.
    """

    ids: SmallInts
    rows: SmallInts
    probabilities: Doubles
    starts: Ints
    weights: Doubles
    first_context: Ints
    first_ngram: Ints
    tokens: SmallInts
    shares: Doubles
    limits: Words64
    others: SmallInts
    factors: Floats
    highest: Floats
    ends: Floats


class Options(NamedTuple):
    """Options of the token loop.

    Attributes:
        keep_layout, end_sentences: `Policy.layout` is "keep" or "sentences". mask_numbers: write
            one `#` per digit.
    """

    keep_layout: bool
    end_sentences: bool
    mask_numbers: bool
