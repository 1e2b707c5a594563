"""An outsider who takes the release for a cipher, and learns its code from the language of other notes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_matrix, csc_matrix, diags_array

from clinveil.attacks.reader import Knowledge, Reader, Reading, Scene, Seen, readers
from clinveil.attacks.readers._context import Pairs, as_released, beliefs
from clinveil.attacks.readers._shadow import shadow_matrix
from clinveil.attacks.readers._tables import Table, frequency, table_of
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads


@readers.register("decipher")
class Decipher(Reader):
    """No channel: learns by expectation and maximisation which words stand behind an output, from word pairs of others.

    Candidates and first beliefs come from own vectors and from equal ranks of frequency. Where the release shuffles
    words, he shuffles his own likewise before he counts pairs. Source: Ravi and Knight 2011, section 3 (decipherment of
    a language by EM with a fixed model of the other); threat model A9 (iii).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    order: ClassVar[int] = 530
    rounds: int = flag(5, "Rounds of expectation and maximisation.", ge=1)
    candidates: int = flag(30, "Words that an output may come from.", ge=2)
    vectors: bool = flag(True, "Begin with the channel of own vectors too.")
    memory: float = flag(2.0, "Occurrences that the first beliefs of an input weigh.", gt=0)

    def read(self, scene: Scene, rng: Generator) -> list[Reading]:
        """The last beliefs at each place, with its context."""
        others = as_released(scene.others, scene.channel.policy, rng)
        pairs, table = Pairs.of(others, scene.prior.size), self._first(scene, rng)
        first = emissions = self._of_inputs(table, table.inverse(scene.prior) * self._outputs(scene, table))
        for _ in range(self.rounds):
            counts = np.zeros(table.rows.size)
            for note in scene.released:
                _, chances, _ = beliefs(pairs, table, emissions, note)
                np.add.at(counts, _entries(table, note), chances)
            emissions = self._of_inputs(table, counts + self.memory * first)
        return read_in_context(scene, pairs, table, emissions)

    def _first(self, scene: Scene, rng: Generator) -> Table:
        ranks = _by_rank(scene, self.candidates)
        joint = ranks / ranks.sum()
        if self.vectors:
            own = csc_matrix(diags_array(scene.prior) @ shadow_matrix(scene, scene.others, rng))
            joint = joint * 0.2 + own / max(own.sum(), 1e-300)
        doubt = 0.2 * frequency(scene.released, scene.prior.size)
        return table_of(csc_matrix(joint), doubt, scene.prior, self.candidates)

    @staticmethod
    def _outputs(scene: Scene, table: Table) -> Doubles:
        """How often the output of each entry stands in the release."""
        share = frequency(scene.released, scene.prior.size)
        return np.repeat(share, np.diff(table.starts))

    @staticmethod
    def _of_inputs(table: Table, weights: Doubles) -> Doubles:
        """Weights of all entries, scaled so that those of each input sum to 1: P(y | x)."""
        totals = np.bincount(table.rows, weights)
        return np.asarray(weights / np.maximum(totals, 1e-300)[table.rows])


def read_in_context(scene: Scene, pairs: Pairs, table: Table, emissions: Doubles) -> list[Reading]:
    """As `in_context`, without candidates that have next to no chance."""
    return [_sure(reading) for reading in in_context(scene, pairs, table, emissions)]


def in_context(scene: Scene, pairs: Pairs, table: Table, emissions: Doubles) -> list[Reading]:
    """Beliefs at each place of the notes, all words of a note weighed at once; `emissions` as in `beliefs`."""

    def one(note: Seen) -> Reading:
        begin, chances, _ = beliefs(pairs, table, emissions, note.outputs)
        return Reading(begin, table.rows[_entries(table, note.outputs)], chances)

    return list(threads(scene.threads)(one, scene.notes))


def _sure(reading: Reading) -> Reading:
    """A reading without what has no chance at all."""
    keep = reading.chances > 1e-12
    kept = np.concatenate([[0], np.cumsum(keep)])
    return replace(
        reading, starts=kept[reading.starts].astype(np.int64), rows=reading.rows[keep], chances=reading.chances[keep]
    )


def _entries(table: Table, outputs: Ints) -> Ints:
    """The entries of the table behind each place of a note, end to end."""
    sizes = table.starts[outputs + 1] - table.starts[outputs]
    ends = np.cumsum(sizes)
    return np.asarray(np.repeat(table.starts[outputs] - ends + sizes, sizes) + np.arange(sizes.sum()), dtype=np.int64)


def _by_rank(scene: Scene, width: int) -> csc_matrix:
    """Inputs of about the rank of frequency of each output: weights (x, y) that fall with the distance of ranks."""
    n_words = scene.prior.size
    inputs = np.argsort(-scene.prior, kind="stable")
    outputs = np.argsort(-frequency(scene.released, n_words), kind="stable")
    steps = np.arange(-(width // 2), width // 2 + 1)
    rank = np.repeat(np.arange(n_words), steps.size)
    other = rank + np.tile(steps, n_words)
    there = (other >= 0) & (other < n_words)
    weight = 1 / (1 + np.abs(np.tile(steps, n_words)))
    x, y = inputs[other[there]], outputs[rank[there]]
    return csc_matrix(coo_matrix((weight[there] * scene.prior[x], (x, y)), shape=(n_words, n_words)))
