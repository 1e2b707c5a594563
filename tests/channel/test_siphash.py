"""SipHash-2-4: the published vectors, and the compiled functions against the plain one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from channel_reference import siphash_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from clinveil.channel.draws import siphash_word
from clinveil.channel.tables import key_words, siphash_strings, string_buffers

KEY = bytes(range(16))
# The authors' vectors: the message is 00, 01, … of length 0 to 15 (little-endian outputs).
PUBLISHED = [
    "310e0edd47db6f72",
    "fd67dc93c539f874",
    "5a4fa9d909806c0d",
    "2d7efbd796666785",
    "b7877127e09427cf",
    "8da699cd64557618",
    "cee3fe586e46c9cb",
    "37d1018bf50002ab",
    "6224939a79f5f593",
    "b0e4a90bdf82009e",
    "f3b9dd94c5bb5d7a",
    "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75",
    "903d84c02756ea14",
    "eef27a8e90ca23f7",
    "e545be4961ca29a1",
]


def value(little_endian: str) -> int:
    return int.from_bytes(bytes.fromhex(little_endian), "little")


@njit
def words_through(k0, k1, words, hashes):
    for i in range(words.size):
        hashes[i] = siphash_word(k0, k1, words[i])


def compiled_words(key: bytes, words: list[int]) -> list[int]:
    hashes = np.zeros(len(words), dtype=np.uint64)
    words_through(*key_words(key), np.array(words, dtype=np.uint64), hashes)
    return hashes.tolist()


def compiled_strings(key: bytes, strings: list[bytes]) -> list[int]:
    array = pa.array(strings, type=pa.large_binary())
    return siphash_strings(key_words(key), *string_buffers(array)).tolist()


def test_plain_function_gives_the_published_vectors():
    assert len(PUBLISHED) == 16
    for length, expected in enumerate(PUBLISHED):
        assert siphash_reference(KEY, bytes(range(length))) == value(expected)


def test_compiled_strings_give_the_published_vectors():
    assert compiled_strings(KEY, [bytes(range(n)) for n in range(16)]) == [
        value(v) for v in PUBLISHED
    ]


@given(
    st.binary(min_size=16, max_size=16), st.lists(st.binary(max_size=300), min_size=1, max_size=5)
)
@settings(deadline=None)
def test_compiled_strings_equal_the_plain_function(key, strings):
    assert compiled_strings(key, strings) == [siphash_reference(key, s) for s in strings]


@given(
    st.binary(min_size=16, max_size=16), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5)
)
@settings(deadline=None)
def test_compiled_words_equal_the_plain_function(key, words):
    assert compiled_words(key, words) == [
        siphash_reference(key, w.to_bytes(8, "little")) for w in words
    ]
