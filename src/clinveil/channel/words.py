"""Texts of notes as the compiled loops read them: readable rows, and rows of non-ASCII words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import Ints, Kind, lookup_form, tokenize
from clinveil.corpus import TEXT

NULL_TEXT = "null text"
BROKEN_TEXT = "not valid UTF-8"


def large_strings(batch: pa.RecordBatch, name: str) -> pa.LargeStringArray:
    """Return a column with 64-bit offsets."""
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
