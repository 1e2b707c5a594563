"""Words that are not plain ASCII: found in a batch before the hot loop runs, and looked up in Python, once each.

Their lookup form needs Unicode's normalisation and case folding, which Python has. The hot loop meets them in the
same order and takes the answers one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled
from clinveil.channel.scan import alphabet, code_point, readonly, word_end
from clinveil.channel.siphash import siphash_strings
from clinveil.channel.vocabulary import string_buffers
from clinveil.core.tokens import Kind, lookup_form

_WORD = int(Kind.WORD)


class Foreign(NamedTuple):
    """The answers for a batch's non-ASCII words, in the order of the text.

    Attributes:
        rows: (n_occurrences,) int32 rows of the vocabulary, -1 where unknown.
        forms: (n_occurrences,) uint64 keyed hashes of the lookup forms.
    """

    rows: NDArray[np.int32]
    forms: NDArray[np.uint64]


def foreign_words(texts: pa.LargeStringArray, ids: Mapping[str, int], form_key: tuple[np.uint64, np.uint64]) -> Foreign:
    """Look up the non-ASCII words of a batch of texts without nulls, valid UTF-8."""
    is_ascii = pc.string_is_ascii(texts)
    if pc.all(is_ascii, min_count=0).as_py():
        return _answers(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint64))
    data, offsets = string_buffers(texts.filter(pc.invert(is_ascii)))
    raw = _occurrences(data, offsets).dictionary_encode()
    forms = [lookup_form(word.decode()) for word in raw.dictionary.to_pylist()]
    rows = np.array([ids.get(form, -1) for form in forms], dtype=np.int32)
    hashes = siphash_strings(form_key, *string_buffers(pa.array(forms, type=pa.large_string())))
    which = raw.indices.to_numpy()
    return _answers(rows[which], hashes[which])


def _answers(rows: NDArray[np.int32], forms: NDArray[np.uint64]) -> Foreign:
    return Foreign(readonly(rows), readonly(forms))


def _occurrences(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pa.LargeBinaryArray:
    """The bytes of every non-ASCII word, in order."""
    bound = int(np.count_nonzero(data[offsets[0] : offsets[-1]] >= 0x80))
    starts, ends = np.empty(bound, dtype=np.int64), np.empty(bound, dtype=np.int64)
    found = _scan(data, offsets, *alphabet(), starts, ends)
    places = np.zeros(found + 1, dtype=np.int64)
    np.cumsum(ends[:found] - starts[:found], out=places[1:])
    letters = np.empty(places[-1], dtype=np.uint8)
    _copy(data, starts, places, letters)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), found, [None, pa.py_buffer(places), pa.py_buffer(letters)]
    )


@compiled
def _copy(
    data: NDArray[np.uint8], starts: NDArray[np.int64], places: NDArray[np.int64], letters: NDArray[np.uint8]
) -> None:
    for i in range(places.size - 1):
        for j in range(places[i + 1] - places[i]):
            letters[places[i] + j] = data[starts[i] + j]


@compiled
def _scan(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    lower: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Find the byte starts and ends of the non-ASCII words, in order, and return how many there are."""
    found = 0
    for note in range(offsets.size - 1):
        i, border, end = offsets[note], offsets[note], offsets[note + 1]
        while i < end:
            if data[i] < 0x80:
                i += 1
                continue
            start = i
            while start > border and lower[data[start - 1]]:
                start -= 1
            code, width = code_point(data, i)
            border = i + width
            if start < i or kinds[code] == _WORD:
                word, _, is_ascii, _, _, _ = word_end(data, start, end, kinds, lower)
                if not is_ascii:
                    starts[found], ends[found] = start, word
                    found += 1
                    border = word
            i = border
    return found
