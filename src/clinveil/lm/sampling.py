"""Write synthetic notes, many at once, each with its own keyed stream of random numbers.

The random numbers of note k depend on (key, k) only, so the note is the same for any number of
lanes. A word is the first one whose cumulative probability exceeds the random number. With
probabilities in double precision, another batch shape moves this limit by about 1e-16, which
practically never changes a word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, repeat

import numpy as np

from clinveil.core import Doubles, Ints, Key, Kind, Mask
from clinveil.lm.groups import groups_of
from clinveil.lm.layout import HEADING, RARE_WORD, LayoutVocabulary
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import FLOORS, Conditions, EncodedNotes
from clinveil.lm.vocabulary import END, Ids, Vocabulary

SMOOTHING = 100.0  # tokens with the frequencies of all notes, added to those of each label


@dataclass(frozen=True)
class Steering:
    """How the label of a note changes each step: the scores of the tokens get a bias.

    Attributes:
        bias: (n_rows, size) added to log-probabilities. shares: (n_labels, n_groups) of notes; a
            row for each group of each label.
        vocabulary: of layout, or None. Then a word or number never follows another without
            something between, which would make a new word, and shared words are written in the
            places of rare ones (`filled`).
        once: headings that do not occur twice in the notes of `min_patients` patients; they are not
            repeated.
    """

    bias: Doubles = field(repr=False)
    shares: Doubles = field(repr=False)
    vocabulary: LayoutVocabulary | None = field(default=None, repr=False)
    once: frozenset[int] = frozenset()

    @classmethod
    def of(cls, notes: EncodedNotes, vocabulary: Vocabulary, weight: float) -> Steering:
        """Return a row for each label and group of notes.

        Its bias is `weight` times the smoothed log ratio of the label's token frequencies to those
        of all notes, plus the log ratio of the group's.
        """
        given = notes.conditions
        size = vocabulary.size
        kept = vocabulary if isinstance(vocabulary, LayoutVocabulary) else None
        if given is None:
            return cls(np.zeros((1, size)), np.ones((1, 1)), kept)
        labels = np.maximum(given.labels, 0)
        of_token = np.repeat(labels, notes.lengths)
        counts = [
            np.bincount(notes.ids[of_token == label], notes.weights[of_token == label], size)
            for label in range(labels.max() + 1)
        ]
        overall = (np.sum(counts, axis=0) + 0.5) / (notes.weights.sum() + 0.5 * size)
        frequencies = np.array(
            [(own + SMOOTHING * overall) / (own.sum() + SMOOTHING) for own in counts]
        )
        group, ratios = groups_of(
            notes, frequencies, labels, given.patients, FLOORS * given.min_patients
        )
        bias = weight * np.log(frequencies / overall)[:, None] + ratios
        shares = np.full(bias.shape[:2], 1e-9)
        np.add.at(shares, (labels, group), 1.0)
        once = frozenset(_once(notes, kept, given)) if kept else frozenset[int]()
        return cls(bias.reshape(-1, size), shares / shares.sum(axis=1, keepdims=True), kept, once)

    def row(self, label: int, uniform: float) -> int:
        """Return the row of a note with this label, for a uniform random number."""
        sums = np.cumsum(self.shares[label])
        return label * sums.size + int(np.searchsorted(sums, uniform * sums[-1], side="right"))

    @cached_property
    def factors(self) -> Doubles:
        """exp(bias), of words only if there is layout; empty if the bias changes nothing."""
        bias = np.where(self.words, self.bias, 0.0) if self.vocabulary else self.bias
        return np.exp(bias) if bias.any() else np.zeros((0, 0))

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """Token classes of the first and last character of each piece; empty without layout."""
        none = np.zeros(0, dtype=np.int64)
        first, last = self.vocabulary.edges if self.vocabulary else (none, none)
        return first.astype(np.int64), last.astype(np.int64)

    @cached_property
    def words(self) -> Mask:
        """Which pieces are words, the rare word included, (size,): labels and rare words change
        only these.
        """
        found: Mask = self.edges[1] == Kind.WORD
        found[[*(self.vocabulary.slots if self.vocabulary else ())]] = True
        return found

    def applied(self, probabilities: Doubles, rows: Ints, tails: Ints) -> Doubles:
        """Return the changed probabilities, not normalized; `tails`: class of the last character of
        each lane.
        """
        changed = probabilities * self.factors[rows] if len(self.factors) else probabilities.copy()
        if self.vocabulary is None:
            return changed
        for kind in (Kind.WORD, Kind.NUMBER):
            changed[np.ix_(tails == kind, self.edges[0] == kind)] = 0.0
        before = probabilities[:, self.words].sum(axis=1)
        after = changed[:, self.words].sum(axis=1)
        scale = np.divide(before, after, out=np.ones_like(after), where=after > 0)
        found: Doubles = np.where(self.words, changed * scale[:, None], changed)
        return found

    def filled(self, probabilities: Doubles, slot: int, uniform: float) -> int:
        """Draw the shared word that is written in place of a rare one."""
        assert self.vocabulary is not None
        options = self.vocabulary.slots[slot]
        if not options.size:
            return RARE_WORD
        return int(options[drawn(probabilities[options][None] + 1e-12, np.array([uniform]))[0]])

    def tail(self, before: int, token: int) -> int:
        """Return the class of the last character after a token; one without text changes
        nothing.
        """
        last = int(self.edges[1][token]) if self.vocabulary else -1
        return before if last < 0 else last


def _once(
    notes: EncodedNotes, vocabulary: LayoutVocabulary, conditions: Conditions
) -> Iterator[int]:
    """Yield the headings that fewer than `min_patients` patients have twice in a note."""
    size = vocabulary.size
    at = np.flatnonzero(vocabulary.marks[notes.ids] == HEADING)
    rows = np.searchsorted(notes.offsets, at, side="right") - 1
    pairs, times = np.unique(rows * size + notes.ids[at], return_counts=True)
    owners: dict[int, set[int]] = defaultdict(set)
    for pair in pairs[times > 1].tolist():
        owners[pair % size].add(int(conditions.patients[pair // size]))
    headings = np.flatnonzero(vocabulary.marks == HEADING).tolist()
    yield from (heading for heading in headings if len(owners[heading]) < conditions.min_patients)


@dataclass(frozen=True)
class SamplingConfig:
    """Settings of sampling.

    Attributes:
        batch_size: notes written at once. max_new_tokens: maximum tokens of a note; longer notes
            are truncated.
        temperature: 1 samples from the unchanged model. steering: how labels change the
            probabilities.
    """

    batch_size: int = 64
    max_new_tokens: int = 4_000
    temperature: float = 1.0
    steering: Steering | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.max_new_tokens < 1 or not self.temperature > 0:
            raise ValueError("batch_size, max_new_tokens and temperature must be positive")


@dataclass(frozen=True)
class GeneratedNote:
    """One note: its number, its tokens without the end, and whether it was truncated.

    `drawn`: the tokens before rare words were replaced.
    """

    number: int
    ids: Ids = field(repr=False)
    truncated: bool
    drawn: Ids = field(repr=False)


def batch_size_for(notes: int, most: int = 64) -> int:
    """Return the batch size for about this many notes; unfinished notes are discarded at the
    end.
    """
    return max(1, min(most, notes // 4))


class _Lane:
    """A note that is being written, with its random numbers."""

    def __init__(self, key: Key, steering: Steering | None, number: int, label: int) -> None:
        seed = key.stream("synthetic note", str(number))
        self.random = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
        self.number = number
        self.label = label
        self.ids = list[int]()
        self.tail = -1
        self.drawn = list[int]()
        self.written = set[int]()  # headings that are not repeated
        self.row = steering.row(label, self.random.random()) if steering else 0


def generate(
    model: LanguageModel,
    key: Key,
    config: SamplingConfig,
    *,
    first: int = 0,
    labels: Iterable[int] = repeat(0),
) -> Iterator[GeneratedNote]:
    """Yield notes without end, in the order of their numbers from `first` on; `labels`: of each
    note.
    """
    stream = model.stream(config.batch_size)
    coming = zip(count(first), labels)
    number = first
    lanes = [_Lane(key, config.steering, *next(coming)) for _ in range(config.batch_size)]
    stream.reset(np.arange(len(lanes)), np.array([lane.label for lane in lanes]))
    waiting: dict[int, GeneratedNote] = {}
    while True:
        uniform = np.array([lane.random.random() for lane in lanes])
        probabilities = _steered(stream.probabilities(), lanes, config)
        if config.temperature != 1.0:
            logs = np.log(np.maximum(probabilities, 1e-300)) / config.temperature
            probabilities = np.exp(logs - logs.max(axis=1, keepdims=True))
        ids = drawn(probabilities, uniform)
        for place, (lane, token) in enumerate(zip(lanes, ids.tolist(), strict=True)):
            lane.drawn.append(token)
            if (
                config.steering
                and config.steering.vocabulary
                and token in config.steering.vocabulary.slots
            ):
                token = config.steering.filled(probabilities[place], token, lane.random.random())
            lane.ids.append(token)
            if config.steering and token in config.steering.once:
                lane.written.add(token)
            lane.tail = config.steering.tail(lane.tail, token) if config.steering else -1
        over = [
            i
            for i, lane in enumerate(lanes)
            if lane.ids[-1] == END or len(lane.ids) >= config.max_new_tokens
        ]
        stream.push(ids)
        for i in over:
            truncated = lanes[i].ids[-1] != END
            ids_of, drawn_of = (
                np.array(row if truncated else row[:-1], dtype=np.int32)
                for row in (lanes[i].ids, lanes[i].drawn)
            )
            waiting[lanes[i].number] = GeneratedNote(lanes[i].number, ids_of, truncated, drawn_of)
            lanes[i] = _Lane(key, config.steering, *next(coming))
        if over:
            stream.reset(np.array(over), np.array([lanes[i].label for i in over]))
        while number in waiting:
            yield waiting.pop(number)
            number += 1


def _steered(probabilities: Doubles, lanes: Sequence[_Lane], config: SamplingConfig) -> Doubles:
    if config.steering is None:
        return probabilities
    rows = np.array([lane.row for lane in lanes])
    tails = np.array([lane.tail for lane in lanes])
    probabilities = config.steering.applied(probabilities, rows, tails)
    for row, lane in enumerate(lanes):
        probabilities[row, [*lane.written]] = 0.0
    probabilities[probabilities.sum(axis=1) <= 0, END] = 1.0
    # A note does not end at once, unless the model allows nothing else.
    begins = np.array([not lane.ids for lane in lanes])
    probabilities[begins & (probabilities.sum(axis=1) > probabilities[:, END]), END] = 0.0
    return probabilities


def drawn(probabilities: Doubles, uniform: Doubles) -> Ints:
    """Return one word per row, (lanes,), by inverting the cumulative probabilities at uniform
    numbers.
    """
    sums = np.cumsum(probabilities, axis=1)
    above = sums > (uniform * sums[:, -1])[:, None]
    words = above.argmax(axis=1)
    # If rounding puts the number at the upper end, take the last word with a positive probability.
    for row in np.flatnonzero(~above[np.arange(words.size), words]):
        words[row] = np.flatnonzero(probabilities[row])[-1]
    return words.astype(np.int64)
