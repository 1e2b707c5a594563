"""The same as the hot loop, slowly and readably: what its output is held to in tests."""

from __future__ import annotations

from clinveil.channel.channel import Channel, Layout
from clinveil.channel.draws import Draws
from clinveil.channel.siphash import siphash_reference
from clinveil.core.keys import Key
from clinveil.core.tokens import Kind, lookup_form, tokenize


def obfuscate_text_reference(text: str, scope: str, channel: Channel, table: Draws, key: Key) -> str:
    """One note as `Obfuscator` releases it.

    Args:
        text: the note.
        scope: its note id, or for memo "patient" its patient id.
        channel, table: the channel and `draws(channel)`.
        key: as for `Obfuscator`.
    """
    memo, layout, numbers = channel.policy.memo, channel.policy.layout, channel.policy.numbers
    halves = (key.subkey(f"channel {memo} {half}", 16) for half in ("left", "right"))
    secret = b"".join(siphash_reference(half, scope.encode()).to_bytes(8, "little") for half in halves)
    form_key = key.subkey("channel word", 16)
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
            written = draw_reference(channel, table, channel.ids.get(form, channel.unknown), bits)
        if written:
            released.append((gap, written, token.kind))
            gap = ""
    return _join(released, layout)


def draw_reference(channel: Channel, table: Draws, row: int, bits: int) -> str:
    """The word that 64 random bits draw from a row; "" if the row is empty."""
    outputs, _ = channel.row(row)
    if not len(outputs):
        return ""
    entry, rest = divmod(bits * len(outputs), 1 << 64)
    place = int(table.patterns[row]) + entry
    return channel.words[outputs[entry if rest < int(table.limits[place]) else int(table.others[place])]]


def _join(released: list[tuple[str, str, Kind]], layout: Layout) -> str:
    text, last = "", None
    for gap, written, kind in released:
        glued = not gap and kind == last and kind != Kind.PUNCT
        between = " " if layout == "plain" or glued else gap
        text += written if last is None else between + written
        last = kind
    return text
