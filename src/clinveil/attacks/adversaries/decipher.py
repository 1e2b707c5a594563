"""An outsider who takes the release for a cipher, and learns its code from the language of other notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_matrix, csc_matrix, diags_array

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversaries._context import beliefs, in_context, pairs_of, sure
from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.attacks.adversaries._shadow import kept_shadow
from clinveil.attacks.adversaries._tables import Table, frequency, table_of
from clinveil.attacks.adversary import Adversary, AdversaryView, Knowledge, Reading, adversaries
from clinveil.attacks.threats import Holding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads

NEVER_ITSELF = ("neighbours",)  # mechanisms, which are public, that never keep a word
DOUBT = 0.2  # what ranks of frequency, and the background, weigh beside own vectors


@adversaries.register("decipher")
class Decipher(Adversary):
    """No channel: learns by expectation and maximisation which words stand behind an output, from word pairs of others.

    Candidates and first beliefs come from own vectors and from equal ranks of frequency. Where the release shuffles
    words, he shuffles his own likewise before he counts pairs. Source: Ravi and Knight 2011, section 3 (decipherment of
    a language by EM with a fixed model of the other); threat model A9 (iii).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({"vectors": False}, {})
    at_most = 8_000
    order: ClassVar[int] = 530
    rounds: int = flag(5, "Rounds of expectation and maximisation.", ge=1)
    words: int = flag(30_000, "Released words that each round goes through.", ge=1)
    candidates: int = flag(30, "Words that an output may come from.", ge=2)
    vectors: bool = flag(True, "Begin with the channel of own vectors too.")
    memory: float = flag(2.0, "Occurrences that the first beliefs of an input weigh.", gt=0)

    @property
    def holding(self) -> Holding:
        """A recipient; with own vectors one who trained them."""
        return "shadow" if self.vectors else "recipient"

    @property
    def variant(self) -> str:
        """Whether vectors are used."""
        return "" if self.vectors else "without vectors"

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """The last beliefs at each place, with its context."""
        pairs, held = view.kept(("decipher", id(view.others), self), lambda: self._code(view, rng))
        return sure(in_context(view, pairs, held))

    def _code(self, view: AdversaryView, rng: Generator) -> tuple[Pairs, Candidates]:
        """The word pairs of other notes, and P(y | x) after all rounds over the first `words` released words."""
        n_words, outputs = view.prior.size, frequency(view.released, view.prior.size)
        pairs, table = pairs_of(view.others, view.channel.policy, n_words, rng), self._first(view, rng)
        often = np.repeat(outputs, np.diff(table.starts))
        first = held = _of_inputs(table, table.inverse(view.prior) * often)
        ends = np.cumsum([note.size for note in view.released])
        some = view.released[: int(np.searchsorted(ends, self.words)) + 1]
        for _ in range(self.rounds):
            counts = _counted(some, view.threads, pairs, held)
            held = _of_inputs(table, counts + self.memory * first.weights)
        return pairs, held

    def _first(self, view: AdversaryView, rng: Generator) -> Table:
        ranks = _by_rank(view, self.candidates)
        joint = ranks / ranks.sum()
        if view.channel.mechanism not in NEVER_ITSELF:
            joint = csc_matrix(joint + diags_array(view.prior))
        if self.vectors:
            own = csc_matrix(diags_array(view.prior) @ kept_shadow(view, "others", rng))
            joint = joint * DOUBT + own / max(own.sum(), 1e-300)
        background = DOUBT * frequency(view.released, view.prior.size)
        return table_of(csc_matrix(joint), background, view.prior, self.candidates)


def _counted(released: Sequence[Ints], workers: int, pairs: Pairs, held: Candidates) -> Doubles:
    """Expected occurrences of each entry behind its output in released notes, under the present beliefs."""

    def one(note: Ints) -> tuple[Ints, Doubles]:
        return entries(held, note), beliefs(pairs, held, note)[1]

    counts = np.zeros(held.rows.size)
    for places, chances in threads(workers)(one, released):
        np.add.at(counts, places, chances)
    return counts


def _of_inputs(table: Table, weights: Doubles) -> Candidates:
    """Weights of all entries, scaled so that those of each input sum to 1: P(y | x)."""
    totals = np.bincount(table.rows, weights)
    return Candidates(table.starts, table.rows, np.asarray(weights / np.maximum(totals, 1e-300)[table.rows]))


def entries(held: Candidates, outputs: Ints) -> Ints:
    """The entries of the candidates behind each place of a note, end to end."""
    sizes = held.starts[outputs + 1] - held.starts[outputs]
    ends = np.cumsum(sizes)
    return np.asarray(np.repeat(held.starts[outputs] - ends + sizes, sizes) + np.arange(sizes.sum()), dtype=np.int64)


def _by_rank(view: AdversaryView, width: int) -> csc_matrix:
    """Inputs of about the rank of frequency of each output: weights (x, y) that fall with the distance of ranks."""
    n_words = view.prior.size
    inputs = np.argsort(-view.prior, kind="stable")
    outputs = np.argsort(-frequency(view.released, n_words), kind="stable")
    steps = np.arange(-(width // 2), width // 2 + 1)
    rank = np.repeat(np.arange(n_words), steps.size)
    other = rank + np.tile(steps, n_words)
    there = (other >= 0) & (other < n_words)
    weight = 1 / (1 + np.abs(np.tile(steps, n_words)))
    x, y = inputs[other[there]], outputs[rank[there]]
    return csc_matrix(coo_matrix((weight[there] * view.prior[x], (x, y)), shape=(n_words, n_words)))
