"""What the token loop (`kernel.py`) takes and gives, as arrays; texts are UTF-8 with their offsets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core.types import Ints, Mask, SmallInts

Bytes = NDArray[np.uint8]
Words64 = NDArray[np.uint64]


class Notes(NamedTuple):
    """A batch of notes.

    Attributes:
        data, offsets: uint8 and (n + 1,) int64, the texts.
        keys: (n, KEYS, 2) uint64, the SipHash keys of each note; those that nothing needs may hold anything.
        rows, forms: (n_occurrences,) int64 and uint64: of the non-ASCII words in order, the row (-1 where unknown) and
            the keyed hash of the lookup form.
    """

    data: Bytes
    offsets: Ints
    keys: Words64
    rows: Ints
    forms: Words64


class Tables(NamedTuple):
    """A channel, ready to be drawn from.

    Attributes:
        kinds: (0x110000,) uint8, the `Kind` of each code point.
        lower: (256,) uint8, an ASCII letter's lower case; 0 for every other byte.
        data, offsets: uint8 and (n_words + 1,) int64, the words.
        slots: (2^b,) int32, the open-addressing table of the words: row + 1, 0 where free.
        forms: (n_words,) uint64, keyed hashes of the words, which memoised draws are made from.
        kept: (n_words,) bool, words that the user asked to keep.
        scopes: (n_words + 1,) uint8, with which key each row is drawn from; the last is of unknown words.
        indptr, indices: the channel's rows and outputs.
        limits, others: (n_entries,) uint64 and int32, Walker's alias table: of the part of [0, 1) that falls to entry j
            of a row, the share limits[j] / 2^64 goes to indices[j] and the rest to others[j].
        form_key: the SipHash key of `forms`.
    """

    kinds: Bytes
    lower: Bytes
    data: Bytes
    offsets: Ints
    slots: SmallInts
    forms: Words64
    kept: Mask
    scopes: Bytes
    indptr: Ints
    indices: SmallInts
    limits: Words64
    others: SmallInts
    form_key: tuple[np.uint64, np.uint64]


class Options(NamedTuple):
    """How notes are written.

    Attributes:
        keep_layout, end_sentences: `Policy.layout` is "keep", or "sentences". mask_numbers: write one `#` a digit.
        align, locate: return where released words come from, and where they are. length, background:
            `Policy.length` and `Policy.background`.
    """

    keep_layout: bool
    end_sentences: bool
    mask_numbers: bool
    align: bool
    locate: bool
    length: float
    background: float


class Places(NamedTuple):
    """Of each released word, (n,) as far as `Released.aligned` goes; nothing unless asked for.

    Attributes:
        starts, ends: int32 code points of its source word.
        sentences: int32, the number of its sentence in the source. firsts, lasts: int64, its bytes in the new text.
    """

    starts: SmallInts
    ends: SmallInts
    sentences: SmallInts
    firsts: Ints
    lasts: Ints


class Released(NamedTuple):
    """What was written.

    Attributes:
        data, offsets: uint8 and (n + 1,) int64, the released texts.
        places: of the released words. aligned: (n + 1,) int64, the notes' places in these arrays.
        counts: (COUNTERS,) int64, what became of the tokens (`tally.py`).
    """

    data: Bytes
    offsets: Ints
    places: Places
    aligned: Ints
    counts: Ints
