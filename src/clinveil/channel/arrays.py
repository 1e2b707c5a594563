"""Arrays passed to and returned by the token loop (`kernel.py`); texts are UTF-8 bytes with
offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Ints, Mask, SmallInts

Bytes = NDArray[np.uint8]
Words64 = NDArray[np.uint64]


class NoteArrays(NamedTuple):
    """A batch of notes.

    Attributes:
        data, offsets: uint8 and (n + 1,) int64, the texts.
        keys: (n, 2) uint64, a SipHash key per note.
        rows: (n_occurrences,) int64, row (-1 if unknown) of each non-ASCII word, in order.
    """

    data: Bytes
    offsets: Ints
    keys: Words64
    rows: Ints


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


class Options(NamedTuple):
    """Options of the token loop.

    Attributes:
        keep_layout, end_sentences: `Policy.layout` is "keep" or "sentences". mask_numbers: write
            one `#` per digit.
        background: as in `WritingPolicy`.
    """

    keep_layout: bool
    end_sentences: bool
    mask_numbers: bool
    background: float
