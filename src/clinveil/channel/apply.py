"""`Obfuscator`: apply a channel to batches of notes with keyed draws (paper A, Algorithm 1).

Every draw is SipHash-2-4 of the word's position (or of the word) under a key of its note, its
patient or the corpus. So the output depends only on the key and the notes, not on batches, workers
or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clinveil.channel.arrays import Bytes, Notes, Options, Places, Released, Tables, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.kernel import CORPUS, KEYS, LENGTH, ORDER, PATIENT, numbered, obfuscate_texts
from clinveil.channel.policy import SCOPES
from clinveil.channel.tables import SipKey, key_words, siphash_strings, string_buffers, tables_of
from clinveil.channel.tally import Tally, tally_of
from clinveil.core.compiled import helper, kernel
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.tokens import Kind, lookup_form, tokenize
from clinveil.core.types import Ints
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT

PURPOSES = (*SCOPES, "order", "length")  # purposes of subkeys, in the order of `Notes.keys`
NULL_TEXT = "null text"
BROKEN_TEXT = "not valid UTF-8"
ALIGNMENT = pa.schema(
    [(NOTE_ID, pa.string()), ("start", pa.list_(pa.int32())), ("end", pa.list_(pa.int32()))]
)


@dataclass(frozen=True)
class Obfuscated:
    """One batch of released notes.

    Attributes:
        batch: the written rows, with the columns of the input.
        tally: counts of tokens and notes by outcome.
        alignment: for the vault: one row per note with the code points [start, end) of the source
            word of each released word, in the order of `tokens.words` of the released text; None
            unless requested.
    """

    batch: pa.RecordBatch = field(repr=False)
    tally: Tally
    alignment: pa.RecordBatch | None = field(default=None, repr=False)

    def aligned_texts(self) -> Iterator[tuple[str, list[int], list[int]]]:
        """Yield each released text with starts and ends of its source words. Raises ValueError
        without alignment.
        """
        if self.alignment is None:
            raise ValueError("the notes were not aligned")
        columns = (
            self.batch.column(TEXT),
            self.alignment.column("start"),
            self.alignment.column("end"),
        )
        return zip(*(column.to_pylist() for column in columns), strict=True)


class Obfuscator:
    """Replace every word of a batch of notes by a draw from a channel; thread-safe.

    Args:
        channel: the compiled mechanism with its policy.
        key: the secret key of all draws.
        align: also return the alignment.

    Raises:
        InputError: an output is not a single word in lookup form, or background draws have no pool.
    """

    def __init__(self, channel: Channel, key: Key, *, align: bool = False) -> None:
        self.channel = channel
        policy = channel.policy
        if policy.background > 0 and not channel.speaks[channel.unknown]:
            raise InputError(
                "background draws need a pool of common words", hint="use --unknown pool"
            )
        if not channel.outputs_are_words:
            why = "an output of the channel is not a single word in lookup form"
            raise InputError(why, hint="build the channel again")
        optional = {ORDER: not policy.keeps_order, LENGTH: policy.length > 0}
        needed = [
            *np.unique(channel.row_scopes).tolist(),
            *(use for use, is_needed in optional.items() if is_needed),
        ]
        self._secrets = {
            use: [_secret(key, f"{PURPOSES[use]} {half}") for half in ("left", "right")]
            for use in needed
        }
        self._tables = tables_of(channel, _secret(key, "word"))
        marks = policy.layout == "keep", policy.layout == "sentences", policy.numbers == "mask"
        rates = float(policy.length), float(policy.background)
        self._options = Options(*marks, align, not policy.keeps_order, *rates)

    def __call__(self, batch: pa.RecordBatch) -> Obfuscated:
        """Obfuscate a batch with the columns of a corpus. Raises InputError for a null note id."""
        batch, skipped = readable(batch)
        texts = _strings(batch, TEXT)
        answers = non_ascii_words(texts, self.channel.ids, self._tables.form_key)
        keys = self._keys(batch)
        out = _obfuscate(Notes(*string_buffers(texts), keys, *answers), self._tables, self._options)
        if self._options.locate:
            out = in_order(out, np.ascontiguousarray(keys[:, ORDER]))
        text = pa.LargeStringArray.from_buffers(
            len(texts), pa.py_buffer(out.offsets), pa.py_buffer(out.data)
        )
        field = batch.schema.field(TEXT).with_type(pa.large_string())
        released = batch.set_column(batch.schema.get_field_index(TEXT), field, text)
        alignment = _alignment(batch.column(NOTE_ID), out) if self._options.align else None
        return Obfuscated(
            released, tally_of(out.counts.tolist(), batch.num_rows, skipped), alignment
        )

    def _keys(self, batch: pa.RecordBatch) -> NDArray[np.uint64]:
        """Return `Notes.keys`: keyed hashes of note and patient ids, and of an empty string for the
        corpus.
        """
        ids = _strings(batch, NOTE_ID)
        if ids.null_count:
            raise InputError("a note has no id", hint="every row needs a value in the id column")
        of = {
            PATIENT: pc.coalesce(_strings(batch, PATIENT_ID), ids),
            CORPUS: pa.array([""], pa.large_string()),
        }
        keys = np.zeros((batch.num_rows, KEYS, 2), dtype=np.uint64)
        for use, halves in self._secrets.items():
            for half, secret in enumerate(halves):
                keys[:, use, half] = siphash_strings(secret, *string_buffers(of.get(use, ids)))
        return keys


def _obfuscate(notes: Notes, tables: Tables, how: Options) -> Released:
    """Obfuscate a batch of valid UTF-8."""
    n_notes = notes.offsets.size - 1
    # Words are separated, so there are at most (bytes + notes) / 2 of them; twice as many with
    # doubling.
    most = int(notes.offsets[-1] - notes.offsets[0] + n_notes) // 2 * (2 if how.length > 0 else 1)
    n_aligned = most if how.align else 0
    n_located = most if how.locate else 0
    starts, ends = (np.empty(n_aligned, dtype=np.int32) for _ in range(2))
    firsts, lasts = (np.empty(n_located, dtype=np.int64) for _ in range(2))
    places = Places(starts, ends, firsts, lasts)
    data, offsets, aligned, counts = obfuscate_texts(notes, tables, how, places)
    return Released(data, offsets, places, aligned, counts)


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


def _alignment(ids: pa.Array, out: Released) -> pa.RecordBatch:
    places = pa.array(out.aligned.astype(np.int32))
    lists = [
        pa.ListArray.from_arrays(places, pa.array(points[: out.aligned[-1]]))
        for points in out.places[:2]
    ]
    return pa.record_batch([ids.cast(pa.string()), *lists], schema=ALIGNMENT)


_CACHED = 64  # characters of the longest piece of text with cached words


def non_ascii_words(
    texts: pa.LargeStringArray, ids: Mapping[str, int], form_key: SipKey
) -> tuple[Ints, Words64]:
    """Return rows (-1 if unknown) and keyed hashes of the non-ASCII words in order: `Notes.rows`,
    `Notes.forms`.

    Their lookup form needs Unicode normalisation and case folding, which the compiled loop does not
    have.
    """
    coded = pa.array(_forms(texts), pa.large_string()).dictionary_encode()
    rows = np.array([ids.get(form, -1) for form in coded.dictionary.to_pylist()], dtype=np.int64)
    hashes = siphash_strings(form_key, *string_buffers(coded.dictionary))
    which = coded.indices.to_numpy()
    return rows[which], hashes[which]


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


_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def in_order(out: Released, keys: Words64) -> Released:
    """Return the released notes with words and source offsets in a keyed random order.

    White space, punctuation and masks between the words keep their position.

    Args:
        out: result of the token loop with `Options.locate`. keys: (n, 2), SipHash key of each
            note's order.
    """
    order = _order(out.aligned, numbered(keys, out.aligned))
    starts, ends = (points[order] if points.size else points for points in out.places[:2])
    places = out.places._replace(starts=starts, ends=ends)
    return out._replace(data=_refilled(out.data, out.places, order), places=places)


@helper
def _shuffle(items: Ints, first: int, size: int, bits: Words64, offset: int) -> None:
    """Shuffle items[first : first + size] uniformly with bits[offset : offset + size].

    Source: Fisher and Yates; Durstenfeld, Algorithm 235 (CACM 7, 1964).
    """
    for i in range(size - 1, 0, -1):
        bound = np.uint64(i + 1)
        # The high half of a 128-bit product: a number below the bound.
        other = np.int64(
            ((bits[offset + i] >> _32) * bound + ((bits[offset + i] & _LOW) * bound >> _32)) >> _32
        )
        items[first + i], items[first + other] = items[first + other], items[first + i]


@kernel
def _order(aligned: Ints, bits: Words64) -> Ints:
    """Return the word for each position, (n_words,)."""
    order = np.arange(aligned[-1])
    for note in range(aligned.size - 1):
        _shuffle(order, aligned[note], aligned[note + 1] - aligned[note], bits, aligned[note])
    return order


@kernel
def _refilled(data: Bytes, places: Places, order: Ints) -> Bytes:
    """Return the released text with words in the given order."""
    text = np.empty_like(data)
    written = 0
    read = 0
    for slot in range(order.size):
        word = order[slot]
        for piece in ((read, places.firsts[slot]), (places.firsts[word], places.lasts[word])):
            for i in range(piece[0], piece[1]):
                text[written] = data[i]
                written += 1
        read = places.lasts[slot]
    text[written:] = data[read:]
    return text
