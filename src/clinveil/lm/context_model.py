"""`ContextModel`: n-grams of words that enough patients share, as a trie; counted in one pass.

P(w | context) interpolates the orders of the model: a context of n-grams with C occurrences and n
different next words has the weight C / (C + 2 n), and the shorter context has the rest. Below all
contexts is the frequency of the word. A label, and the end of a sentence after the word, multiply
the probability of each word by its factors, up to a norm.

Only words above the patient floor are in the model. An n-gram, and a word of a label, counts only
if at least `patients` patients have it, and a label has factors only if at least `FLOORS` times as
many patients have the label. Sentence ends and the place before a note are part of contexts; words
below the floor are not, and no n-gram contains one.

Counts are additive over batches. Beyond a limit they go to scratch files, so memory is bounded.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core import Doubles, Floats, Ints, SmallInts, private_folder, remove, save_array
from clinveil.corpus import Hashes
from clinveil.lm.notes import FLOORS
from clinveil.vectors import Numbering

META = "context.json"
LEVEL_ARRAYS = ("starts", "tokens", "shares", "weights")
ORDER = 3  # words of the longest n-gram
NONE = -1  # a word that is not in the model
NEW_WORDS = 2.0  # weight of a context's different next words against its occurrences
LABEL_POWER = 0.7  # exponent of a label's ratio of word frequencies
MOST_FACTOR = 4.0  # a label changes the odds of a word at most by this factor
LEAST_END = 1 / 16  # factors of words that never, or often, end sentences
MOST_END = 2.0
MOST_LABELS = 256  # labels with factors, those of the most patients
TRIPLES_IN_MEMORY = 1 << 21
_BUCKETS = 64
_TRIPLE = np.dtype([("code", "<i8"), ("patient", "<u8"), ("count", "<i8")])


@dataclass(frozen=True)
class NoteIds:
    """The words of a batch of notes.

    Attributes:
        ids: (n,) words from 0 to `size` - 1, `size` for a sentence end, `NONE` for another word.
        offsets: (n_notes + 1,). patients: (n_notes,) uint64 hashes. labels: of the notes, None if
            there is none.
    """

    ids: Ints = field(repr=False)
    offsets: Ints = field(repr=False)
    patients: Hashes = field(repr=False)
    labels: Sequence[str | None] = field(repr=False)


@dataclass(frozen=True)
class ContextLevel:
    """The n-grams of one order, by context; contexts are the n-grams of the order below, in order.

    Attributes:
        starts: (n_contexts + 1,) first n-gram of each context. tokens: (n,) last words, sorted
            within a context. shares: (n,) of the context's occurrences; 0 for a sentence end, which
            is only a context. weights: (n_contexts,).
    """

    starts: Ints = field(repr=False)
    tokens: SmallInts = field(repr=False)
    shares: Doubles = field(repr=False)
    weights: Doubles = field(repr=False)


@dataclass(frozen=True, eq=False)
class ContextModel:
    """Probabilities of the next word.

    Attributes:
        rows: (size,) the number of each word in the caller's vocabulary, ascending.
        unigram: (size,). levels: from pairs of words to the longest n-grams; the contexts of the
            first level are the words and the sentence end.
        label: name of the label column; "" for none. labels: values with factors. factors:
            (n_labels, size). ends: (size,) factors of the last word of a sentence.
    """

    rows: SmallInts = field(repr=False)
    unigram: Doubles = field(repr=False)
    levels: tuple[ContextLevel, ...] = field(repr=False)
    label: str = ""
    labels: tuple[str, ...] = field(default=(), repr=False)
    factors: Floats = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32), repr=False)
    ends: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32), repr=False)

    @property
    def size(self) -> int:
        """Number of words; the number of the sentence end."""
        return int(self.rows.size)

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Yield name and values of every array."""
        yield "rows", self.rows
        yield "unigram", self.unigram
        yield "factors", self.factors
        yield "ends", self.ends
        for number, level in enumerate(self.levels):
            for name in LEVEL_ARRAYS:
                yield f"{number}-{name}", getattr(level, name)


def save_context(model: ContextModel, folder: Path) -> None:
    """Write a model to a new private folder, without its own atomicity: it is part of a channel."""
    private_folder(folder)
    for name, array in model.arrays():
        save_array(folder / f"{name}.npy", array)
    meta = {"label": model.label, "labels": model.labels, "levels": len(model.levels)}
    (folder / META).write_text(json.dumps(meta), encoding="utf-8")


def load_context(folder: Path) -> ContextModel:
    """Read a model. Raises OSError, ValueError or KeyError for a folder that contains none."""
    meta = json.loads((folder / META).read_text(encoding="utf-8"))

    def read(name: str) -> Any:
        return np.load(folder / f"{name}.npy", allow_pickle=False)

    levels = [
        ContextLevel(
            starts=read(f"{number}-starts"),
            tokens=read(f"{number}-tokens"),
            shares=read(f"{number}-shares"),
            weights=read(f"{number}-weights"),
        )
        for number in range(meta["levels"])
    ]
    return ContextModel(
        rows=read("rows"),
        unigram=read("unigram"),
        levels=tuple(levels),
        label=meta["label"],
        labels=tuple(meta["labels"]),
        factors=read("factors"),
        ends=read("ends"),
    )


def count_contexts(
    batches: Iterable[NoteIds],
    rows: SmallInts,
    scratch: Path,
    *,
    patients: int,
    label: str = "",
    order: int = ORDER,
    in_memory: int = TRIPLES_IN_MEMORY,
) -> ContextModel:
    """Return the model of some notes, in one pass.

    Args:
        rows: as in `ContextModel`. patients: that must share an n-gram. label: name of the label.
        scratch: a private folder for counts beyond `in_memory`.
    """
    size = int(rows.size)
    with _Counting(size, order, scratch, in_memory) as counting:
        for batch in batches:
            counting.add(batch)
        frequencies = counting.occurrences + 1e-9
        levels = list[ContextLevel]()
        contexts = np.arange(size + 1)
        for ngrams in counting.ngrams:
            codes, counts = ngrams.shared(patients)
            if not levels:
                ends = _ends(codes, counts, counting.occurrences)
            levels.append(_level(codes, counts, contexts, size))
            contexts = codes
        labels, factors = counting.factors(patients)
    name = label if labels else ""
    unigram = frequencies / frequencies.sum()
    return ContextModel(rows, unigram, tuple(levels), name, labels, factors, ends)


def _ends(codes: Ints, counts: Ints, occurrences: Doubles) -> Floats:
    """Return the factor of each word before a sentence end, from the codes of word pairs."""
    size = occurrences.size
    before_end = (codes % (size + 1) == size) & (codes // (size + 1) < size)
    often = np.bincount(codes[before_end] // (size + 1), counts[before_end], size)
    if not often.any():
        return np.ones(size, dtype=np.float32)
    ratio = often / np.maximum(occurrences, 1.0) * (occurrences.sum() / often.sum())
    return np.clip(ratio, LEAST_END, MOST_END).astype(np.float32)


def _level(codes: Ints, counts: Ints, contexts: Ints, size: int) -> ContextLevel:
    """Return the level of sorted n-gram codes; `contexts`: codes of the order below."""
    context = np.searchsorted(contexts, codes // (size + 1))
    tokens = (codes % (size + 1)).astype(np.int32)
    mass = np.where(tokens == size, 0, counts).astype(np.float64)
    totals = np.bincount(context, mass, contexts.size)
    different = np.bincount(context[mass > 0], minlength=contexts.size)
    starts = np.searchsorted(context, np.arange(contexts.size + 1)).astype(np.int64)
    shares = mass / np.maximum(totals, 1.0)[context]
    weights = totals / np.maximum(totals + NEW_WORDS * different, 1.0)
    return ContextLevel(starts, tokens, shares, weights)


class _Counting:
    """Counts of words, of n-grams of each order from two, and of words and patients by label."""

    def __init__(self, size: int, order: int, scratch: Path, limit: int) -> None:
        self._size = size
        self._scratch = scratch
        self._labels = Numbering()
        self.occurrences = np.zeros(size, dtype=np.float64)
        self.ngrams = [_Triples(scratch, limit) for _ in range(2, order + 1)]
        self._of_labels = _Triples(scratch, limit)

    def __enter__(self) -> _Counting:
        return self

    def __exit__(self, *error: object) -> None:
        for triples in (*self.ngrams, self._of_labels):
            triples.close()

    def add(self, batch: NoteIds) -> None:
        """Add the counts of a batch."""
        size = self._size
        lengths = np.diff(batch.offsets)
        note = np.repeat(np.arange(lengths.size), lengths)
        is_word = (batch.ids >= 0) & (batch.ids < size)
        self.occurrences += np.bincount(batch.ids[is_word], minlength=size)
        for number, triples in enumerate(self.ngrams):
            is_context = number + 1 < len(self.ngrams)
            ngrams = _ngrams(batch, note, size, number + 2, is_context=is_context)
            triples.add(*ngrams, batch.patients)
        labels = np.array(
            [NONE if label is None else self._labels[label] for label in batch.labels],
            dtype=np.int64,
        )
        labelled = np.flatnonzero(is_word & (labels[note] != NONE))
        known = np.flatnonzero(labels != NONE)
        codes = labels[note[labelled]] * (size + 1) + batch.ids[labelled]
        self._of_labels.add(
            np.concatenate([codes, labels[known] * (size + 1) + size]),
            np.concatenate([note[labelled], known]),
            batch.patients,
        )

    def factors(self, patients: int) -> tuple[tuple[str, ...], Floats]:
        """Return the labels of enough patients, and the factor of each word for each of them."""
        size = self._size
        every, _ = self._of_labels.shared(FLOORS * patients)
        codes, counts = self._of_labels.shared(patients)
        steering = every[every % (size + 1) == size] // (size + 1)
        names = list(self._labels)
        totals = np.bincount(codes // (size + 1), counts, len(names) + 1)
        steering = steering[np.argsort(-totals[steering], kind="stable")][:MOST_LABELS]
        factors = np.ones((steering.size, size), dtype=np.float32)
        for place, label in enumerate(steering.tolist()):
            chosen = (codes // (size + 1) == label) & (codes % (size + 1) != size)
            factors[place] = _factors(codes[chosen] % (size + 1), counts[chosen], self.occurrences)
        return tuple(names[label] for label in steering.tolist()), factors


def _factors(words: Ints, counts: Ints, occurrences: Doubles) -> Doubles:
    """Return a label's factors: a power of the ratio of frequencies, 1 for words that few of its
    patients use.
    """
    ratio = np.ones(occurrences.size)
    overall = occurrences[words] / max(1.0, occurrences[words].sum())
    ratio[words] = counts / max(1, counts.sum()) / overall
    return np.clip(ratio**LABEL_POWER, 1 / MOST_FACTOR, MOST_FACTOR)


def _ngrams(
    batch: NoteIds, note: Ints, size: int, order: int, *, is_context: bool
) -> tuple[Ints, Ints]:
    """Return the code and the note of each n-gram of one order; before a note are sentence ends.

    is_context: also return that of the sentence ends alone, the context before a note.
    """
    before = order - 1
    n_notes = batch.offsets.size - 1
    padded = np.full(note.size + before * n_notes, size, dtype=np.int64)
    places = np.arange(note.size) + (note + 1) * before
    padded[places] = batch.ids
    codes = np.zeros(note.size, dtype=np.int64)
    known = np.ones(note.size, dtype=np.bool_)
    for back in range(before, -1, -1):
        tokens = padded[places - back]
        codes = codes * (size + 1) + tokens
        known &= tokens != NONE
    start = sum(size * (size + 1) ** power for power in range(order))
    alone = np.arange(n_notes if is_context else 0)
    starts = np.full(alone.size, start, dtype=np.int64)
    return np.concatenate([codes[known], starts]), np.concatenate([note[known], alone])


Triples = tuple[Ints, Hashes, Ints]
"""Codes, patients and occurrences, (n,) each."""


class _Triples:
    """Occurrences of codes by patient; beyond a limit they go to files by code."""

    def __init__(self, scratch: Path, limit: int) -> None:
        self._limit = limit
        self._parts = list[Triples]()
        self._held = 0
        self._folder = Path(tempfile.mkdtemp(prefix="ngrams", dir=private_folder(scratch)))

    def close(self) -> None:
        """Remove the files."""
        remove(self._folder)

    def add(self, codes: Ints, notes: Ints, patients: Hashes) -> None:
        """Add one occurrence of each code; `notes`: of each code, `patients`: of each note."""
        hashes, number = np.unique(patients, return_inverse=True)
        if codes.size and int(codes.max()) < np.iinfo(np.int64).max // hashes.size - 1:
            keys = np.sort(codes * hashes.size + number[notes])
            starts = np.flatnonzero(np.diff(keys, prepend=-1))
            counts = np.diff(starts, append=keys.size)
            part = keys[starts] // hashes.size, hashes[keys[starts] % hashes.size], counts
        else:
            part = codes, patients[notes], np.ones(codes.size, dtype=np.int64)
        self._parts.append(part)
        self._held += part[0].size
        if self._held > self._limit:
            self._spill()

    def _spill(self) -> None:
        triples = np.empty(self._held, dtype=_TRIPLE)
        triples["code"], triples["patient"], triples["count"] = _joined(self._parts)
        bucket = triples["code"] % _BUCKETS
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(_BUCKETS + 1))
        for name in range(_BUCKETS):
            path = self._folder / str(name)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(file, "ab") as out:
                out.write(triples[order[ends[name] : ends[name + 1]]].tobytes())
        self._parts = []
        self._held = 0

    def shared(self, patients: int) -> tuple[Ints, Ints]:
        """Return the codes of at least this many patients, ascending, and their occurrences."""
        pieces = [_shared(triples, patients) for triples in self._pieces()]
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(codes for codes, _ in pieces)])
        counts = np.concatenate([np.zeros(0, dtype=np.int64), *(counts for _, counts in pieces)])
        order = np.argsort(codes)
        return codes[order], counts[order]

    def _pieces(self) -> Iterator[Triples]:
        spilled = sorted(self._folder.iterdir())
        if not spilled:
            yield _joined(self._parts)
            return
        if self._parts:
            self._spill()
        for file in spilled:
            triples = np.fromfile(file, dtype=_TRIPLE)
            yield triples["code"], triples["patient"], triples["count"]


def _joined(parts: Sequence[Triples]) -> Triples:
    none = np.zeros(0, dtype=np.int64)
    codes, patients, counts = zip((none, none.astype(np.uint64), none), *parts, strict=True)
    return np.concatenate(codes), np.concatenate(patients), np.concatenate(counts)


def _shared(triples: Triples, patients: int) -> tuple[Ints, Ints]:
    """Return the codes of enough patients and their occurrences."""
    codes, owners, counts = triples
    order = np.argsort(codes)
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(starts, append=codes.size)
    often = order[np.repeat(lengths >= patients, lengths)]
    number = np.unique(owners[often], return_inverse=True)[1]
    order = often[np.lexsort((number, codes[often]))]
    is_new = np.diff(codes[order], prepend=-1) != 0
    is_pair = is_new | (np.diff(owners[order].astype(np.int64), prepend=0) != 0)
    starts = np.flatnonzero(is_new)
    if not starts.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    holders = np.add.reduceat(is_pair.astype(np.int64), starts)
    occurrences = np.add.reduceat(counts[order], starts)
    kept = holders >= patients
    return codes[order][starts][kept], occurrences[kept]
