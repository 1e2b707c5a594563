"""An n-gram model with absolute discounting; with `Conditions`, of n-grams that enough patients share.

p(w | h) = max(c(hw) - D, 0) / c(h) + B(h) p(w | h'), where h' is h without its oldest token, B(h) is the remaining
probability, and a Lidstone unigram is below. Source: Chen & Goodman 1999, section 2.6 (interpolated, one discount).

Without conditions it is trained in seconds and memorizes word sequences: an attacker with only the released text would
use such a model. With conditions an n-gram of fewer than `min_patients` patients is left out. Its probability goes to
shorter ones, which count only what longer ones leave over: the token at a position counts as the product of the shares
that they left. This is the idea of Kneser-Ney, and keeps the frequency of each token. Each history is refined twice
with the same formula: with the first token of the line, which orders sections, and with the label of the note. Below
contexts of one token are those of its class, so that what follows "takes" is more often a drug than any word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.lm.groups import classes_of
from clinveil.lm.layout import LayoutVocabulary
from clinveil.lm.models.unigram import counts_of
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import CountedKind, language_models
from clinveil.lm.vocabulary import END, Ids, Vocabulary

NONE = -1
ORDER, DISCOUNT = 5, 0.75
FILE = "ngrams.npz"


@dataclass(frozen=True)
class _Table:
    """Tokens after each context.

    Attributes:
        contexts: (n_contexts,) sorted codes. starts: (n_contexts + 1,) first row of each. totals: occurrences of each.
        rest: (n_contexts,) B. keys: (n_rows,) sorted, code of the context times vocabulary size, plus token.
        shares: (n_rows,) discounted share of the token.
    """

    contexts: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    rest: Doubles = field(repr=False)
    keys: Ints = field(repr=False)
    shares: Doubles = field(repr=False)

    @classmethod
    def of(cls, keys: Ints, mass: Doubles, explained: Doubles, size: int) -> _Table:
        """Return the table of the n-grams with an explained mass; the probability of the rest is in `rest`.

        `mass`: of each n-gram. `explained`: the part of it that this table gives to the token, 0 if it is left out.
        """
        context = keys // size
        contexts, first = np.unique(context, return_index=True)
        row = np.repeat(np.arange(contexts.size), np.diff(np.append(first, keys.size)))
        totals = np.bincount(row, weights=mass, minlength=contexts.size)
        shares: Doubles = (explained / totals[row]).astype(np.float64)
        rest: Doubles = 1.0 - np.bincount(row, weights=shares, minlength=contexts.size).astype(np.float64)
        kept = explained > 0
        used = np.bincount(row[kept], minlength=contexts.size)
        some = used > 0
        starts = np.concatenate([[0], np.cumsum(used[some])])
        return cls(contexts[some], starts.astype(np.int64), rest[some], keys[kept], shares[kept])

    def mixed(self, codes: Ints, ids: Ids, size: int, below: Doubles) -> Doubles:
        """Return the probability of each token after its context, (n,); `below` where the context is unknown."""
        found = _find(self.contexts, codes)
        row = _find(self.keys, np.where(found == NONE, NONE, codes * size + ids))
        here = _at(self.shares, row) + _at(self.rest, found) * below
        return np.where(found == NONE, below, here)


class Ngram:
    """N-gram model: scores notes; with conditions it also writes them."""

    kind = "ngram"

    def __init__(
        self, vocabulary: Vocabulary, unigram: Doubles, tables: Mapping[str, _Table], labels: int, classes: Ints
    ) -> None:
        """Args: classes: (size,) of the tokens, for contexts of one token."""
        self.vocabulary, self.unigram, self.tables, self.labels = vocabulary, unigram, dict(tables), labels
        self.classes = classes
        self.order = max(int(name.partition(" ")[2]) for name in tables)
        self.breaks, self.blanks = _layout_of(vocabulary)

    @property
    def labelled(self) -> bool:
        """Whether notes are written for a label."""
        return self.labels > 0

    def score(self, notes: Sequence[Ids], labels: Ints | None = None) -> list[Doubles]:
        """Return the log-probabilities of all tokens; `labels`: (n_notes,) of the notes, -1 for none."""
        if not notes:
            return []
        text = _Text.of(notes, self.breaks, self.blanks, labels, self.classes)
        chance, rows = self.unigram[text.ids], text.ids.astype(np.int64)
        for length in range(1, self.order + 1):
            before = text.before(rows, length)
            for name, codes in text.contexts(before, length, self.vocabulary.size, self.labels):
                if name in self.tables:
                    chance = self.tables[name].mixed(codes, text.ids, self.vocabulary.size, chance)
            if length > 1:
                keys = np.where(before == NONE, NONE, before * self.vocabulary.size + text.ids)
                rows = _find(self.tables[f"all {length}"].keys, keys)
        logs = np.log(chance)
        ends = np.cumsum([note.size + 1 for note in notes])
        return [logs[end - note.size : end] for end, note in zip(ends, notes, strict=True)]

    def following(self, before: Sequence[int]) -> tuple[list[tuple[Ints, Doubles]], float]:
        """Return the tokens seen after a context and their probabilities, by context length, and the unigram's weight.

        `before`: the tokens of the note so far, with an end in front; a token's probabilities add up.
        """
        found, rest, size = list[tuple[Ints, Doubles]](), 1.0, self.vocabulary.size
        for length in range(min(self.order, len(before) + 1), 1, -1):
            context = self._row(before[len(before) - length + 1 :])
            table = self.tables[f"all {length}"]
            at = NONE if context == NONE else int(_find(table.contexts, np.array([context]))[0])
            if at != NONE:
                rows = slice(table.starts[at], table.starts[at + 1])
                found.append((table.keys[rows] - context * size, rest * table.shares[rows]))
                rest *= float(table.rest[at])
        return found, rest

    def _row(self, context: Sequence[int]) -> int:
        """Return the row of an n-gram among those of its length, or -1."""
        row = int(context[0])
        for length, token in enumerate(context[1:], 2):
            row = int(_find(self.tables[f"all {length}"].keys, np.array([row * self.vocabulary.size + token]))[0])
            if row == NONE:
                break
        return row

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    def stream(self, lanes: int) -> _Stream:
        """Return a stream that writes `lanes` notes at once."""
        return _Stream(self, lanes)

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the tables; return the entries for `model.json`."""
        arrays = {
            f"{name}/{part}": values for name, table in self.tables.items() for part, values in vars(table).items()
        }
        with atomic(folder / FILE, force=True) as part, part.open("wb") as file:
            np.savez(file, unigram=self.unigram, classes=self.classes, **arrays)
        return {"labels": self.labels, "tables_sha256": _hash(folder / FILE)}


def train_ngram(notes: EncodedNotes, vocabulary: Vocabulary, order: int = ORDER, discount: float = DISCOUNT) -> Ngram:
    """Count all n-grams up to `order` within each note. Raises ValueError for an order below 2."""
    if order < 2 or not 0 < discount < 1:
        raise ValueError("an n-gram model has an order of 2 or more and a discount between 0 and 1")
    counts, given, size = counts_of(notes, vocabulary), notes.conditions, vocabulary.size
    labels = int(given.labels.max()) + 1 if given is not None else 0
    classes = np.zeros(size, dtype=np.int64) if given is None else classes_of(notes, size)
    split = [notes.note(row) for row in range(len(notes))]
    text = _Text.of(split, *_layout_of(vocabulary), None if given is None else given.labels, classes)
    owners = text.of_notes(given.patients) if given is not None else None
    counting = _Counting(text, size, owners, 1 if given is None else given.min_patients)
    befores, rows = list[Ints](), text.ids.astype(np.int64)
    for length in range(1, order + 1):
        befores.append(text.before(rows, length))
        if length > 1:
            rows = counting.rows(befores[-1])
    tables, left = dict[str, _Table](), np.ones(text.ids.size)
    left[text.places > 0] = notes.weights
    for length in range(order, 0, -1):
        for name, codes in reversed([*text.contexts(befores[length - 1], length, size, labels)]):
            if given is not None or (length > 1 and name.startswith("all")):
                tables[name] = counting.table(codes, discount, left if given is not None else None)
    return Ngram(vocabulary, (counts + 1.0) / (counts.sum() + counts.size), tables, labels, classes)


@dataclass(frozen=True)
class _Counting:
    """Counts of n-grams in a text; those of fewer than `floor` patients are left out (`owners`: of each token)."""

    text: _Text
    size: int
    owners: Ints | None
    floor: int

    def grams(self, codes: Ints) -> tuple[Ints, Ints, Ints, Mask]:
        """Return the keys of the n-grams, the n-gram of each position with a context, counts, and which are kept."""
        there = codes != NONE
        keys, back, counts = np.unique(
            codes[there] * self.size + self.text.ids[there], return_inverse=True, return_counts=True
        )
        kept = np.ones(keys.size, dtype=np.bool_)
        if self.owners is not None:
            n = int(self.owners.max()) + 1
            kept = np.bincount(np.unique(back * n + self.owners[there]) // n, minlength=keys.size) >= self.floor
        return keys, back, counts, kept

    def rows(self, codes: Ints) -> Ints:
        """Return the row of the n-gram at each position among those that are kept; -1 where there is none."""
        _, back, _, kept = self.grams(codes)
        found = np.full(codes.size, NONE, dtype=np.int64)
        found[codes != NONE] = np.where(kept, np.cumsum(kept) - 1, NONE)[back]
        return found

    def table(self, codes: Ints, discount: float, left: Doubles | None) -> _Table:
        """Return the table of some contexts.

        `left`: part of each position that no longer context explains, which is changed. None: count positions fully.
        """
        keys, back, counts, kept = self.grams(codes)
        explained: Doubles = np.where(kept, 1.0 - discount / counts, 0.0)
        mass: Doubles = counts.astype(np.float64)
        if left is None:
            return _Table.of(keys, mass, mass - discount, self.size)
        there = codes != NONE
        mass = np.bincount(back, weights=left[there], minlength=keys.size).astype(np.float64)
        left[there] *= (1.0 - explained)[back]
        return _Table.of(keys, mass, (mass * explained).astype(np.float64), self.size)


@dataclass(frozen=True)
class _Text:
    """Tokens of notes, an end before each.

    Per token: its place in the note, the first token of its line, its label, and the class of the token before.
    """

    ids: Ids = field(repr=False)
    places: Ints = field(repr=False)
    heads: Ints | None = field(repr=False)
    labels: Ints | None = field(repr=False)
    classes: Ints = field(repr=False)
    sizes: Ints = field(repr=False)

    @classmethod
    def of(
        cls, notes: Sequence[Ids], breaks: Mask | None, blanks: Mask | None, labels: Ints | None, classes: Ints
    ) -> _Text:
        """Join notes."""
        start = np.array([END], dtype=np.int32)
        ids = np.concatenate([part for note in notes for part in (start, note)])
        sizes = np.array([note.size + 1 for note in notes])
        places = np.arange(ids.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        heads = None if breaks is None or blanks is None else _heads(ids, places, breaks, blanks)
        before = classes[np.concatenate([start, ids[:-1]])]
        return cls(ids, places, heads, None if labels is None else np.repeat(labels, sizes), before, sizes)

    def of_notes(self, values: Ints) -> Ints:
        """Return the value of each token's note."""
        return np.repeat(values, self.sizes)

    def before(self, rows: Ints, length: int) -> Ints:
        """Return the row of the context of the n-gram that ends at each position; -1 where there is none."""
        if length == 1:
            return np.where(self.places > 0, 0, NONE)
        return np.where(self.places >= length - 1, np.concatenate([[NONE], rows[:-1]]), NONE)

    def contexts(self, before: Ints, length: int, size: int, labels: int) -> Iterator[tuple[str, Ints]]:
        """Yield the tables of a length, from general to special, with the code of each position's context."""
        yield f"all {length}", before
        if self.heads is not None:
            yield f"line {length}", np.where(before == NONE, NONE, before * size + self.heads)
        if labels and self.labels is not None:
            there = (before != NONE) & (self.labels != NONE)
            yield f"label {length}", np.where(there, before * labels + self.labels, NONE)
        if length == 1:
            yield "class 1", np.where(before == NONE, NONE, self.classes)
            if labels and self.labels is not None:
                yield "both 1", np.where(there, self.classes * labels + self.labels, NONE)


def _heads(ids: Ids, places: Ints, breaks: Mask, blanks: Mask) -> Ints:
    """Return, for each position, the first token of the last line that began before it; END where none did."""
    previous = np.concatenate([[END], ids[:-1]])
    begins = (breaks[previous] | (places == 1)) & ~blanks[ids] & (places > 0)
    at = np.where(begins, np.arange(ids.size), NONE)
    at = np.where(places == 0, np.arange(ids.size), at)
    last = np.maximum.accumulate(at)
    last = np.concatenate([[0], last[:-1]])
    found: Ints = np.where(places == 0, END, ids[last]).astype(np.int64)
    return found


def _layout_of(vocabulary: Vocabulary) -> tuple[Mask | None, Mask | None]:
    return (vocabulary.breaks, vocabulary.blanks) if isinstance(vocabulary, LayoutVocabulary) else (None, None)


class _Stream:
    """Notes being written."""

    def __init__(self, model: Ngram, lanes: int) -> None:
        self._model, self._size = model, model.vocabulary.size
        self._rows = np.full((model.order, lanes), NONE, dtype=np.int64)  # of the last n-gram of each length
        self._heads, self._fresh = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.bool_)
        self._labels = np.full(lanes, NONE, dtype=np.int64)
        self.reset(np.arange(lanes))

    def reset(self, lanes: Ints, labels: Ints | None = None) -> None:
        """Start new notes in these lanes, with these labels."""
        self._rows[:, lanes] = NONE
        self._rows[1 : min(2, len(self._rows)), lanes] = END
        self._heads[lanes], self._fresh[lanes] = END, True
        self._labels[lanes] = NONE if labels is None else labels

    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""
        model, rows = self._model, self._rows
        for length in range(len(rows) - 1, 1, -1):
            keys = np.where(rows[length - 1] == NONE, NONE, rows[length - 1] * self._size + ids)
            rows[length] = _find(model.tables[f"all {length}"].keys, keys)
        rows[1] = ids
        if model.breaks is not None and model.blanks is not None:
            begins = self._fresh & ~model.blanks[ids]
            self._heads = np.where(begins, ids, self._heads)
            self._fresh = model.breaks[ids]

    def probabilities(self) -> Doubles:
        """Return the probabilities of the next token, (lanes, size)."""
        lanes = self._rows.shape[1]
        found, left = np.zeros((lanes, self._size)), np.ones(lanes)
        for length in range(self._model.order, 0, -1):
            before = np.zeros(lanes, dtype=np.int64) if length == 1 else self._rows[length - 1]
            there = before != NONE
            labels = np.where(there & (self._labels != NONE), before * self._model.labels + self._labels, NONE)
            heads = np.where(there, before * self._size + self._heads, NONE)
            codes_of = {"label": labels, "line": heads, "all": before}
            if length == 1:
                classes = self._model.classes[self._rows[1]]
                both = np.where(self._labels != NONE, classes * self._model.labels + self._labels, NONE)
                codes_of = {"both": both, "class": classes, **codes_of}
            for name, codes in codes_of.items():
                if (table := self._model.tables.get(f"{name} {length}")) is not None:
                    self._add(table, codes, found, left)
        return found + left[:, None] * self._model.unigram

    def _add(self, table: _Table, codes: Ints, found: Doubles, left: Doubles) -> None:
        contexts = _find(table.contexts, codes)
        lanes = np.flatnonzero(contexts != NONE)
        rows = contexts[lanes]
        n = table.starts[rows + 1] - table.starts[rows]
        at = np.arange(n.sum()) + np.repeat(table.starts[rows] - np.cumsum(n) + n, n)
        found[np.repeat(lanes, n), table.keys[at] - np.repeat(codes[lanes] * self._size, n)] += (
            np.repeat(left[lanes], n) * table.shares[at]
        )
        left[lanes] *= table.rest[rows]


def _find(keys: Ints, wanted: Ints) -> Ints:
    """Return the positions of some keys; -1 for unknown keys."""
    if not keys.size:
        return np.full(wanted.size, NONE, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, NONE)


def _at(values: Doubles, rows: Ints) -> Doubles:
    """Return the values of some rows; 0 where the row is -1."""
    return np.where(rows == NONE, 0.0, values[np.maximum(rows, 0)]) if values.size else np.zeros(rows.size)


def load_ngram(folder: Path, vocabulary: Vocabulary, meta: Mapping[str, Any]) -> Ngram:
    """Return the model that `save` wrote. Raises InputError for damaged files."""
    try:
        if _hash(folder / FILE) != meta.get("tables_sha256"):
            raise InputError(f"{FILE} is damaged: its hash differs", where=folder.name)
        parts: dict[str, dict[str, Any]] = {}
        with np.load(folder / FILE, allow_pickle=False) as arrays:
            unigram, classes = arrays["unigram"], arrays["classes"]
            for name in set(arrays.files) - {"unigram", "classes"}:
                table, _, part = name.partition("/")
                parts.setdefault(table, {})[part] = arrays[name]
        tables = {name: _Table(**columns) for name, columns in parts.items()}
        return Ngram(vocabulary, unigram, tables, int(meta["labels"]), classes)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("has no readable n-grams", where=folder.name) from None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


ABOUT = "a model of word sequences that several patients share"
language_models.register("ngram")(CountedKind(about=ABOUT, count=train_ngram, load=load_ngram))
