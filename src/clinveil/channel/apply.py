"""`WordObfuscator`: apply a channel to batches of notes with keyed draws (paper A, Algorithm 1).

Every draw is SipHash-2-4 of the word's position under a key of its note. So the output depends only
on the key and the notes, not on batches, workers or order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clinveil.channel.arrays import NoteArrays, NoteWords, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.kernel import read_words, write_texts
from clinveil.channel.mechanism import mechanism_of
from clinveil.channel.tables import SipKey, key_words, options_of, siphash_strings, string_buffers
from clinveil.channel.tally import TokenTally, tally_of
from clinveil.channel.words import large_strings, non_ascii_rows, readable
from clinveil.core import InputError, Key
from clinveil.corpus import NOTE_ID, TEXT


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
        self._mechanism = mechanism_of(channel)
        self._tables = self._mechanism.tables
        self._options = options_of(policy)

    def __call__(self, batch: pa.RecordBatch) -> ObfuscatedBatch:
        """Obfuscate a batch with the columns of a corpus. Raises InputError for a null note id."""
        batch, skipped = readable(batch)
        texts = large_strings(batch, TEXT)
        data, offsets = string_buffers(texts)
        rows = non_ascii_rows(texts, self.channel.ids)
        notes = NoteArrays(data=data, offsets=offsets, rows=rows)
        read, stops, first = read_words(notes, self._tables, self._options)
        words = NoteWords(rows=read, stops=stops, offsets=first, drawn=read)
        labels = self._mechanism.labels_of(batch)
        words = words._replace(drawn=self._mechanism.draw(words, self._keys(batch), labels))
        text_bytes, ends, counts = write_texts(notes, words, self._tables, self._options)
        text = pa.LargeStringArray.from_buffers(
            len(texts), pa.py_buffer(ends), pa.py_buffer(text_bytes)
        )
        field = batch.schema.field(TEXT).with_type(pa.large_string())
        released = batch.set_column(batch.schema.get_field_index(TEXT), field, text)
        return ObfuscatedBatch(released, tally_of(counts.tolist(), batch.num_rows, skipped))

    def _keys(self, batch: pa.RecordBatch) -> Words64:
        """Return a SipHash key per note, (n, 2): keyed hashes of the note ids."""
        ids = large_strings(batch, NOTE_ID)
        if ids.null_count:
            raise InputError("a note has no id", hint="every row needs a value in the id column")
        data, offsets = string_buffers(ids)
        halves = [siphash_strings(secret, data, offsets) for secret in self._secrets]
        return np.stack(halves, axis=1)


def _secret(key: Key, purpose: str) -> SipKey:
    return key_words(key.subkey(f"channel {purpose}", 16))
