"""The same as the token loop, slowly and readably: what its output is held to."""

from __future__ import annotations

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.policy import Layout
from clinveil.channel.tables import alias_tables
from clinveil.core.keys import Key
from clinveil.core.tokens import Kind, lookup_form, tokenize

_V0, _V1, _V2, _V3 = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573
_MASK = (1 << 64) - 1


def obfuscate_text_reference(text: str, scope: str, channel: Channel, key: Key) -> str:
    """One note as `Obfuscator` releases it.

    Args:
        text: the note.
        scope: its note id, or for memo "patient" its patient id.
        channel, key: as for `Obfuscator`.
    """
    memo, layout, numbers = channel.policy.memo, channel.policy.layout, channel.policy.numbers
    halves = (key.subkey(f"channel {memo} {half}", 16) for half in ("left", "right"))
    secret = b"".join(siphash_reference(half, scope.encode()).to_bytes(8, "little") for half in halves)
    form_key = key.subkey("channel word", 16)
    alias = alias_tables(channel)
    released: list[tuple[str, str, Kind]] = []  # the gap before it, what is written, its kind
    gap, position = "", 0
    for token in tokenize(text):
        raw, written = text[token.start : token.end], ""
        if token.kind == Kind.SPACE:
            gap = "\n" if "\n" in gap + raw or len((raw + "x").splitlines()) > 1 else " "
        elif token.kind == Kind.NUMBER and numbers == "mask":
            written = "#" * len(raw)
        elif token.kind == Kind.PUNCT and layout == "keep" and raw.isascii():
            written = raw
        elif token.kind == Kind.WORD:
            form = lookup_form(raw)
            what = position if memo == "occurrence" else siphash_reference(form_key, form.encode())
            position += 1
            bits = siphash_reference(secret, what.to_bytes(8, "little"))
            written = draw_reference(channel, alias, channel.ids.get(form, channel.unknown), bits)
        if written:
            released.append((gap, written, token.kind))
            gap = ""
    return _join(released, layout)


def draw_reference(channel: Channel, alias: tuple[np.ndarray, np.ndarray], row: int, bits: int) -> str:
    """The word that 64 random bits draw from a row; "" if the row is empty."""
    outputs, _ = channel.row(row)
    if not len(outputs):
        return ""
    entry, rest = divmod(bits * len(outputs), 1 << 64)
    place = int(channel.indptr[row]) + entry
    limits, others = alias
    return channel.words[outputs[entry] if rest < int(limits[place]) else others[place]]


def _join(released: list[tuple[str, str, Kind]], layout: Layout) -> str:
    text, last = "", None
    for gap, written, kind in released:
        glued = not gap and kind == last and kind != Kind.PUNCT
        between = " " if layout == "plain" or glued else gap
        text += written if last is None else between + written
        last = kind
    return text


def siphash_reference(secret: bytes, message: bytes) -> int:
    """SipHash-2-4 of a message under a 16-byte key, in plain Python."""
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:16], "little")
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
    a, c = a + b & _MASK, c + d & _MASK
    b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
    c, a = c + b & _MASK, rotate(a, 32) + d & _MASK
    return [a, rotate(b, 17) ^ c, rotate(c, 32), rotate(d, 21) ^ a]
