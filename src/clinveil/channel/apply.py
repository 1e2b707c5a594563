"""`WordObfuscator`: apply a channel to batches of notes with keyed draws (paper A, Algorithm 1).

Every draw is SipHash-2-4 of the word's position under a key of its note. So the output depends only
on the key and the notes, not on batches, workers or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.channel.arrays import NoteArrays, Options, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.kernel import obfuscate_texts
from clinveil.channel.tables import SipKey, key_words, siphash_strings, string_buffers, tables_of
from clinveil.channel.tally import TokenTally, tally_of
from clinveil.core import InputError, Ints, Key, Kind, lookup_form, tokenize
from clinveil.corpus import NOTE_ID, TEXT

NULL_TEXT = "null text"
BROKEN_TEXT = "not valid UTF-8"


@dataclass(frozen=True)
class ObfuscatedBatch:
    """One batch of released notes.

    Attributes:
        batch: the written rows, with the columns of the input.
        tally: counts of tokens and notes by outcome.
    """

    batch: pa.RecordBatch = field(repr=False)
    tally: TokenTally


class WordObfuscator:
    """Replace every word of a batch of notes by a draw from a channel; thread-safe.

    Args:
        channel: the channel with its policy.
        key: the secret key of all draws.

    Raises:
        InputError: an output is not a single word in lookup form, or background draws have no pool.
    """

    def __init__(self, channel: Channel, key: Key) -> None:
        self.channel = channel
        policy = channel.policy
        if policy.background > 0 and not channel.has_output[channel.unknown]:
            raise InputError(
                "background draws need a pool of common words", hint="use channel.unknown=pool"
            )
        if not channel.outputs_are_words:
            why = "an output of the channel is not a single word in lookup form"
            raise InputError(why, hint="build the channel again")
        self._secrets = [_secret(key, f"occurrence {half}") for half in ("left", "right")]
        self._tables = tables_of(channel)
        self._options = Options(
            keep_layout=policy.layout == "keep",
            end_sentences=policy.layout == "sentences",
            mask_numbers=policy.numbers == "mask",
            background=float(policy.background),
        )

    def __call__(self, batch: pa.RecordBatch) -> ObfuscatedBatch:
        """Obfuscate a batch with the columns of a corpus. Raises InputError for a null note id."""
        batch, skipped = readable(batch)
        texts = _strings(batch, TEXT)
        data, offsets = string_buffers(texts)
        rows = non_ascii_rows(texts, self.channel.ids)
        notes = NoteArrays(data=data, offsets=offsets, keys=self._keys(batch), rows=rows)
        text_bytes, ends, counts = obfuscate_texts(notes, self._tables, self._options)
        text = pa.LargeStringArray.from_buffers(
            len(texts), pa.py_buffer(ends), pa.py_buffer(text_bytes)
        )
        field = batch.schema.field(TEXT).with_type(pa.large_string())
        released = batch.set_column(batch.schema.get_field_index(TEXT), field, text)
        return ObfuscatedBatch(released, tally_of(counts.tolist(), batch.num_rows, skipped))

    def _keys(self, batch: pa.RecordBatch) -> Words64:
        """Return `NoteArrays.keys`: keyed hashes of the note ids."""
        ids = _strings(batch, NOTE_ID)
        if ids.null_count:
            raise InputError("a note has no id", hint="every row needs a value in the id column")
        data, offsets = string_buffers(ids)
        halves = [siphash_strings(secret, data, offsets) for secret in self._secrets]
        return np.stack(halves, axis=1)


def _secret(key: Key, purpose: str) -> SipKey:
    return key_words(key.subkey(f"channel {purpose}", 16))


def _strings(batch: pa.RecordBatch, name: str) -> pa.LargeStringArray:
    return batch.column(name).cast(pa.large_string())


def readable(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Counter[str]]:
    """Return the readable rows, and counts of the others by reason."""
    text = batch.column(TEXT)
    skipped: Counter[str] = Counter()
    if text.null_count:
        skipped[NULL_TEXT] = text.null_count
        batch = batch.filter(text.is_valid())
    valid = []
    try:
        batch.column(TEXT).validate(full=True)
    except pa.ArrowInvalid:
        valid = [_decodes(raw) for raw in batch.column(TEXT).cast(pa.large_binary()).to_pylist()]
    if not all(valid):
        skipped[BROKEN_TEXT] = valid.count(False)
        batch = batch.filter(pa.array(valid))
    return batch, skipped


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


_CACHED = 64  # characters of the longest piece of text with cached words


def non_ascii_rows(texts: pa.LargeStringArray, ids: Mapping[str, int]) -> Ints:
    """Return the rows (-1 if unknown) of the non-ASCII words in order: `NoteArrays.rows`.

    Their lookup form needs Unicode normalisation and case folding, which the compiled loop does not
    have.
    """
    forms = pa.array(_forms(texts), pa.large_string()).dictionary_encode()
    rows = np.array([ids.get(form, -1) for form in forms.dictionary.to_pylist()], dtype=np.int64)
    return rows[forms.indices.to_numpy()]


def _forms(texts: pa.LargeStringArray) -> Iterator[str]:
    """Yield the lookup forms of the non-ASCII words in order."""
    for text in texts.filter(pc.invert(pc.string_is_ascii(texts))).to_pylist():
        for piece in text.split():
            if not piece.isascii():
                yield from _cached_forms(piece) if len(piece) <= _CACHED else _forms_of(piece)


def _forms_of(piece: str) -> tuple[str, ...]:
    words = (piece[token.start : token.end] for token in tokenize(piece) if token.kind == Kind.WORD)
    return tuple(lookup_form(word) for word in words if not word.isascii())


_cached_forms = lru_cache(maxsize=1 << 15)(_forms_of)
