"""Known-plaintext adversary: a recipient with some notes in plain and released form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.attacks.adversaries._context import in_context, pairs_of, pruned
from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.attacks.adversaries._shadow import cached_shadow
from clinveil.attacks.adversaries._tables import COMMON, MAX_CANDIDATES, Table, frequency, table_of
from clinveil.attacks.adversaries._together import DrawCounts, count_draws
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Knowledge, Recovery, adversaries
from clinveil.attacks.threats import HOLDINGS, Holding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask

TRUSTS = 10.0 ** np.arange(-3, 4)
DOUBTS = (0.05, 0.2, 0.5, 0.8, 1.0)  # weight of the release's frequencies relative to a shadow channel
UNORDERED = 1.0, 0.5  # b and the weight of the frequencies, where counts come from bags and not from aligned draws
PAIRS = 200  # known pairs, unless fewer are requested
WIDE = 100  # words that context may choose where the pairs contain no evidence


@adversaries.register("known-pairs")
class KnownPlaintext(Adversary):
    """Learn the replacements of each word from notes known in plain and released form.

    P(y | x) is (c(x, y) + b q(y | x)) / (c(x) + b). q mixes a shadow channel (vectors of other notes), the frequency of
    y in the release, and y = x by the share of known words that are unchanged. b and the mixture maximize the
    leave-one-out likelihood of the pairs. b is close to 0 if the release is a code, so that a word with a known code
    has no other output. With context, word pairs of other notes weigh all words of a note jointly. If words are
    shuffled, bags of words are counted (`_together`).
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "pairs", "vectors"})
    in_release = ({"notes": 1}, {"notes": 20}, {"notes": 200})
    max_words = 16_000
    order: ClassVar[int] = 540
    notes: int | None = flag(None, "Number of known pairs; default: all.", ge=1)
    context: bool = flag(True, "Recover all words of a note jointly.")
    vectors: bool = flag(True, "Start from a shadow channel.")

    @property
    def holding(self) -> Holding | None:
        """Return the adversary with this number of pairs; None if the table has none."""
        return next((holding_name for holding_name in HOLDINGS if holding_name == f"pairs-{self.notes or PAIRS}"), None)

    @property
    def variant(self) -> str:
        """Return the number of pairs."""
        return "" if self.notes is None else f"{self.notes} note{'s'[: self.notes > 1]}"

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether the view has this number of known pairs."""
        return super().is_applicable(view) and len(view.pairs) >= (self.notes or 1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words outside the pairs are weighed by their frequency in other notes."""
        name = "known pairs", id(view.others), id(view.pairs), self
        table, prior, pairs = view.cached(name, lambda: self._tables(view, rng))
        return table.recoveries(view) if pairs is None else pruned(in_context(view, pairs, table.as_candidates(prior)))

    def _tables(self, view: AdversaryView, rng: Generator) -> tuple[Table, Doubles, Pairs | None]:
        """Return candidates of each output, input frequencies, and with context the word pairs of plain notes."""
        used_pairs, policy, n_words = view.pairs[: self.notes], view.channel.policy, len(view.channel.words)
        plain = [*view.others, *(_plain(note) for note in used_pairs)]
        prior, outputs = frequency(plain, n_words), frequency(view.released, n_words)
        wide = WIDE if self.context else COMMON
        shadow = cached_shadow(view, "others", rng) if self.vectors else csr_matrix((n_words, n_words))
        table = pairs_table(count_draws(used_pairs, policy, n_words), prior, outputs, shadow, policy.keeps_order, wide)
        return table, prior, pairs_of(plain, policy, n_words, rng) if self.context else None


def _plain(note: AlignedNote) -> Ints:
    """Return the source of a known note, in its own order."""
    return note.truth[np.unique(note.positions, return_index=True)[1]]


def pairs_table(
    draws: DrawCounts, prior: Doubles, outputs: Doubles, shadow: csr_matrix, one_by_one: bool, wide: int = COMMON
) -> Table:
    """Return candidates of each output from known draws and a shadow channel.

    Args:
        prior, outputs: (n_words,) shares of inputs and of outputs. shadow: (n_words, n_words) P(output | input), rows
            may be empty. one_by_one: the counts are of aligned draws. wide: number of candidates of every output.
    """
    n_words = prior.size
    totals = np.bincount(draws.inputs, draws.counts, n_words).astype(np.float64)
    unchanged = float(draws.counts[draws.inputs == draws.outputs].sum() / max(draws.counts.sum(), 1e-300))
    trust, doubt = _fitted(draws, totals, outputs, shadow, unchanged) if one_by_one else UNORDERED
    scale = prior / (totals + trust)
    joint = csc_matrix((draws.counts * scale[draws.inputs], (draws.inputs, draws.outputs)), shape=(n_words, n_words))
    base = trust * scale * (1 - unchanged)
    joint = csc_matrix(joint + diags_array(base * (1 - doubt)) @ shadow)
    if unchanged:
        joint = csc_matrix(joint + diags_array(unchanged * trust * scale))
    return table_of(joint, outputs, base * np.where(_empty(shadow), 1.0, doubt), wide + MAX_CANDIDATES - COMMON, wide)


def _fitted(
    draws: DrawCounts, totals: Doubles, outputs: Doubles, shadow: csr_matrix, unchanged: float
) -> tuple[float, float]:
    """Return the b and the weight of the release's frequencies in q with the highest leave-one-out likelihood.

    b is the number of occurrences that q(y | x) weighs.
    """
    rest, same = totals[draws.inputs] - 1, draws.inputs == draws.outputs
    drawn, frequency_of = np.asarray(shadow[draws.inputs, draws.outputs]).ravel(), outputs[draws.outputs]
    empty, best = _empty(shadow)[draws.inputs], (-np.inf, 1.0, 1.0)
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
