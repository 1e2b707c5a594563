"""Read the release back and compare it with its input, independently of the code that wrote it."""

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

from clinveil.channel import PLAIN, Channel, Layout, Numbers, WritingPolicy
from clinveil.core import Kind, lookup_form, tokenize, word_spans, words
from clinveil.corpus import NOTE_ID, TEXT
from clinveil.scale import Map, serial

PIECE = 2000  # notes per task
SIDES = ["source", "output"]


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """Counts from reading the released notes back.

    Attributes:
        notes: released notes. words: released words.
        compared: released words with a known source word. self_replaced: those equal to it, without
            kept words.
        kept: words left unchanged on request.
        out_of_vocabulary: released words not in the channel. below_floor: words of too few
            patients.
        stray: released characters that the policy does not allow (digits, foreign punctuation,
            controls).
        unmatched: released notes without a source note, and written source notes without a released
            one.
        unaligned: notes with words that could not be aligned with the source.
        outputs: frequency of each released word.
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
        """Return a JSON-ready dictionary for `of`."""
        return {f.name: getattr(self, f.name) for f in fields(self)[:-1]} | {
            "outputs": dict(self.outputs)
        }

    @classmethod
    def of(
        cls, counts: Mapping[str, int], outputs: Mapping[str, int] = MappingProxyType({})
    ) -> OutputCheck:
        """Return the check with these counts by name; missing ones are 0."""
        return cls(
            notes=counts.get("notes", 0),
            words=counts.get("words", 0),
            compared=counts.get("compared", 0),
            self_replaced=counts.get("self_replaced", 0),
            kept=counts.get("kept", 0),
            out_of_vocabulary=counts.get("out_of_vocabulary", 0),
            below_floor=counts.get("below_floor", 0),
            stray=counts.get("stray", 0),
            unmatched=counts.get("unmatched", 0),
            unaligned=counts.get("unaligned", 0),
            outputs=Counter(outputs),
        )


NOTHING = OutputCheck.of({})


@dataclass(frozen=True)
class Allowed:
    """The allowed released words, sent to the checking processes instead of the channel.

    Attributes:
        known: words of the channel. written: possible outputs. kept: words left unchanged.
        dropped: known words without an output. drops_unknown: whether words outside the channel
            are dropped. policy: how notes are written.
    """

    known: frozenset[str] = field(repr=False)
    written: frozenset[str] = field(repr=False)
    kept: frozenset[str] = field(repr=False)
    dropped: frozenset[str] = field(default=frozenset(), repr=False)
    drops_unknown: bool = False
    policy: WritingPolicy = PLAIN

    @classmethod
    def by(cls, channel: Channel) -> Allowed:
        """Return the words that a channel allows."""
        written = {
            w for w, ok in zip(channel.words, channel.eligible.tolist(), strict=True) if ok
        } | channel.kept
        lengths = np.diff(channel.indptr)
        return cls(
            frozenset(channel.words),
            frozenset(written),
            channel.kept,
            dropped=frozenset(
                channel.words[row] for row in np.flatnonzero(lengths[:-1] == 0).tolist()
            ),
            drops_unknown=bool(lengths[-1] == 0),
            policy=channel.policy,
        )

    def is_written(self, word: str) -> bool:
        """Return whether a source word has a released word."""
        return word not in self.dropped and not (self.drops_unknown and word not in self.known)


def check_output(
    entered: Iterable[pa.RecordBatch],
    crosswalk: Iterable[pa.RecordBatch],
    released: Iterable[pa.RecordBatch],
    channel: Channel | None,
    executor: Map = serial,
) -> OutputCheck:
    """Compare released notes with the notes that entered the channel, row by row; all streams are
    in source order.

    Args:
        entered: notes under source ids; some may not have been written.
        crosswalk: one row per written note: source ids and released ids.
        released: notes of the release, under released ids.
        channel: the channel that they were drawn from; None for notes that should be copies of
            those that entered.
        executor: map for the batches; does not change the counts.
    """
    sources = _ById(entered, TEXT)
    outputs = _ById(released, TEXT)

    def pieces() -> Iterator[
        pa.RecordBatch
    ]:  # of the crosswalk, with the columns `SIDES`; missing values are null
        for batch in crosswalk:
            for start in range(0, batch.num_rows, PIECE):
                piece = batch.slice(start, PIECE)
                ids, new = (
                    piece.column(name).to_pylist() for name in ("source_note_id", "note_id")
                )
                yield pa.record_batch([*sources.find(ids), *outputs.find(new)], names=SIDES)

    found = sum(
        executor(partial(checked, Allowed.by(channel) if channel else None), pieces()), NOTHING
    )
    return replace(found, unmatched=found.unmatched + outputs.passed + outputs.rest())


class _ById:
    """Rows of a stream, looked up by note id in stream order.

    Attributes:
        passed: skipped rows with a text.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], *columns: str) -> None:
        self._batches = iter(batches)
        self._names = columns
        self.passed = 0
        self._batch: pa.RecordBatch | None = None
        self._ids: list[str] = []
        self._at = 0

    def find(self, ids: Sequence[str]) -> list[pa.Array]:
        """Return the columns for these ids, null from the first id that does not follow."""
        pieces: list[list[pa.Array]] = [[] for _ in self._names]
        wanted = iter(ids)
        done = 0
        note_id = next(wanted, None)
        while note_id is not None and self._fill():
            assert self._batch is not None
            taken = []
            while note_id is not None and self._at < len(self._ids):
                if self._ids[self._at] == note_id:
                    taken.append(self._at)
                    note_id = next(wanted, None)
                else:
                    self.passed += self._batch.column(self._names[0])[self._at].is_valid
                self._at += 1
            done += len(taken)
            for piece, name in zip(pieces, self._names, strict=True):
                piece.append(self._batch.column(name).take(pa.array(taken, pa.int64())))
        missing = len(ids) - done
        return [
            pa.concat_arrays([*p, pa.nulls(missing, p[0].type if p else pa.null())]) for p in pieces
        ]

    def _fill(self) -> bool:
        """Advance to a batch with rows left; return False at the end."""
        while self._batch is None or self._at >= len(self._ids):
            self._batch = next(self._batches, None)
            if self._batch is None:
                self._ids = []
                self._at = 0
                return False
            self._ids = self._batch.column(NOTE_ID).to_pylist()
            self._at = 0
        return True

    def rest(self) -> int:
        """Return the number of remaining rows with a text."""
        left = 0
        while self._fill():
            assert self._batch is not None
            left += sum(one.is_valid for one in self._batch.column(self._names[0]).slice(self._at))
            self._at = len(self._ids)
        return left


def checked(allowed: Allowed | None, sides: pa.RecordBatch) -> OutputCheck:
    """Check notes with the columns `SIDES`; notes missing on one side are unmatched.

    Without allowed words, a note with another text (ignoring white space) counts as `unaligned`.
    """
    count = Counter[str]()
    outputs = Counter[str]()
    texts = (sides.column(name).to_pylist() for name in SIDES)
    for source, output in zip(*texts, strict=True):
        if source is None or output is None:
            count["unmatched"] += 1
        else:
            _note(count, outputs, source, output, allowed)
    return OutputCheck.of(count, outputs)


def _note(
    count: Counter[str],
    seen: Counter[str],
    source: str,
    text: str,
    allowed: Allowed | None,
) -> None:
    outputs = words(text)
    seen.update(outputs)
    count["notes"] += 1
    count["words"] += len(outputs)
    if allowed is None:
        count["unaligned"] += source.split() != text.split()
        return
    if strange := set(outputs) - allowed.written:
        for word in outputs:
            if word in strange:
                count["below_floor" if word in allowed.known else "out_of_vocabulary"] += 1
    # Characters that belong neither to a word nor to the layout.
    rest = text.translate(_allowed_marks(allowed.policy.layout, allowed.policy.numbers))
    count["stray"] += (
        sum(t.end - t.start for t in tokenize(rest) if t.kind != Kind.WORD) if rest else 0
    )
    inputs = list(filter(allowed.is_written, source_words(source)))
    if len(inputs) != len(outputs):
        count["unaligned"] += 1
        return
    count["compared"] += len(outputs)
    for before in compress(inputs, map(eq, inputs, outputs)):
        count["kept" if before in allowed.kept else "self_replaced"] += 1


def source_words(text: str) -> list[str]:
    """Return the lookup form of every WORD token, including empty ones."""
    if text.isascii():
        return words(text)
    return [lookup_form(text[start:end]) for start, end in word_spans(text)]


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
_MARKS = {"plain": "", "sentences": ".", "keep": "\n\r!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~#"}


@cache
def _allowed_marks(layout: Layout, numbers: Numbers) -> dict[int, None]:
    """Return the characters that are always allowed, for `str.translate`."""
    return {ord(c): None for c in _LETTERS + _MARKS[layout] + ("#" if numbers == "mask" else "")}
