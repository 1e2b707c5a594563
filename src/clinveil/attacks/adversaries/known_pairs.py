"""Known-plaintext adversary: a recipient with some notes in plain and released form.

Where words are shuffled, the attacker has a bag of outputs for each bag of inputs, and estimates
the alignment from all
bags together: IBM model 1, each output drawn from one input of its bag (Brown et al. 1993, section
4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.attacks.adversaries._sequence import (
    Candidates,
    Pairs,
    frequency,
    pairs_of,
    recovered,
    table_of,
)
from clinveil.attacks.adversaries.own_vectors import shadow_matrix
from clinveil.attacks.adversary import (
    Adversary,
    AdversaryView,
    AlignedNote,
    Knowledge,
    Recovery,
    adversaries,
)
from clinveil.attacks.threats import HOLDINGS, Holding
from clinveil.channel.policy import Policy
from clinveil.core.compiled import kernel
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask, SmallInts

TRUSTS = 10.0 ** np.arange(-3, 4)
# Weight of the release's frequencies relative to a shadow channel.
DOUBTS = (
    0.05,
    0.2,
    0.5,
    0.8,
    1.0,
)
# B and the weight of the frequencies, where counts come from bags and not from aligned draws.
UNORDERED = (
    1.0,
    0.5,
)
PAIRS = 200  # known pairs, unless fewer are requested
ROUNDS = 8
LINKS = 40_000_000  # pairs of positions weighed in a round
# Words that context may choose where the pairs contain no evidence; candidates of an output.
WIDE = 100
MOST = 140


@adversaries.register("known-pairs")
class KnownPlaintext(Adversary):
    """Learn the replacements of each word from notes known in plain and released form.

    P(y | x) is (c(x, y) + b q(y | x)) / (c(x) + b). q mixes a shadow channel (vectors of other
    notes), the frequency of y in the release, and y = x by the share of known words that are
    unchanged. b and the mixture maximize the leave-one-out likelihood of the pairs. b is close to 0
    if the release is a code, so that a word with a known code has no other output. Word pairs of
    other notes weigh all words of a note jointly. If words are shuffled, bags of words are counted.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "pairs", "vectors"})
    in_release = ({"notes": 1}, {"notes": 20}, {"notes": 200})
    max_words = 16_000
    order: ClassVar[int] = 540
    notes: int | None = flag(None, "Number of known pairs; default: all.", ge=1)

    @property
    def holding(self) -> Holding | None:
        """Return the adversary with this number of pairs; None if the table has none."""
        return next(
            (holding for holding in HOLDINGS if holding == f"pairs-{self.notes or PAIRS}"), None
        )

    @property
    def variant(self) -> str:
        """Return the number of pairs."""
        return "" if self.notes is None else f"{self.notes} note{'s'[: self.notes > 1]}"

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether the view has this number of known pairs."""
        return super().is_applicable(view) and len(view.pairs) >= (self.notes or 1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words outside the pairs are weighed by their frequency in other
        notes.
        """
        name = "known pairs", id(view.others), id(view.pairs), self
        table, pairs = view.cached(name, lambda: self._tables(view, rng))
        return recovered(view, pairs, table)

    def _tables(self, view: AdversaryView, rng: Generator) -> tuple[Candidates, Pairs]:
        """Return candidates with P(output | input) up to a factor, and the word pairs of plain
        notes.
        """
        known = view.pairs[: self.notes]
        policy = view.channel.policy
        n_words = len(view.channel.words)
        in_own_order = (
            note.truth[np.unique(note.positions, return_index=True)[1]] for note in known
        )
        plain = [*view.others, *in_own_order]
        prior = frequency(plain, n_words)
        outputs = frequency(view.released, n_words)
        shadow = shadow_matrix(view, rng)
        draws = count_draws(known, policy, n_words)
        table = pairs_table(draws, prior, outputs, shadow, policy.keeps_order)
        return table.inverse(prior), pairs_of(plain, policy, n_words, rng)


def pairs_table(
    draws: DrawCounts, prior: Doubles, outputs: Doubles, shadow: csr_matrix, one_by_one: bool
) -> Candidates:
    """Return candidates of each output from known draws and a shadow channel.

    Args:
        prior, outputs: (n_words,) shares of inputs and of outputs. shadow: (n_words, n_words)
            P(output | input), rows may be empty. one_by_one: the counts are of aligned draws.
    """
    n_words = prior.size
    totals = np.bincount(draws.inputs, draws.counts, n_words).astype(np.float64)
    unchanged = float(
        draws.counts[draws.inputs == draws.outputs].sum() / max(draws.counts.sum(), 1e-300)
    )
    trust, doubt = _fitted(draws, totals, outputs, shadow, unchanged) if one_by_one else UNORDERED
    scale = prior / (totals + trust)
    joint = csc_matrix(
        (draws.counts * scale[draws.inputs], (draws.inputs, draws.outputs)),
        shape=(n_words, n_words),
    )
    base = trust * scale * (1 - unchanged)
    joint = csc_matrix(joint + diags_array(base * (1 - doubt)) @ shadow)
    if unchanged:
        joint = csc_matrix(joint + diags_array(unchanged * trust * scale))
    return table_of(joint, outputs, base * np.where(_empty(shadow), 1.0, doubt), MOST, WIDE)


def _fitted(
    draws: DrawCounts, totals: Doubles, outputs: Doubles, shadow: csr_matrix, unchanged: float
) -> tuple[float, float]:
    """Return the b and the weight of the release's frequencies in q with the highest leave-one-out
    likelihood.

    b is the number of occurrences that q(y | x) weighs.
    """
    rest = totals[draws.inputs] - 1
    same = draws.inputs == draws.outputs
    drawn = np.asarray(shadow[draws.inputs, draws.outputs]).ravel()
    frequency_of = outputs[draws.outputs]
    empty = _empty(shadow)[draws.inputs]
    best = (-np.inf, 1.0, 1.0)
    for doubt in DOUBTS:
        mixed = np.where(empty, frequency_of, (1 - doubt) * drawn + doubt * frequency_of)
        base = (1 - unchanged) * mixed + unchanged * same
        for trust in TRUSTS:
            fit = (draws.counts * np.log((draws.counts - 1 + trust * base) / (rest + trust))).sum()
            best = max(best, (float(fit), float(trust), doubt))
    return best[1], best[2]


def _empty(shadow: csr_matrix) -> Mask:
    """Return which words have no row in the shadow channel, (n_words,)."""
    return np.asarray(np.diff(shadow.indptr) == 0)


class DrawCounts(NamedTuple):
    """How often an input produced an output: inputs, outputs and counts (n_pairs,), sorted by input
    and output.
    """

    inputs: Ints
    outputs: Ints
    counts: Doubles


def count_draws(notes: Sequence[AlignedNote], policy: Policy, n_words: int) -> DrawCounts:
    """Count draws in some notes. A draw that the substitution scope repeats counts once; unknown
    words are ignored.
    """
    if not policy.keeps_order:
        return _aligned(notes, n_words)
    by_patient = policy.scope in ("patient", "corpus", "rare")
    groups = np.concatenate(
        [np.full(len(n), n.patient if by_patient else i) for i, n in enumerate(notes)]
    )
    truth, outputs = (
        np.concatenate([getattr(n, name) for n in notes]) for name in ("truth", "outputs")
    )
    known = truth < n_words
    keys = truth[known] * np.int64(n_words) + outputs[known]
    if policy.scope != "occurrence":
        keys = np.unique(np.stack([groups[known], keys]), axis=1)[1]
    pairs, counts = np.unique(keys, return_counts=True)
    return DrawCounts(pairs // n_words, pairs % n_words, counts.astype(np.float64))


def _aligned(notes: Sequence[AlignedNote], n_words: int) -> DrawCounts:
    """Estimate the counts of bags: every output of a note may come from every known word of its
    source.
    """
    bags = [np.zeros(0, np.int64)]
    sizes = [np.zeros(0, np.int64)]
    total = 0
    for note in notes:
        source = note.truth[np.unique(note.positions, return_index=True)[1]]
        source = source[source < n_words]
        total += len(note) * source.size
        if len(sizes) > 1 and total > LINKS:
            break
        bags.append((source * np.int64(n_words) + note.outputs[:, None]).ravel())
        sizes.append(np.full(len(note), source.size))
    links = np.concatenate(bags)
    size = np.concatenate(sizes)
    keys = np.unique(links)
    index = np.searchsorted(keys, links).astype(np.int32)
    counts = np.ones(keys.size)
    for _ in range(ROUNDS):
        totals = np.bincount(keys // n_words, counts, n_words)
        chances = counts / np.maximum(totals, 1e-300)[keys // n_words]
        counts = np.zeros(keys.size)
        _distribute(size, index, chances, counts)
    keep = counts > 0.01
    return DrawCounts(keys[keep] // n_words, keys[keep] % n_words, counts[keep])


@kernel
def _distribute(sizes: Ints, index: SmallInts, chances: Doubles, counts: Doubles) -> None:
    """Distribute each output over the inputs of its bag in proportion to chances; `index` lists
    their word pairs.
    """
    first = 0
    for size in sizes:
        total = 0.0
        for i in range(first, first + size):
            total += chances[index[i]]
        if total > 0:
            for i in range(first, first + size):
                counts[index[i]] += chances[index[i]] / total
        first += size
