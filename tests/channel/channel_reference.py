"""The same as the token loop, slowly and readably: what its output is held to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from clinveil.channel import Channel, Layout
from clinveil.channel.tables import alias_tables
from clinveil.core import Key, Kind, lookup_form, tokenize

_V0 = 0x736F6D6570736575
_V1 = 0x646F72616E646F6D
_V2 = 0x6C7967656E657261
_V3 = 0x7465646279746573
_MASK = (1 << 64) - 1


class Piece(NamedTuple):
    """What is written of a token: the gap before it, its kind, the number of its sentence."""

    gap: str
    written: str
    kind: Kind
    sentence: int


def obfuscate_text_reference(text: str, note: str, channel: Channel, key: Key) -> str:
    """One note as `Obfuscator` releases it.

    Args:
        text: the note. note: its id.
        channel, key: as for `Obfuscator`.
    """
    return _join(list(_pieces(text, note, channel, key)), channel.policy.layout)


def _secret(key: Key, note: str) -> bytes:
    halves = (key.subkey(f"channel occurrence {half}", 16) for half in ("left", "right"))
    return b"".join(siphash_reference(half, note.encode()).to_bytes(8, "little") for half in halves)


def _number(secret: bytes, number: int) -> int:
    return siphash_reference(secret, number.to_bytes(8, "little"))


def _pieces(text: str, note: str, channel: Channel, key: Key) -> Iterator[Piece]:
    secret = _secret(key, note)
    alias = alias_tables(channel.indptr, channel.indices, channel.probabilities)
    policy = channel.policy
    gap = ""
    position = 0
    sentence = 0
    before = ""
    is_open = False
    for token in tokenize(text):
        raw = text[token.start : token.end]
        written = []
        if token.kind == Kind.SPACE:
            breaks = len((raw + "x").splitlines()) > 1
            gap = "\n" if "\n" in gap or breaks else " "
            ends = before in (".", "!", "?")
            sentence += breaks or ends
            if policy.layout == "sentences" and is_open and (ends or raw.count("\n") > 1):
                yield Piece("", ".", Kind.PUNCT, sentence)
                is_open = False
        elif token.kind == Kind.NUMBER and policy.numbers == "mask":
            written = ["#" * len(raw)]
        elif token.kind == Kind.PUNCT and policy.layout == "keep" and raw.isascii():
            written = [raw]
        elif token.kind == Kind.WORD:
            row = channel.ids.get(lookup_form(raw), channel.unknown)
            drawn = _mixed(channel, alias, row, secret, position)
            written = [drawn] if drawn else []
            position += 1
        before = raw
        for one in written:
            yield Piece(gap, one, token.kind, sentence)
            gap = ""
            is_open = True
    if policy.layout == "sentences" and is_open:
        yield Piece("", ".", Kind.PUNCT, sentence)


_COIN = 0x9E3779B97F4A7C15
_BACKGROUND = 0xC2B2AE3D27D4EB4F


def _mixed(channel: Channel, alias, row: int, secret: bytes, what: int) -> str:
    own = draw_reference(channel, alias, row, _number(secret, what))
    known = row != channel.unknown and channel.words[row] not in channel.kept
    if not own or not known or _unit(_number(secret, what ^ _COIN)) >= channel.policy.background:
        return own
    drawn = draw_reference(channel, alias, channel.unknown, _number(secret, what ^ _BACKGROUND))
    return drawn if drawn and drawn != channel.words[row] else own


def _unit(bits: int) -> float:
    return (bits >> 11) * 2.0**-53


def draw_reference(
    channel: Channel, alias: tuple[np.ndarray, np.ndarray], row: int, bits: int
) -> str:
    """The word that 64 random bits draw from a row; "" if the row is empty."""
    outputs, _ = channel.row(row)
    if not len(outputs):
        return ""
    entry, rest = divmod(bits * len(outputs), 1 << 64)
    place = int(channel.indptr[row]) + entry
    limits, others = alias
    return channel.words[outputs[entry] if rest < int(limits[place]) else others[place]]


def _join(released: list[Piece], layout: Layout) -> str:
    text = ""
    last = None
    for gap, written, kind, *_ in released:
        glued = not gap and kind == last and kind != Kind.PUNCT
        spaced = layout == "plain" or (layout == "sentences" and kind != Kind.PUNCT)
        between = " " if spaced or glued else gap
        text += written if last is None else between + written
        last = kind
    return text


@cache
def siphash_reference(secret: bytes, message: bytes) -> int:
    """SipHash-2-4 of a message under a 16-byte key, in plain Python."""
    k0 = int.from_bytes(secret[:8], "little")
    k1 = int.from_bytes(secret[8:16], "little")
    v = [k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3]
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
    a = a + b & _MASK
    c = c + d & _MASK
    b = rotate(b, 13) ^ a
    d = rotate(d, 16) ^ c
    c = c + b & _MASK
    a = rotate(a, 32) + d & _MASK
    return [a, rotate(b, 17) ^ c, rotate(c, 32), rotate(d, 21) ^ a]
