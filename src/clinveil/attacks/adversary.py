"""The interface of an adversary: an attacker who recovers the source word of each released word.

Each adversary is one file of `attacks/adversaries`. Its `knowledge` lists everything that it uses
of the view. It never uses the truth of the notes that it attacks.
`attacks/channel/adversary_suite.py` runs and scores all adversaries.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from clinveil.attacks.threats import Holding
from clinveil.channel import (
    LIKELIEST,
    Channel,
    Mechanism,
    NoteLikelihood,
    ReleasedNote,
    mechanism_of,
)
from clinveil.core import Doubles, Ints, Members, Settings, first_paragraph

if TYPE_CHECKING:
    from numpy.random import Generator
    from scipy.sparse import csc_matrix

    from clinveil.corpus import Corpus

Knowledge = Literal["channel", "others", "pairs", "vectors"]
KNOWLEDGE: dict[Knowledge, str] = {
    "channel": (
        "the channel: word vectors or neighbour table, mechanism and settings, but not the key"
    ),
    "others": "other notes of the same kind, in plain text",
    "pairs": "some notes in both forms, plain and released",
    "vectors": "word vectors of their own, trained without the source",
}
"""What an adversary may know in addition to the released notes and the software; recorded with
every finding.
"""


@dataclass(frozen=True, eq=False)
class NoteRows:
    """One released note with the source word of each released word; words without a known source
    are left out.

    Attributes:
        outputs: (n,) rows of `channel.words`, in released order.
        truth: (n,) rows of the source words; `channel.unknown` for a word outside the vocabulary.
            Secret: adversaries may use it in `AdversaryView.pairs` only.
        patient: number of the patient.
        written: the whole released note, and places: (n,) of `outputs` in it; None where all words
            are `outputs` and no context is used.
    """

    outputs: Ints
    truth: Ints
    patient: int
    written: ReleasedNote | None = None
    places: Ints | None = None

    def __len__(self) -> int:
        return int(self.outputs.size)

    def likelihood(self, mechanism: Mechanism) -> NoteLikelihood:
        """Return the probabilities of the outputs under a mechanism."""
        if self.written is None or self.places is None:
            no_stops = np.zeros(len(self), dtype=np.bool_)
            return mechanism.likelihood(ReleasedNote(self.outputs, no_stops))
        return mechanism.likelihood(self.written).at(self.places)

    def with_outputs(self, outputs: Ints) -> NoteRows:
        """Return the note with other released words."""
        if self.written is None or self.places is None:
            return replace(self, outputs=outputs)
        every = self.written.outputs.copy()
        every[self.places] = outputs
        return replace(self, outputs=outputs, written=replace(self.written, outputs=every))


@dataclass(frozen=True, eq=False)
class AdversaryView:
    """Everything available to an adversary.

    Attributes:
        channel: mechanism, words and policy. Adversaries that do not know the channel may use only
            its `words`, as a list of strings, and its policy, which is public.
        notes: the notes to attack.
        released: outputs of all released notes, including those in `notes`.
        others: plain-text notes of other patients, as rows of `channel.words`; `channel.unknown`
            for other words.
        pairs: notes of other patients that the attacker has in plain and released form.
        release: all released notes, for the language model of an attacker; None where words are not
            drawn in context.
        counts: (n_words,) occurrences of each word in the source.
        threads: number of threads; no result depends on it. scratch: private folder for training.
        cache: results shared between attacks on the same release (shadow vectors, n-gram tables).
            Copies made with `dataclasses.replace` share it; a view of another release needs a new
            one.
    """

    channel: Channel
    notes: Sequence[NoteRows]
    released: Sequence[Ints] = ()
    others: Sequence[Ints] = ()
    pairs: Sequence[NoteRows] = ()
    counts: Ints | None = None
    release: Corpus | None = None
    threads: int = 1
    scratch: Path | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def cached(self, name: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the cached result of this name, or compute and cache it."""
        if name not in self.cache:
            self.cache[name] = compute()
        return self.cache[name]

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism of the channel."""
        mechanism: Mechanism = self.cached("mechanism", lambda: mechanism_of(self.channel))
        return mechanism

    @cached_property
    def likeliest(self) -> Ints:
        """Return the most frequent words of `others`, candidates of every output in context."""
        return np.sort(np.argsort(-self.prior, kind="stable")[:LIKELIEST])

    @cached_property
    def by_output(self) -> csc_matrix:
        """Return P(output | input), (n_words, n_words), in columns by output with sorted inputs."""
        likeliest = np.argsort(-self.prior, kind="stable")[:LIKELIEST]
        matrix = self.channel.mixed(likeliest)[: len(self.channel.words)].tocsc()
        matrix.sort_indices()
        return matrix

    @cached_property
    def prior(self) -> Doubles:
        """Return the share of each word in `others`, (n_words,), smoothed by 0.1 occurrences; sums
        to 1.
        """
        n_words = len(self.channel.words)
        joined = np.concatenate([np.zeros(0, dtype=np.int64), *self.others])
        counts = np.bincount(joined, minlength=n_words + 1)[:n_words] + 0.1
        return np.asarray(counts / counts.sum(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Recovery:
    """Candidate source words of each released word of one note, with their probabilities.

    Attributes:
        starts: (n + 1,) offsets of each released word in `rows` and `chances`. rows: candidate rows
            of `channel.words`; a word may have none.
        chances: probabilities above 0 that sum to at most 1 for each word.
    """

    starts: Ints
    rows: Ints
    chances: Doubles


class Adversary(Settings):
    """One attacker: an immutable object with its settings as fields.

    The first line of a subclass's docstring describes the attack.

    Attributes:
        knowledge: what it uses of a view besides `channel.words`, `notes[].outputs`, `released` and
            the policy.
        in_release: the settings used on every release, one entry per attack.
        max_words: maximum number of words to attack in a release or as a control, for slow
            adversaries.
        order: position among the adversaries.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset()
    in_release: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    max_words: ClassVar[int | None] = None
    order: ClassVar[int] = 1000

    @abstractmethod
    def recover(self, view: AdversaryView, rng: Generator) -> Iterable[Recovery]:
        """Return the candidates for each of `view.notes`, in order. Make all random draws before
        the first result.
        """

    @classmethod
    def help(cls) -> str:
        """Return the first line of the docstring."""
        return first_paragraph(getdoc(cls))

    @property
    def holding(self) -> Holding | None:
        """Return the row of the adversary table that this attack belongs to; None for none."""
        if "channel" in self.knowledge:
            return "stolen-vectors"
        return "shadow" if "vectors" in self.knowledge else "recipient"

    @property
    def variant(self) -> str:
        """Return a label of non-default settings; empty for the defaults."""
        return ""

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether the view contains everything this adversary needs."""
        available: dict[str, Any] = {"others": view.others, "pairs": view.pairs}
        return all(available.get(need, True) for need in self.knowledge)


ADVERSARIES: Members[type[Adversary]] = Members(
    "adversary",
    {
        "bigram": "clinveil.attacks.adversaries.bigram:Bigram",
        "known-pairs": "clinveil.attacks.adversaries.known_pairs:KnownPlaintext",
        "own-vectors": "clinveil.attacks.adversaries.own_vectors:OwnVectors",
    },
)
"""All adversaries by name."""


def from_table(outputs: Ints, starts: Ints, rows: Ints, chances: Doubles) -> Recovery:
    """Return the candidates of a note where they depend on the output only.

    Args:
        outputs: (n,) of the note. starts, rows, chances: (n_words + 1,) offsets and the candidates
            of each output.
    """
    begin, indices = entries(starts, outputs)
    return Recovery(begin, rows[indices].astype(np.int64), chances[indices])


def entries(starts: Ints, outputs: Ints) -> tuple[Ints, Ints]:
    """Return the indices of a table's entries for the outputs of a note, and the offset of each
    output in them.

    Args:
        starts: (n_words + 1,) offsets of each word in the table. outputs: (n,) of the note.

    Returns:
        (n + 1,) offsets, then (n_entries,) indices.
    """
    sizes = starts[outputs + 1] - starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return begin, np.repeat(starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
