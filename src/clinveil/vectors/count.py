"""Count words, and the patients per word, in one pass over the notes and in bounded memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.core import Say, private_folder, remove, track
from clinveil.corpus import Corpus, rows
from clinveil.scale import Map, each_batch, processes, serial
from clinveil.vectors.sentences import Splitter, whole_note

PAIRS_IN_MEMORY = 1 << 20  # 8 MiB; more saves no time
MANY_WORDS = 3_000_000
_BUCKETS = 64
_LOW = (1 << 32) - 1


@dataclass(frozen=True)
class WordCounts:
    """Occurrences of each word, and the number of patients with notes in which it occurs.

    Attributes:
        words: lookup forms, most frequent first, ties by the word itself.
        counts: (n_words,) int64 occurrences.
        patients: (n_words,) int64 distinct patients with notes in which the word occurs.
        n_patients, n_notes, n_tokens: totals over the notes that have a text.
    """

    words: Sequence[str] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    patients: NDArray[np.int64] = field(repr=False)
    n_patients: int
    n_notes: int
    n_tokens: int

    def __len__(self) -> int:
        return len(self.words)


def count_words(
    corpus: Corpus,
    scratch: Path,
    *,
    pairs_in_memory: int = PAIRS_IN_MEMORY,
    split: Splitter = whole_note,
    executor: Map = serial,
    say: Say = lambda _: None,
    total: int | None = None,
) -> WordCounts:
    """Count the words of all notes and the patients of each word, in one pass.

    Args:
        corpus: the notes; null texts are skipped, notes without a patient id count as one patient.
        scratch: a private folder; (patient, word) pairs beyond the limit are written there and
            removed at the end.
        pairs_in_memory: distinct (patient, word) pairs in memory, 8 bytes each.
        split: splits a note into words; must be a module-level function if `executor` uses other
            processes.
        executor: map that runs the counting of batches, or of part files; it does not change the
            result.
        say: receives the progress. total: number of notes, if known.

    Returns:
        The counts. Memory grows with the vocabulary, the number of patients and the largest part.

    Raises Incomplete if some parts cannot be read.
    """
    with _Sum(scratch, pairs_in_memory) as counts:
        batches = each_batch(executor, partial(counted, split), corpus)
        for batch in track(batches, "notes counted", say, total, size=lambda batch: batch.n_notes):
            counts.add(batch)
        return counts.counts()


def over_words(n_words: int, workers: int) -> Map:
    """Return the map for a corpus of this many words: processes for large ones, because starting
    them takes seconds.
    """
    return processes(workers) if n_words >= MANY_WORDS else serial


class Numbering(dict[str, int]):
    """Number keys in the order of their first use."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number

    def of(self, keys: Iterable[str]) -> NDArray[np.int64]:
        """Return the numbers of some keys, shape (n,)."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int64)


@dataclass(frozen=True)
class BatchCounts:
    """Counts of one batch, with words and patients numbered within the batch.

    Attributes:
        words: distinct words. counts: (n_words,) int64 occurrences. owners: distinct patients.
        pairs: distinct (word, patient), packed as word << 32 | patient. n_notes: notes with a text.
    """

    words: list[str] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    owners: list[str] = field(repr=False)
    pairs: NDArray[np.int64] = field(repr=False)
    n_notes: int


def counted(split: Splitter, batch: pa.RecordBatch) -> BatchCounts:
    """Count one batch."""
    numbering = Numbering()
    owners = Numbering()
    number = numbering.__getitem__
    tokens: list[int] = []
    lengths: list[int] = []
    patients: list[int] = []
    for note in rows([batch]):
        before = len(tokens)
        for line in split(note.text):
            tokens.extend(map(number, line))
        lengths.append(len(tokens) - before)
        patients.append(owners[note.patient_id])
    flat = np.array(tokens, dtype=np.int64)
    patient = np.repeat(np.array(patients, dtype=np.int64), np.array(lengths, dtype=np.int64))
    occurrences = np.bincount(flat, minlength=len(numbering)).astype(np.int64)
    return BatchCounts(
        list(numbering), occurrences, list(owners), _distinct(flat << 32 | patient), len(lengths)
    )


class _Sum:
    """Sum of batches, with words and patients numbered over the whole corpus."""

    def __init__(self, scratch: Path, pairs_in_memory: int) -> None:
        self._words = Numbering()
        self._owners = Numbering()
        self._counts = np.zeros(1 << 10, dtype=np.int64)
        self._notes = 0
        self._pairs = _Pairs(scratch, pairs_in_memory)

    def __enter__(self) -> _Sum:
        return self

    def __exit__(self, *error: object) -> None:
        self._pairs.close()

    def add(self, part: BatchCounts) -> None:
        """Add a batch."""
        words = self._words.of(part.words)
        owners = self._owners.of(part.owners)
        if len(self._words) > self._counts.size:
            self._counts = np.concatenate(
                [self._counts, np.zeros(len(self._words), dtype=np.int64)]
            )
        self._counts[words] += part.counts
        self._notes += part.n_notes
        self._pairs.add(words[part.pairs >> 32] << 32 | owners[part.pairs & _LOW])

    def counts(self) -> WordCounts:
        """Return the counts of all added batches."""
        words = list(self._words)
        counts = self._counts[: len(self._words)]
        patients = self._pairs.patients_per_word(len(words))
        by_word = np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)
        order = by_word[np.argsort(-counts[by_word], kind="stable")]
        totals = len(self._owners), self._notes, int(counts.sum())
        return WordCounts([words[i] for i in order], counts[order], patients[order], *totals)


class _Pairs:
    """Distinct (word, patient) pairs, packed as word << 32 | patient; beyond a limit they go to
    files by word.
    """

    def __init__(self, scratch: Path, limit: int) -> None:
        self._limit = limit
        self._parts: list[NDArray[np.int64]] = []
        self._held = 0
        self._folder = Path(tempfile.mkdtemp(prefix="pairs", dir=private_folder(scratch)))

    def close(self) -> None:
        """Remove the files."""
        remove(self._folder)

    def add(self, pairs: NDArray[np.int64]) -> None:
        """Add packed pairs; duplicates are allowed."""
        self._parts.append(_distinct(pairs))
        self._held += len(self._parts[-1])
        if self._held > self._limit:
            self._merge()
            if self._held > self._limit // 2:
                self._spill()

    def _merge(self) -> None:
        self._parts = [_distinct(np.concatenate(self._parts))]
        self._held = len(self._parts[0])

    def _spill(self) -> None:
        pairs = np.concatenate(self._parts)
        bucket = (pairs >> 32) % _BUCKETS
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(_BUCKETS + 1))
        for name in range(_BUCKETS):
            file = os.open(self._folder / str(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(file, "ab") as out:
                out.write(pairs[order[ends[name] : ends[name + 1]]].tobytes())
        self._parts = []
        self._held = 0

    def patients_per_word(self, n_words: int) -> NDArray[np.int64]:
        """Return the number of patients of each word, shape (n_words,)."""
        patients = np.zeros(n_words, dtype=np.int64)
        spilled = sorted(self._folder.iterdir())
        if spilled and self._parts:
            self._spill()
        for file in spilled:
            distinct = _distinct(np.fromfile(file, dtype=np.int64))
            patients += np.bincount(distinct >> 32, minlength=n_words)
        if self._parts:
            self._merge()
            patients += np.bincount(self._parts[0] >> 32, minlength=n_words)
        return patients


def _distinct(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values, ascending; many times faster than np.unique, which hashes."""
    pairs = np.sort(pairs)
    first = np.ones(len(pairs), dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
    return pairs[first]
