"""Lookup tables of the token loop: words of a channel as a hash table, rows as alias tables."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.channel.arrays import Bytes, ChannelTables, Options, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.draws import hash_strings
from clinveil.channel.policy import WritingPolicy
from clinveil.core import Doubles, Ints, SmallInts, character_classes, kernel

Scalar = TypeVar("Scalar", bound=np.generic)
SipKey = tuple[np.uint64, np.uint64]
# as in `kernel.py`
_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_FULL = np.uint64((1 << 64) - 1)
_SCALE = 2.0**64


def options_of(policy: WritingPolicy) -> Options:
    """Return the options of the token loops for a policy."""
    return Options(
        keep_layout=policy.layout == "keep",
        end_sentences=policy.layout == "sentences",
        mask_numbers=policy.numbers == "mask",
    )


def tables_of(channel: Channel) -> ChannelTables:
    """Return the tables of a channel."""
    n_words = len(channel.words)
    data, offsets = string_buffers(pa.array(channel.words, type=pa.large_string()))
    slots = np.zeros(1 << max(2 * n_words, 1).bit_length(), dtype=np.int32)
    fill_slots(data, offsets, slots)
    kept = np.zeros(n_words, dtype=np.bool_)
    kept[[channel.ids[word] for word in channel.kept]] = True
    limits, others = alias_tables(channel.indptr, channel.indices, channel.probabilities)
    return ChannelTables(
        kinds=readonly(character_classes()),
        lower=readonly(ascii_lower()),
        data=readonly(data),
        offsets=readonly(offsets),
        slots=readonly(slots),
        kept=readonly(kept),
        indptr=readonly(channel.indptr),
        indices=readonly(channel.indices),
        limits=readonly(limits),
        others=readonly(others),
    )


@kernel
def fill_slots(data: Bytes, offsets: Ints, slots: SmallInts) -> None:
    """Insert words into an empty open-addressing table by FNV-1a of their bytes (RFC 9923);
    compiled.
    """
    for row in range(offsets.size - 1):
        value = _START
        for i in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(data[i])) * _PRIME
        # As `kernel._slot`.
        slot = np.int64((value ^ (value >> np.uint64(32))) & np.uint64(slots.size - 1))
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = row + 1


@cache
def ascii_lower() -> Bytes:
    """Return the lower case of ASCII letters, (256,); 0 for other bytes."""
    return np.array(
        [ord(chr(b).lower()) if b < 128 and chr(b).isalpha() else 0 for b in range(256)],
        dtype=np.uint8,
    )


def readonly(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a contiguous read-only view, like Arrow buffers: one argument type means one
    compilation.
    """
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def string_buffers(strings: pa.LargeStringArray) -> tuple[Bytes, Ints]:
    """Return bytes and offsets, (n_strings + 1,), of an Arrow array of large strings as read-only
    views.
    """
    _, offsets, data = strings.buffers()
    if offsets is None or offsets.size == 0:
        places = np.zeros(1, dtype=np.int64)
    else:
        places = np.frombuffer(offsets, dtype=np.int64)[
            strings.offset : strings.offset + len(strings) + 1
        ]
    letters = (
        np.frombuffer(data, dtype=np.uint8)
        if data is not None and data.size
        else np.zeros(0, dtype=np.uint8)
    )
    return readonly(letters), readonly(places)


def key_words(secret: bytes) -> SipKey:
    """Return the two 64-bit halves of a 16-byte SipHash key."""
    return np.uint64(int.from_bytes(secret[:8], "little")), np.uint64(
        int.from_bytes(secret[8:16], "little")
    )


def siphash_strings(key: SipKey, data: Bytes, offsets: Ints) -> Words64:
    """Return SipHash-2-4 of each string of an Arrow string array's buffers, (n_strings,)."""
    left, right = key
    return hash_strings(left, right, data, offsets, np.arange(256, dtype=np.uint8))


def alias_tables(
    indptr: Ints, indices: SmallInts, probabilities: Doubles
) -> tuple[Words64, SmallInts]:
    """Return `limits` and `others` of some rows with their outputs, with an error below 2^-48.

    Source: Walker's alias method; Vose, A linear algorithm for generating random numbers with a
    given distribution (IEEE TSE 17, 1991).
    """
    limits = np.full(indices.size, _FULL)
    others = indices.copy()
    _alias(indptr, indices, probabilities.copy(), limits, others)
    return limits, others


@kernel
def _alias(
    indptr: Ints, indices: SmallInts, shares: Doubles, limits: Words64, others: SmallInts
) -> None:
    """Compute Vose's table of each row; `shares` contains the probabilities and is overwritten."""
    order = np.empty(shares.size, dtype=np.int64)
    for row in range(indptr.size - 1):
        start = indptr[row]
        size = indptr[row + 1] - indptr[row]
        # `order`: entries below the mean from the start, others from the end.
        small = start
        large = start + size
        for j in range(start, start + size):
            shares[j] *= size
            if shares[j] < 1.0:
                order[small] = j
                small += 1
            else:
                large -= 1
                order[large] = j
        while small > start and large < start + size:
            small -= 1
            less = order[small]
            more = order[large]
            limits[less] = np.uint64(shares[less] * _SCALE)
            others[less] = indices[more]
            shares[more] -= 1.0 - shares[less]
            if shares[more] < 1.0:
                large += 1
                order[small] = more
                small += 1
