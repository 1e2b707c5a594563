"""An n-gram model with absolute discounting; with `Conditions`, of contexts and tokens that enough
patients share.

p(w | h) = max(c(hw) - D, 0) / c(h) + B(h) p(w | h'), where h' is a more general context, B(h) is
the remaining probability, and a Lidstone unigram is below. Source: Chen & Goodman 1999, section 2.6
(interpolated, one discount).

Without conditions the contexts are the last tokens. The model is trained in seconds and memorizes
word sequences: an attacker with only the released text would use such a model.

With conditions a context with a token of fewer than `min_patients` patients is left out. Its
probability goes to more general contexts, which count only what special ones leave over: the token
at a position counts as the product of the shares that they left. This is the idea of Kneser-Ney,
and keeps the frequency of each token. Contexts are listed in `contexts`. Where a sentence can
begin, the first ones are the last sections and the place in the section; they order the sections
and give them their lengths. What no context of tokens explains is drawn in two steps: a class of
tokens after the classes before it, then a token of the class, with its frequency among the notes of
the label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core import Doubles, InputError, Ints, atomic, kernel
from clinveil.lm.groups import classes_of
from clinveil.lm.history import NONE, History, hashed, histories, marks_of
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import CountedKind
from clinveil.lm.vocabulary import Ids, Vocabulary

ORDER = 5
DISCOUNT = 0.75
LONGEST = 7  # tokens of a context, with conditions
# a context with the section or label comes before one without that has up to this many more tokens
FIRST = 2
LABELLED = 2  # tokens of the longest context with a label and without a section
# exponent of B(h) when notes are written: above 1, fewer words are drawn from general contexts
SHARPNESS = 1.2
FILE = "ngrams.npz"
ARRAYS = ("unigram", "classes", "within")


@kernel
def add_shares(
    lanes: Ints,
    rows: Ints,
    factors: Doubles,
    starts: Ints,
    tokens: Ints,
    shares: Doubles,
    chances: Doubles,
) -> None:
    """Add the shares of the tokens after a context to the chances of each of some lanes.

    Args:
        lanes, rows, factors: (n,) lane, context and multiplier. starts, tokens, shares: of a table.
        chances: (all lanes, size), changed.
    """
    for index in range(lanes.size):
        lane = lanes[index]
        context = rows[index]
        for row in range(starts[context], starts[context + 1]):
            chances[lane, tokens[row]] += factors[index] * shares[row]


@dataclass(frozen=True)
class _Table:
    """Tokens after each context.

    Attributes:
        contexts: (n_contexts,) sorted hashes. starts: (n_contexts + 1,) first row of each. rest:
            (n_contexts,) B.
        tokens: (n_rows,) sorted within their context. shares: (n_rows,) discounted share of the
            token.
    """

    contexts: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    rest: Doubles = field(repr=False)
    tokens: Ints = field(repr=False)
    shares: Doubles = field(repr=False)

    @cached_property
    def _keys(self) -> Ints:
        rows: Ints = np.repeat(np.arange(self.contexts.size), np.diff(self.starts))
        return rows * (int(self.tokens.max(initial=0)) + 1) + self.tokens

    def mixed(self, codes: Ints, ids: Ints, below: Doubles) -> Doubles:
        """Return the probability of each token after its context, (n,); `below` where the context
        is unknown.
        """
        found = _find(self.contexts, codes)
        size = int(self.tokens.max(initial=0)) + 1
        row = _find(self._keys, np.where((found == NONE) | (ids >= size), NONE, found * size + ids))
        here = _at(self.shares, row) + _at(self.rest, found) * below
        return np.where(found == NONE, below, here)

    def add(self, codes: Ints, chances: Doubles, left: Doubles, sharpness: float) -> None:
        """Add to `chances`, (lanes, size), what the contexts explain of `left`, (lanes,); change
        both.
        """
        at = _find(self.contexts, codes)
        lanes = np.flatnonzero(at != NONE)
        if not lanes.size:
            return
        rows = at[lanes]
        rest = self.rest[rows] ** sharpness
        factor = left[lanes] * (1.0 - rest) / np.maximum(1.0 - self.rest[rows], 1e-300)
        add_shares(lanes, rows, factor, self.starts, self.tokens, self.shares, chances)
        left[lanes] *= rest


def contexts(text: History, labels: Ints, classes: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield the tables and the code of each context, from special to general; NONE where there is
    none.

    Args:
        labels: of the notes, NONE if unknown. classes: of the tokens, and one more of the places
            before a note.
    """
    known = labels != NONE
    start = text.place == 0
    own = labels
    w = text.window
    section, *before = text.sections
    c = classes[w[:3]]
    place = (w[0], section, text.lines, text.sentences)
    rows: list[tuple[str, Any, tuple[Ints, ...]]] = [
        ("plan 5", start & known, (*place, before[0], own)),
        ("plan 4", start, (*place, *before, text.earlier)),
        ("plan 3", start, (*place, before[0])),
        ("plan 2", start & known, (*place, own)),
        ("plan 1", start, place),
        ("plan 0", start, (w[0], text.earlier)),
    ]
    part = hashed(section, np.minimum(text.lines, 1))
    for length in range(LONGEST, 0, -1):
        if length == 1:
            rows += [("open 1", text.place > 1, (w[0], text.opening)), ("near 3", True, (*c,))]
        if length > FIRST + 1 or length == 1:
            fewer = max(1, length - FIRST)
            there = w[fewer - 1] != NONE
            rows.append((f"both {fewer}", there & known, (*w[:fewer], part, own)))
            rows.append((f"section {fewer}", there, (*w[:fewer], part)))
            rows += (
                [(f"label {fewer}", there & known, (*w[:fewer], own))] if fewer <= LABELLED else []
            )
        if length == 1:
            rows.append(("near 2", True, (w[0], c[1])))
        rows.append((f"all {length}", w[length - 1] != NONE, (*w[:length],)))
    rows += [
        ("near 1", True, (c[0], c[1])),
        ("near label", known, (c[0], own)),
        ("near 0", True, (c[0],)),
    ]
    for name, fits, parts in rows:
        yield name, np.where(fits, hashed(*parts), NONE)


def class_contexts(text: History, classes: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield the tables of classes and the code of each context."""
    c = classes[text.window[:3]]
    yield "class 3", hashed(*c)
    yield "class 2", hashed(*c[:2])
    yield "class section", hashed(c[0], text.sections[0])
    yield "class 1", hashed(c[0])


def plain_contexts(text: History) -> Iterator[tuple[str, Ints]]:
    """Yield the tables of the last tokens and the code of each context."""
    for length in range(len(text.window), 0, -1):
        yield (
            f"all {length}",
            np.where(text.window[length - 1] == NONE, NONE, hashed(*text.window[:length])),
        )


class Ngram:
    """N-gram model: scores notes; with conditions it also writes them."""

    kind = "ngram"
    sharpness = SHARPNESS

    def __init__(
        self, vocabulary: Vocabulary, tables: Mapping[str, _Table], order: int, unigram: Doubles,
        classes: Ints,
        within: Doubles,
    ) -> None:  # fmt: skip
        """Args: classes: of the tokens; empty without conditions. within: (labels + 1, size), last
        row: any label.
        """
        self.vocabulary = vocabulary
        self.tables = dict(tables)
        self.order = order
        self.unigram = unigram
        self.classes = classes
        self.within = within
        self.padded = np.append(classes, classes.max(initial=0) + 1)
        self.of_class = (
            np.bincount(classes, unigram).astype(np.float64) if classes.size else unigram
        )

    @property
    def labelled(self) -> bool:
        """Whether notes are written for a label."""
        return len(self.within) > 1

    def score(self, notes: Sequence[Ids], labels: Ints | None = None) -> list[Doubles]:
        """Return the log-probabilities of all tokens; `labels`: (n_notes,) of the notes, -1 for
        none.
        """
        if not notes:
            return []
        sizes = [note.size for note in notes]
        ids = np.concatenate(notes).astype(np.int64)
        text = histories(
            notes, self.order - 1, marks_of(self.vocabulary, plain=not self.classes.size)
        )
        of_token: Ints = np.repeat(np.full(len(notes), NONE) if labels is None else labels, sizes)
        if self.classes.size:
            chance = self.of_class[self.classes[ids]]
            for name, codes in reversed([*class_contexts(text, self.padded)]):
                if name in self.tables:
                    chance = self.tables[name].mixed(codes, self.classes[ids], chance)
            chance = chance * self.within[of_token, ids]
            every = [*contexts(text, of_token, self.padded)]
        else:
            chance = self.unigram[ids]
            every = [*plain_contexts(text)]
        for name, codes in reversed(every):
            if name in self.tables:
                chance = self.tables[name].mixed(codes, ids, chance)
        return np.split(np.log(chance), np.cumsum(sizes)[:-1])

    def following(self, before: Sequence[int]) -> tuple[list[tuple[Ints, Doubles]], float]:
        """Return the tokens seen after a context and their probabilities, by context length, and
        the unigram's weight.

        `before`: the tokens of the note so far, with an end in front; a token's probabilities add
        up.
        """
        found = list[tuple[Ints, Doubles]]()
        rest = 1.0
        for length in range(min(self.order - 1, len(before)), 0, -1):
            table = self.tables[f"all {length}"]
            at = int(
                _find(table.contexts, hashed(*np.array(before[: -length - 1 : -1])[:, None]))[0]
            )
            if at != NONE:
                rows = slice(table.starts[at], table.starts[at + 1])
                found.append((table.tokens[rows], rest * table.shares[rows]))
                rest *= float(table.rest[at])
        return found, rest

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    def stream(self, lanes: int) -> _Stream:
        """Return a stream that writes `lanes` notes at once."""
        return _Stream(self, lanes)

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the tables; return the entries for `model.json`."""
        arrays = {
            f"{name}/{part}": getattr(table, part)
            for name, table in self.tables.items()
            for part in _Table.__dataclass_fields__
        }
        arrays |= {name: getattr(self, name) for name in ARRAYS}
        with atomic(folder / FILE, force=True) as part, part.open("wb") as file:
            np.savez(file, **arrays)
        return {"order": self.order, "tables_sha256": _hash(folder / FILE)}


class _Stream:
    """Notes being written."""

    def __init__(self, model: Ngram, lanes: int) -> None:
        marks = marks_of(model.vocabulary, plain=not model.classes.size)
        self._model = model
        self._text = History(lanes, model.order - 1, marks)
        self._labels: Ints = np.full(lanes, NONE, dtype=np.int64)

    def reset(self, lanes: Ints, labels: Ints | None = None) -> None:
        """Start new notes in these lanes, with these labels."""
        self._text.reset(lanes)
        self._labels[lanes] = NONE if labels is None else labels

    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""
        self._text.push(ids)

    def probabilities(self) -> Doubles:
        """Return the probabilities of the next token, (lanes, size)."""
        model = self._model
        left = np.ones(self._labels.size)
        found = np.zeros((left.size, model.vocabulary.size))
        if not model.classes.size:
            self._explain(plain_contexts(self._text), found, left)
            return found + left[:, None] * model.unigram
        self._explain(contexts(self._text, self._labels, model.padded), found, left)
        classes = np.zeros((left.size, model.of_class.size))
        self._explain(class_contexts(self._text, model.padded), classes, left)
        classes += left[:, None] * model.of_class
        return found + classes[:, model.classes] * model.within[self._labels]

    def _explain(self, codes_of: Iterator[tuple[str, Ints]], found: Doubles, left: Doubles) -> None:
        sharpness = self._model.sharpness if self._model.classes.size else 1.0
        for name, codes in codes_of:
            if name in self._model.tables:
                self._model.tables[name].add(codes, found, left, sharpness)


def train_ngram(
    notes: EncodedNotes, vocabulary: Vocabulary, order: int = ORDER, discount: float = DISCOUNT
) -> Ngram:
    """Count tokens after their contexts within each note; with conditions, after contexts of up to
    `LONGEST` tokens.

    Raises ValueError for an order below 2.
    """
    if order < 2 or not 0 < discount < 1:
        raise ValueError("an n-gram model has an order of 2 or more and a discount between 0 and 1")
    counts = np.bincount(notes.ids, notes.weights, vocabulary.size)
    given = notes.conditions
    unigram = (counts + 1.0) / (counts.sum() + counts.size)
    order = order if given is None else LONGEST + 1
    marks = marks_of(vocabulary, plain=given is None)
    text = histories([notes.note(row) for row in range(len(notes))], order - 1, marks)
    ids = notes.ids.astype(np.int64)
    none = np.zeros(0, dtype=np.int64)
    if given is None:
        counting = _Counting(discount)
        tables = {name: counting.table(codes, ids) for name, codes in plain_contexts(text)}
        return Ngram(vocabulary, tables, order, unigram, none, np.zeros((0, 0)))
    classes = classes_of(notes, vocabulary.size)
    of_token = np.repeat(given.labels, notes.lengths)
    padded = np.append(classes, classes.max() + 1)
    counting = _Counting(
        discount, np.repeat(given.patients, notes.lengths), given.min_patients, notes.weights.copy()
    )
    tables = {name: counting.table(codes, ids) for name, codes in contexts(text, of_token, padded)}
    within = counting.within(ids, of_token, classes)
    tables |= {
        name: counting.table(codes, classes[ids]) for name, codes in class_contexts(text, padded)
    }
    return Ngram(vocabulary, tables, order, unigram, classes, within)


@dataclass(frozen=True)
class _Counting:
    """Counts of tokens after contexts; a pair of fewer than `floor` patients is left out (`owners`:
    of each token).

    `left`: part of each token that no earlier table explains, which is changed. None: tables count
    tokens fully.
    """

    discount: float
    owners: Ints | None = None
    floor: int = 1
    left: Doubles | None = None

    def table(self, codes: Ints, ids: Ints) -> _Table:
        """Return the table of some contexts."""
        there = np.flatnonzero(codes != NONE)
        contexts, context = np.unique(codes[there], return_inverse=True)
        size = int(ids.max(initial=0)) + 1
        pairs = context * size + ids[there]
        keys, back, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        explained = (counts - self.discount) / counts
        mass = counts.astype(np.float64)
        kept = np.ones(keys.size, dtype=np.bool_)
        if self.owners is not None and self.left is not None:
            kept = self._shared(back, there, keys.size)
            mass = np.bincount(back, weights=self.left[there], minlength=keys.size).astype(
                np.float64
            )
            explained = np.where(kept, explained, 0.0)
            self.left[there] *= (1.0 - explained)[back]
        row = keys // size
        totals = np.bincount(row, weights=mass, minlength=contexts.size)
        shares: Doubles = (mass * explained / np.maximum(totals[row], 1e-300)).astype(np.float64)
        rest: Doubles = (1.0 - np.bincount(row, weights=shares, minlength=contexts.size)).astype(
            np.float64
        )
        used = np.bincount(row[kept], minlength=contexts.size)
        some = used > 0
        starts = np.concatenate([[0], np.cumsum(used[some])]).astype(np.int64)
        return _Table(
            contexts[some], starts, np.maximum(rest[some], 0.0), (keys % size)[kept], shares[kept]
        )

    def _shared(self, rows: Ints, places: Ints, n: int) -> Any:
        """Return which of `n` rows enough patients have; `rows`: of each of some places of the
        text.
        """
        assert self.owners is not None
        often = np.flatnonzero(np.bincount(rows, minlength=n)[rows] >= self.floor)
        patients = int(self.owners.max(initial=0)) + 1
        pairs = np.unique(rows[often] * patients + self.owners[places[often]])
        return np.bincount(pairs // patients, minlength=n) >= self.floor

    def within(self, ids: Ints, labels: Ints, classes: Ints) -> Doubles:
        """Return the probability of each token within its class, (labels + 1, size): of each label,
        and of any.
        """
        assert self.left is not None
        every = np.bincount(ids, self.left, minlength=classes.size) + 0.1
        rows = list[Doubles]()
        for label in range(int(labels.max(initial=NONE)) + 1):
            at = np.flatnonzero(labels == label)
            mass = np.bincount(ids[at], self.left[at], minlength=classes.size)
            kept = np.where(
                self._shared(ids[at], at, classes.size), np.maximum(mass - self.discount, 0.0), 0.0
            )
            rows.append(kept + (mass.sum() - kept.sum() + 1.0) * every / every.sum())
        return np.array([row / np.bincount(classes, row)[classes] for row in (*rows, every)])


def _find(keys: Ints, wanted: Ints) -> Ints:
    """Return the positions of some keys; -1 for unknown keys."""
    if not keys.size:
        return np.full(wanted.size, NONE, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, NONE)


def _at(values: Doubles, rows: Ints) -> Doubles:
    """Return the values of some rows; 0 where the row is -1."""
    return (
        np.where(rows == NONE, 0.0, values[np.maximum(rows, 0)])
        if values.size
        else np.zeros(rows.size)
    )


def load_ngram(folder: Path, vocabulary: Vocabulary, meta: Mapping[str, Any]) -> Ngram:
    """Return the model that `save` wrote. Raises InputError for damaged files."""
    try:
        if _hash(folder / FILE) != meta.get("tables_sha256"):
            raise InputError(f"{FILE} is damaged: its hash differs", where=folder.name)
        with np.load(folder / FILE, allow_pickle=False) as arrays:
            names = {name.partition("/")[0] for name in set(arrays.files) - {*ARRAYS}}
            tables = {
                name: _Table(
                    contexts=arrays[f"{name}/contexts"],
                    starts=arrays[f"{name}/starts"],
                    rest=arrays[f"{name}/rest"],
                    tokens=arrays[f"{name}/tokens"],
                    shares=arrays[f"{name}/shares"],
                )
                for name in names
            }
            return Ngram(vocabulary, tables, int(meta["order"]), *(arrays[name] for name in ARRAYS))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("has no readable n-grams", where=folder.name) from None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


ABOUT = "a model of word sequences that several patients share"
NGRAM = CountedKind(about=ABOUT, count=train_ngram, load=load_ngram)
