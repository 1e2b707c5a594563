"""Read the release back and hold it against what went in: an independent look, not the hot loop's own word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from clinveil.channel.channel import Channel
from clinveil.channel.policy import Policy
from clinveil.core.tokens import Kind, lookup_form, tokenize, word_spans, words
from clinveil.corpus.corpus import rows

Place = tuple[int, int]  # the start and the end of a word of the source


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """What the released notes hold, counted by reading them again.

    Attributes:
        notes: released notes. words: released words.
        compared: released words whose source word is known. self_replaced: those equal to it, kept words aside.
        kept: words left as they are on request.
        out_of_vocabulary: released words that are no word of the channel. below_floor: words of too few patients.
        stray: released characters that no policy allows (digits, other scripts' punctuation, controls).
        unmatched: released notes that no source note leads to, and source notes that lead to none.
        unaligned: notes whose words could not be laid beside their source's.
    """

    notes: int
    words: int
    compared: int
    self_replaced: int
    kept: int
    out_of_vocabulary: int
    below_floor: int
    stray: int
    unmatched: int
    unaligned: int


def check_output(
    entered: Iterable[pa.RecordBatch],
    crosswalk: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    channel: Channel,
    alignment: Iterable[pa.RecordBatch] = (),
) -> OutputCheck:
    """Compare released notes with the notes that entered the channel, row by row; all three are in source order.

    Args:
        entered: the notes as they entered, under source ids; some of them may not have been written.
        crosswalk: one row for each written note: source ids and released ids.
        released: the notes of the release, under released ids.
        channel: what they went through.
        alignment: a row a written note, the places of the source words; needed where words were dropped, doubled or
            put in another order.
    """
    count: Counter[str] = Counter()
    allowed = {w for w, ok in zip(channel.words, channel.eligible.tolist(), strict=True) if ok} | channel.kept
    sources, outputs = rows(entered), rows(released)
    places = (list(zip(*place, strict=True)) for place in _pairs(alignment, "start", "end"))
    for source_id, released_id in _pairs(crosswalk, "source_note_id", "note_id"):
        source = next((note.text for note in sources if note.note_id == source_id), None)
        there, place = next(outputs, None), next(places, None)
        if source is None or there is None or there.note_id != released_id:
            count["unmatched"] += 1
        else:
            _note(count, (source, there.text, place), channel, allowed)
    count["unmatched"] += sum(1 for _ in outputs)
    return OutputCheck(**{name: count[name] for name in OutputCheck.__dataclass_fields__})


def _pairs(batches: Iterable[pa.RecordBatch], one: str, other: str) -> Iterator[tuple[Any, Any]]:
    """Two columns, row by row."""
    for batch in batches:
        yield from zip(batch.column(one).to_pylist(), batch.column(other).to_pylist(), strict=True)


def _note(
    count: Counter[str], note: tuple[str, str, Sequence[Place] | None], channel: Channel, allowed: set[str]
) -> None:
    source, text, place = note
    outputs = words(text)
    count["notes"] += 1
    count["words"] += len(outputs)
    for word in outputs:
        if word not in allowed:
            count["out_of_vocabulary" if word not in channel.ids else "below_floor"] += 1
    count["stray"] += _stray(text)
    inputs = _inputs(source, len(outputs), place, channel.policy)
    if inputs is None:
        count["unaligned"] += 1
        return
    count["compared"] += len(outputs)
    for before, after in zip(inputs, outputs, strict=True):
        if before == after:
            count["kept" if before in channel.kept else "self_replaced"] += 1


def _inputs(source: str, n_outputs: int, place: Sequence[Place] | None, policy: Policy) -> list[str] | None:
    """The source word of each released one, or None where that cannot be told.

    The alignment is believed only as far as it names words of the source, each once (twice, where words are doubled).
    """
    inputs = source_words(source)
    if policy.keeps_order and not policy.length and (len(inputs) <= n_outputs or place is None):
        return inputs if len(inputs) == n_outputs else None
    if place is None or len(place) != n_outputs:
        return None
    times = Counter(place)
    if not times.keys() <= {*word_spans(source)} or max(times.values(), default=0) > (2 if policy.length else 1):
        return None
    return [lookup_form(source[start:end]) for start, end in place]


def source_words(text: str) -> list[str]:
    """The lookup form of every WORD token, empty ones too: one for each place where a word is released."""
    if text.isascii():
        return words(text)
    return [lookup_form(text[start:end]) for start, end in word_spans(text)]


_SAFE = {
    ord(c): None for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n\r!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
}


def _stray(text: str) -> int:
    rest = text.translate(_SAFE)
    return sum(t.end - t.start for t in tokenize(rest) if t.kind != Kind.WORD) if rest else 0
