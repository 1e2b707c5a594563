"""The context model of a channel: training on notes, tables for the draws, and the words of notes.

The model has the words that the channel may write, and the sentence ends that its layout writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.channel.arrays import ContextTables, NoteArrays, Words64
from clinveil.channel.channel import Channel
from clinveil.channel.kernel import read_words
from clinveil.channel.tables import alias_tables, options_of, readonly, string_buffers, tables_of
from clinveil.channel.words import large_strings, non_ascii_rows, readable
from clinveil.core import Doubles, InputError, Ints, Mask, SmallInts
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, hashes
from clinveil.lm import NONE, ContextModel, NoteIds, count_contexts
from clinveil.scale import threads

FEWEST_WORDS = 200


def with_context(
    channel: Channel,
    notes: Corpus,
    *,
    ngram_patients: int,
    label: str | None,
    workers: int,
    scratch: Path,
    fewest: int = FEWEST_WORDS,
    released: bool = False,
) -> Channel:
    """Return the channel with a context model of some notes.

    Args:
        ngram_patients: patients that must share an n-gram. label: column whose values steer the
            model; None for none. scratch: private folder. fewest: words for a model.
        released: the notes are released ones: every word was written, and every sentence end.

    Raises:
        InputError: too few words may be written for a model.
    """
    rows = np.flatnonzero(channel.eligible).astype(np.int32)
    if rows.size < fewest:
        raise InputError(
            f"{rows.size} words may be written; a model of word sequences needs {fewest}",
            hint="pass more notes, a smaller channel.min_patients, or channel.mechanism=neighbours",
        )
    ids = ids_of(channel, rows)
    tables = tables_of(channel)
    options = options_of(channel.policy)
    has_output = channel.has_output
    if released:
        tables = tables._replace(indptr=np.arange(len(channel.words) + 2))
        options = options._replace(keep_layout=True, end_sentences=False)
        has_output = np.ones_like(has_output)

    def words_of(batch: pa.RecordBatch) -> NoteIds:
        batch, _ = readable(batch)
        texts = large_strings(batch, TEXT)
        data, offsets = string_buffers(texts)
        arrays = NoteArrays(data, offsets, non_ascii_rows(texts, channel.ids))
        read, stops, first = read_words(arrays, tables, options)
        written = has_output[read]
        return NoteIds(
            *_with_stops(ids[read], stops, written, first, rows.size),
            hashes(pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID)).to_pylist()),
            label_values(batch, label or ""),
        )

    model = count_contexts(
        threads(workers)(words_of, notes.batches()),
        rows,
        scratch,
        patients=ngram_patients,
        label=label or "",
    )
    return replace(channel, context=model)


def ids_of(channel: Channel, rows: SmallInts) -> SmallInts:
    """Return the token of each row of a channel, (n_words + 1,); `NONE` for words that are not in
    the model.
    """
    ids = np.full(len(channel.words) + 1, NONE, dtype=np.int32)
    ids[rows] = np.arange(rows.size)
    return ids


def _with_stops(
    ids: SmallInts, stops: Mask, written: Mask, first: Ints, size: int
) -> tuple[Ints, Ints]:
    """Return the tokens of written words with the sentence ends between them, and the offsets of
    the notes.
    """
    tokens = ids[written].astype(np.int64)
    before = np.flatnonzero(stops[written])
    counts = np.concatenate([[0], np.cumsum(written.astype(np.int64) + (stops & written))])
    return np.insert(tokens, before, size), counts[first]


def label_values(batch: pa.RecordBatch, label: str) -> Sequence[str | None]:
    """Return the label of each note, stripped; None without the column or without a value."""
    if not label or label not in batch.schema.names:
        return [None] * batch.num_rows
    values = batch.column(label).to_pylist()
    return [None if value is None else str(value).strip() for value in values]


def context_tables(channel: Channel) -> ContextTables:
    """Return the tables of a channel's context model."""
    model = channel.context
    assert model is not None
    size = model.size
    levels = model.levels
    sizes = [size, *(level.tokens.size for level in levels)]
    ends = np.cumsum(sizes)
    starts = [level.starts + first for level, first in zip(levels, ends[:-1], strict=True)]
    indptr = np.concatenate([[0], *starts]).astype(np.int64)
    tokens = np.concatenate([np.arange(size), *(level.tokens for level in levels)])
    shares = np.concatenate([model.unigram, *(level.shares for level in levels)])
    limits, others = _alias(indptr, tokens.astype(np.int32), shares)
    contexts = np.cumsum([0, *(level.starts.size for level in levels)])[:-1]
    weights = [np.append(level.weights, 0.0) for level in levels]
    return ContextTables(
        ids=readonly(ids_of(channel, model.rows)),
        rows=readonly(model.rows),
        probabilities=readonly(channel.probabilities),
        starts=readonly(np.concatenate(starts).astype(np.int64)),
        weights=readonly(np.concatenate(weights)),
        first_context=readonly(contexts.astype(np.int64)),
        first_ngram=readonly(ends[:-1].astype(np.int64)),
        tokens=readonly(tokens.astype(np.int32)),
        shares=readonly(shares),
        limits=readonly(limits),
        others=readonly(others),
        factors=readonly(model.factors.reshape(len(model.labels), size)),
        highest=readonly(model.factors.reshape(len(model.labels), size).max(axis=1)),
        ends=readonly(model.ends),
    )


def _alias(indptr: Ints, tokens: SmallInts, shares: Doubles) -> tuple[Words64, SmallInts]:
    """Return the alias tables of the contexts; an n-gram with the share 0 is never drawn."""
    limits, others = alias_tables(np.unique(indptr), tokens, shares)
    never = np.flatnonzero(shares == 0.0)
    limits[never] = 0
    wrong = never[others[never] == tokens[never]]
    if wrong.size:
        context = np.searchsorted(np.unique(indptr), wrong, side="right") - 1
        others[wrong] = tokens[np.unique(indptr)[context]]
    return limits, others


def label_rows(model: ContextModel, labels: Sequence[str | None]) -> Ints:
    """Return the row of each label in the model's factors, -1 for none, (n,)."""
    row_of = {label: row for row, label in enumerate(model.labels)}
    rows = (NONE if label is None else row_of.get(label, NONE) for label in labels)
    return np.fromiter(rows, dtype=np.int64, count=len(labels))
