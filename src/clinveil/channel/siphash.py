"""SipHash-2-4, the keyed pseudo-random function that every released token is drawn with.

Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (INDOCRYPT 2012). The compiled functions work on 64-bit
words and on stretches of a byte array; `siphash_reference` is the same function in plain Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.scan import ENTIRE

_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_FINAL = np.uint64(0xFF)
_EIGHT_BYTES = np.uint64(8 << 56)
_MASK = (1 << 64) - 1


_13, _16, _17, _21, _32, _64 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32, 64))


@compiled_helper
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (_64 - bits))


@compiled_helper
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> tuple[np.uint64, ...]:
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, _13) ^ v0
    v3 = _rotate(v3, _16) ^ v2
    v0 = _rotate(v0, _32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, _17) ^ v2
    v3 = _rotate(v3, _21) ^ v0
    v2 = _rotate(v2, _32)
    return v0, v1, v2, v3


@compiled_helper
def _absorb(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64) -> tuple[np.uint64, ...]:
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@compiled_helper
def _finish(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, last: np.uint64) -> np.uint64:
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
    v2 ^= _FINAL
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@compiled_helper
def siphash_word(k0: np.uint64, k1: np.uint64, word: np.uint64) -> np.uint64:
    """SipHash-2-4 of one 64-bit word (its eight little-endian bytes) under the key (k0, k1); compiled."""
    v0, v1, v2, v3 = _absorb(k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3, word)
    return _finish(v0, v1, v2, v3, _EIGHT_BYTES)


@compiled_helper
def siphash_bytes(
    k0: np.uint64, k1: np.uint64, data: NDArray[np.uint8], start: int, end: int, letters: NDArray[np.uint8]
) -> np.uint64:
    """SipHash-2-4 of letters[data[start:end]] under the key (k0, k1); compiled.

    `letters`, (256,) uint8, maps each byte on the way in: the identity, or ASCII case folding.
    """
    v0, v1, v2, v3 = k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3
    word, shift = np.uint64(0), 0
    for i in range(start, end):
        word |= np.uint64(letters[data[i]]) << np.uint64(shift)
        shift += 8
        if shift == 64:
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
            word, shift = np.uint64(0), 0
    return _finish(v0, v1, v2, v3, word | np.uint64(end - start) << np.uint64(56))


def siphash_strings(
    key: tuple[np.uint64, np.uint64], data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The hash of each string of an Arrow string array's buffers, shape (n_strings,)."""
    hashes = np.empty(offsets.size - 1, dtype=np.uint64)
    _hash_strings(key[0], key[1], data, offsets, ENTIRE, hashes)
    return hashes


@compiled
def _hash_strings(
    k0: np.uint64,
    k1: np.uint64,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
) -> None:
    for i in range(hashes.size):
        hashes[i] = siphash_bytes(k0, k1, data, offsets[i], offsets[i + 1], letters)


def key_words(secret: bytes) -> tuple[np.uint64, np.uint64]:
    """The two 64-bit halves of a 16-byte SipHash key."""
    return np.uint64(int.from_bytes(secret[:8], "little")), np.uint64(int.from_bytes(secret[8:16], "little"))


def siphash_reference(secret: bytes, message: bytes) -> int:
    """SipHash-2-4 of a message under a 16-byte key, in plain Python: what the compiled ones are held to."""
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:16], "little")
    v = [k0 ^ int(_V0), k1 ^ int(_V1), k0 ^ int(_V2), k1 ^ int(_V3)]
    whole = len(message) // 8 * 8
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, whole, 8)]
    for word in [*words, int.from_bytes(message[whole:], "little") | (len(message) & 0xFF) << 56]:
        v[3] ^= word
        v = _plain_round(_plain_round(v))
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        v = _plain_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _plain_round(v: list[int]) -> list[int]:
    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> 64 - bits) & _MASK

    a, b, c, d = v
    a, c = a + b & _MASK, c + d & _MASK
    b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
    c, a = c + b & _MASK, rotate(a, 32) + d & _MASK
    return [a, rotate(b, 17) ^ c, rotate(c, 32), rotate(d, 21) ^ a]
