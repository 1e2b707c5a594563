"""Read the release back and hold it against what went in: an independent look, not the hot loop's own word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import compress
from operator import eq
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.channel.channel import Channel
from clinveil.channel.policy import PLAIN, Layout, Numbers, Policy
from clinveil.core.tokens import Kind, lookup_form, tokenize, word_spans, words
from clinveil.core.types import Ints
from clinveil.corpus.corpus import NOTE_ID, TEXT
from clinveil.scale import Map, serial

PIECE = 2000  # notes that are checked at once
SIDES = ["source", "output", "start", "end"]


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
        unaligned: notes whose words could not be aligned with their source's.
        outputs: how often each released word occurs.
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
    outputs: Counter[str] = field(default_factory=Counter, repr=False)

    def __add__(self, other: OutputCheck) -> OutputCheck:
        return OutputCheck(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary, which `of` reads."""
        return {f.name: getattr(self, f.name) for f in fields(self)[:-1]} | {"outputs": dict(self.outputs)}

    @classmethod
    def of(cls, counts: Mapping[str, int], outputs: Mapping[str, int] = MappingProxyType({})) -> OutputCheck:
        """The counts by name; those that are not there are 0."""
        return cls(**{f.name: counts.get(f.name, 0) for f in fields(cls)[:-1]}, outputs=Counter(outputs))


NOTHING = OutputCheck.of({})


@dataclass(frozen=True)
class Allowed:
    """What a released word may be, without the channel's table: it is sent to whoever reads.

    Attributes:
        known: words of the channel. written: those that may come out. kept: those left as they are.
        policy: how notes are written.
    """

    known: frozenset[str] = field(repr=False)
    written: frozenset[str] = field(repr=False)
    kept: frozenset[str] = field(repr=False)
    policy: Policy = PLAIN

    @classmethod
    def by(cls, channel: Channel) -> Allowed:
        """What a channel allows."""
        written = {w for w, ok in zip(channel.words, channel.eligible.tolist(), strict=True) if ok} | channel.kept
        return cls(frozenset(channel.words), frozenset(written), channel.kept, channel.policy)


def check_output(
    entered: Iterable[pa.RecordBatch],
    crosswalk: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    channel: Channel,
    alignment: Iterable[pa.RecordBatch] = (),
    over: Map = serial,
) -> OutputCheck:
    """Compare released notes with the notes that entered the channel, row by row; all three are in source order.

    Args:
        entered: the notes as they entered, under source ids; some of them may not have been written.
        crosswalk: one row for each written note: source ids and released ids.
        released: the notes of the release, under released ids.
        channel: what they went through.
        alignment: a row a written note, the places of the source words; needed where words were dropped, doubled or
            put in another order.
        over: who reads; the counts are the same for any.
    """
    outputs = _ById(released, TEXT)
    pieces = _side_by_side(_ById(entered, TEXT), crosswalk, outputs, _ById(alignment, "start", "end"))
    found = sum(over(partial(checked, Allowed.by(channel)), pieces), NOTHING)
    return replace(found, unmatched=found.unmatched + outputs.passed + outputs.rest())


def check_copies(
    entered: Iterable[pa.RecordBatch], crosswalk: Iterable[pa.RecordBatch], released: Iterable[pa.RecordBatch]
) -> OutputCheck:
    """Compare released notes with the notes that they should be copies of; arguments as `check_output`.

    A note whose text differs, white space aside, is `unaligned`.
    """
    outputs, count, seen = _ById(released, TEXT), Counter[str](), Counter[str]()
    for sides in _side_by_side(_ById(entered, TEXT), crosswalk, outputs, _ById((), "start", "end")):
        for source, text in zip(*(sides.column(name).to_pylist() for name in SIDES[:2]), strict=True):
            if source is None or text is None:
                count["unmatched"] += 1
                continue
            output = words(text)
            count.update(notes=1, words=len(output), unaligned=source.split() != text.split())
            seen.update(output)
    count["unmatched"] += outputs.passed + outputs.rest()
    return OutputCheck.of(count, seen)


def _side_by_side(
    sources: _ById, crosswalk: Iterable[pa.RecordBatch], outputs: _ById, places: _ById
) -> Iterator[pa.RecordBatch]:
    """The notes that the crosswalk names, a piece at a time: columns of `SIDES`, null where something is not there."""
    for batch in crosswalk:
        for at in range(0, batch.num_rows, PIECE):
            piece = batch.slice(at, PIECE)
            ids, new = (piece.column(name).to_pylist() for name in ("source_note_id", "note_id"))
            yield pa.record_batch([*sources.find(ids), *outputs.find(new), *places.find(ids)], names=SIDES)


class _ById:
    """Rows of a stream, found by note id in the order in which they come.

    Attributes:
        passed: rows with a text that were not asked for.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], *columns: str) -> None:
        self._batches, self._names, self.passed = iter(batches), columns, 0
        self._batch: pa.RecordBatch | None = None
        self._ids: list[str] = []
        self._at = 0

    def find(self, ids: Sequence[str]) -> list[pa.Array]:
        """The columns for these ids, null from the first on that does not come any more."""
        pieces: list[list[pa.Array]] = [[] for _ in self._names]
        wanted, done = iter(ids), 0
        one = next(wanted, None)
        while one is not None and self._fill():
            assert self._batch is not None
            taken = []
            while one is not None and self._at < len(self._ids):
                if self._ids[self._at] == one:
                    taken.append(self._at)
                    one = next(wanted, None)
                else:
                    self.passed += self._batch.column(self._names[0])[self._at].is_valid
                self._at += 1
            done += len(taken)
            for piece, name in zip(pieces, self._names, strict=True):
                piece.append(self._batch.column(name).take(pa.array(taken, pa.int64())))
        return [_filled(piece, len(ids) - done) for piece in pieces]

    def _fill(self) -> bool:
        """Go on to a batch with rows left; False at the end."""
        while self._batch is None or self._at >= len(self._ids):
            self._batch = next(self._batches, None)
            if self._batch is None:
                self._ids, self._at = [], 0
                return False
            self._ids, self._at = self._batch.column(NOTE_ID).to_pylist(), 0
        return True

    def rest(self) -> int:
        """How many rows with a text are left."""
        left = 0
        while self._fill():
            assert self._batch is not None
            left += sum(one.is_valid for one in self._batch.column(self._names[0]).slice(self._at))
            self._at = len(self._ids)
        return left


def _filled(pieces: list[pa.Array], missing: int) -> pa.Array:
    kind = pieces[0].type if pieces else pa.null()
    return pa.concat_arrays([*pieces, pa.nulls(missing, kind)])


def checked(allowed: Allowed, sides: pa.RecordBatch) -> OutputCheck:
    """Check some notes, in the columns of `SIDES`; what is missing on a side is unmatched."""
    count, outputs = Counter[str](), Counter[str]()
    texts = (sides.column(name).to_pylist() for name in SIDES[:2])
    places = zip(*(_lists(sides.column(name)) for name in SIDES[2:]), strict=True)
    for source, output, (start, end) in zip(*texts, places, strict=True):
        if source is None or output is None:
            count["unmatched"] += 1
        else:
            place = None if start is None or end is None else np.stack([start, end], axis=1)
            _note(count, outputs, (source, output, place), allowed)
    return OutputCheck.of(count, outputs)


def _lists(column: pa.Array) -> Iterator[Ints | None]:
    """The numbers of each row of a column of lists."""
    if pa.types.is_null(column.type):
        return iter([None] * len(column))
    flat, ends = column.flatten().to_numpy(), np.cumsum(pc.fill_null(pc.list_value_length(column), 0).to_numpy())
    parts = np.split(flat.astype(np.int64), ends[:-1]) if len(column) else []
    return (part if there else None for part, there in zip(parts, column.is_valid().to_pylist(), strict=True))


def _note(count: Counter[str], seen: Counter[str], note: tuple[str, str, Ints | None], allowed: Allowed) -> None:
    source, text, place = note
    outputs = words(text)
    seen.update(outputs)
    count["notes"] += 1
    count["words"] += len(outputs)
    if strange := set(outputs) - allowed.written:
        for word in outputs:
            if word in strange:
                count["below_floor" if word in allowed.known else "out_of_vocabulary"] += 1
    count["stray"] += _stray(text, allowed.policy)
    inputs = _inputs(source, len(outputs), place, allowed.policy)
    if inputs is None:
        count["unaligned"] += 1
        return
    count["compared"] += len(outputs)
    for before in compress(inputs, map(eq, inputs, outputs)):
        count["kept" if before in allowed.kept else "self_replaced"] += 1


def _inputs(source: str, n_outputs: int, place: Ints | None, policy: Policy) -> list[str] | None:
    """The source word of each released one, or None where that cannot be told.

    The alignment is believed only as far as it names words of the source, each once (twice, where words are doubled).
    """
    inputs = source_words(source)
    if policy.keeps_order and not policy.length and (len(inputs) <= n_outputs or place is None):
        return inputs if len(inputs) == n_outputs else None
    if place is None or len(place) != n_outputs:
        return None
    spans = np.array([*word_spans(source)], dtype=np.int64).reshape(-1, 2)
    if not n_outputs or not len(spans):
        return None if n_outputs else []
    at = np.minimum(np.searchsorted(spans[:, 0], place[:, 0]), len(spans) - 1)
    if (spans[at] != place).any() or np.bincount(at).max() > (2 if policy.length else 1):
        return None
    return [inputs[i] for i in at.tolist()]


def source_words(text: str) -> list[str]:
    """The lookup form of every WORD token, empty ones too: one for each place where a word is released."""
    if text.isascii():
        return words(text)
    return [lookup_form(text[start:end]) for start, end in word_spans(text)]


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
_MARKS = {"plain": "", "sentences": ".", "keep": "\n\r!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~#"}


@cache
def _allowed_marks(layout: Layout, numbers: Numbers) -> dict[int, None]:
    """The characters that need no closer look, for `str.translate`."""
    return {ord(c): None for c in _LETTERS + _MARKS[layout] + ("#" if numbers == "mask" else "")}


def _stray(text: str, policy: Policy) -> int:
    """Characters that are neither of a word nor written by the layout."""
    rest = text.translate(_allowed_marks(policy.layout, policy.numbers))
    return sum(t.end - t.start for t in tokenize(rest) if t.kind != Kind.WORD) if rest else 0
