"""`Mechanism`: draws each released word, and gives its probability for every candidate source word.

A word is drawn from (key, note, position, words written before in that note). An attacker with the
mechanism needs only `likelihood`: for a released note, P(y_t | candidate, words written before) for
all candidates. `mechanism_of` returns the mechanism of a channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from clinveil.channel.arrays import ChannelTables, NoteArrays, NoteWords, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.context import context_tables, label_rows, label_values
from clinveil.channel.draws import draw_in_context, draw_words, likelihoods_in_context
from clinveil.channel.kernel import read_words
from clinveil.channel.policy import WritingPolicy
from clinveil.channel.tables import options_of, string_buffers, tables_of
from clinveil.channel.words import non_ascii_rows
from clinveil.core import Doubles, Ints, Mask, SmallInts
from clinveil.lm import NONE


@dataclass(frozen=True, eq=False)
class ReleasedNote:
    """What a recipient reads of one note.

    Attributes:
        outputs: (n,) rows of the released words. stops: (n,) whether a sentence ends before the
            word. label: as in `Mechanism.labels_of`.
    """

    outputs: Ints = field(repr=False)
    stops: Mask = field(repr=False)
    label: int = NONE


@dataclass(frozen=True, eq=False)
class NoteLikelihood:
    """P(y_t | x, words written before) of each released word of a note, for every source word x.

    Attributes:
        starts: (n + 1,) first entry of each released word. rows, chances: (n_entries,) the words
            with y_t among their own outputs, ascending, and their probabilities.
        others: (n,) the probability for each other word of the vocabulary. unknown: (n,) for a word
            outside the vocabulary.
    """

    starts: Ints = field(repr=False)
    rows: Ints = field(repr=False)
    chances: Doubles = field(repr=False)
    others: Doubles = field(repr=False)
    unknown: Doubles = field(repr=False)

    def at(self, places: Ints) -> NoteLikelihood:
        """Return the probabilities of some of the released words, by their places."""
        begin, entries = _entries(self.starts, places)
        return NoteLikelihood(
            begin,
            self.rows[entries],
            self.chances[entries],
            self.others[places],
            self.unknown[places],
        )


class Mechanism(Protocol):
    """How words are replaced."""

    @property
    def tables(self) -> ChannelTables:
        """Tables of the channel."""

    def labels_of(self, batch: pa.RecordBatch) -> Ints:
        """Return a number for the label of each note, -1 for none, (n_notes,)."""

    def draw(self, words: NoteWords, keys: Words64, labels: Ints) -> SmallInts:
        """Return the output of each word, -1 for a word that is not written, (n_words,)."""

    def likelihood(self, note: ReleasedNote) -> NoteLikelihood:
        """Return the probability of each released word for every candidate."""


class NeighbourMechanism:
    """Paper A: each word is drawn by itself, from its neighbours or from common words."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.tables = tables_of(channel)

    def labels_of(self, batch: pa.RecordBatch) -> Ints:
        """Return no labels: the draws do not use them."""
        return np.full(batch.num_rows, NONE, dtype=np.int64)

    def draw(self, words: NoteWords, keys: Words64, labels: Ints) -> SmallInts:
        """Draw each word by itself."""
        background = float(self.channel.policy.background)
        return draw_words(words.rows, words.offsets, keys, self.tables, background)

    def likelihood(self, note: ReleasedNote) -> NoteLikelihood:
        """Return the same probabilities wherever the released word is."""
        starts, rows, own = self._columns
        share = self.channel.policy.background
        pool = np.append(self.channel.pool, 0.0)
        begin, entries = _entries(starts, note.outputs)
        common = share * pool[note.outputs]
        chances = (1.0 - share) * own[entries] + np.repeat(common, np.diff(begin))
        is_kept = self.tables.kept[rows[entries]]
        return NoteLikelihood(
            begin, rows[entries], np.where(is_kept, 1.0, chances), common, pool[note.outputs]
        )

    @cached_property
    def _columns(self) -> tuple[Ints, Ints, Doubles]:
        """First input of each output, inputs, and their probabilities."""
        matrix = self.channel.matrix()[: self.channel.unknown].tocsc()
        matrix.sort_indices()
        starts = np.append(matrix.indptr, matrix.nnz).astype(np.int64)
        return starts, matrix.indices.astype(np.int64), matrix.data


class ContextMechanism:
    """Each word is drawn in the context of the words written before it.

    P(y | x, context) = b LM(y | context, label) + (1 - b) C(y | x) LM(y | context, label)^a / norm,
    with b = `WritingPolicy.background` and a = `WritingPolicy.context_strength`. An unknown word is
    drawn from the model.
    """

    def __init__(self, channel: Channel) -> None:
        assert channel.context is not None
        self.channel = channel
        self.model = channel.context
        self.tables = tables_of(channel)
        self._context = context_tables(channel)

    def labels_of(self, batch: pa.RecordBatch) -> Ints:
        """Return the row of each note's label in the model."""
        return label_rows(self.model, label_values(batch, self.model.label))

    def draw(self, words: NoteWords, keys: Words64, labels: Ints) -> SmallInts:
        """Draw the words of each note in order."""
        policy = self.channel.policy
        return draw_in_context(
            (words.rows, words.stops, words.offsets),
            keys,
            labels,
            self.tables,
            self._context,
            float(policy.background),
            float(policy.context_strength),
        )

    def likelihood(self, note: ReleasedNote) -> NoteLikelihood:
        """Return the exact probabilities."""
        starts, rows, _ = self._columns
        policy = self.channel.policy
        chances, model = likelihoods_in_context(
            note.outputs.astype(np.int32),
            note.stops,
            note.label,
            self._columns,
            self.tables,
            self._context,
            float(policy.background),
            float(policy.context_strength),
        )
        begin, entries = _entries(starts, note.outputs)
        others = policy.background * model
        return NoteLikelihood(begin, rows[entries].astype(np.int64), chances, others, model)

    @cached_property
    def _columns(self) -> tuple[Ints, SmallInts, Ints]:
        """First input of each output, inputs, and their entries in the channel's rows."""
        channel = self.channel
        known = np.flatnonzero(channel.rows < channel.unknown)
        order = known[np.lexsort((channel.rows[known], channel.indices[known]))]
        # A released word outside the vocabulary has no inputs.
        edges = np.arange(len(channel.words) + 2)
        starts = np.searchsorted(channel.indices[order], edges).astype(np.int64)
        return starts, channel.rows[order].astype(np.int32), order


def _entries(starts: Ints, outputs: Ints) -> tuple[Ints, Ints]:
    """Return the first entry of each output in a list of all their entries, and the entries."""
    sizes = starts[outputs + 1] - starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return begin, np.repeat(starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])


def mechanism_of(channel: Channel) -> Mechanism:
    """Return the mechanism of a channel."""
    return ContextMechanism(channel) if channel.in_context else NeighbourMechanism(channel)


def released_notes(
    channel: Channel, texts: Sequence[str], labels: Sequence[int]
) -> Iterator[ReleasedNote]:
    """Yield the words of released texts as rows of a channel; `labels`: as in `labels_of`."""
    strings = pa.array(texts, pa.large_string())
    data, offsets = string_buffers(strings)
    notes = NoteArrays(data=data, offsets=offsets, rows=non_ascii_rows(strings, channel.ids))
    # Every word of a released text was written, and every mark of a sentence end.
    every = tables_of(channel)._replace(indptr=np.arange(len(channel.words) + 2))
    options = options_of(WritingPolicy(layout="keep"))
    rows, stops, first = read_words(notes, every, options)
    spans = zip(first[:-1].tolist(), first[1:].tolist(), labels, strict=True)
    for start, end, label in spans:
        yield ReleasedNote(rows[start:end].astype(np.int64), stops[start:end], label)
