"""A recipient who holds some notes in both forms, such as those of their own patients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.attacks.adversaries._context import in_context, pairs_of, sure
from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.attacks.adversaries._shadow import kept_shadow
from clinveil.attacks.adversaries._tables import COMMON, MOST, Table, frequency, table_of
from clinveil.attacks.adversaries._together import Learnt, learnt
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Knowledge, Reading, adversaries
from clinveil.attacks.threats import HOLDINGS, Holding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask

TRUSTS = 10.0 ** np.arange(-3, 4)
DOUBTS = (0.05, 0.2, 0.5, 0.8, 1.0)  # weight of the release's frequencies beside a shadow channel
UNORDERED = 1.0, 0.5  # b and the weight of the frequencies, where counts are of bags and not of whole draws
PAIRS = 200  # notes held in both forms, unless fewer are asked for
WIDE = 100  # words that context may choose where pairs tell nothing


@adversaries.register("known-pairs")
class KnownPlaintext(Adversary):
    """No channel: learns what becomes of each word from notes that they hold plain and released.

    P(y | x) is (c(x, y) + b q(y | x)) / (c(x) + b). q mixes a shadow channel (vectors of other notes), the frequency of
    y in the release, and y = x by the share of held words that come out unchanged. b and the mixture predict the pairs
    best when each is left out in turn. b is next to 0 where the release is a code, so that a word whose code is known
    has no other output. With context, all words of a note are weighed at once by word pairs of other notes. Under a
    shuffle the pairs are counted by bags of words (`_together`).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "pairs", "vectors"})
    in_release = ({"notes": 1}, {"notes": 20}, {"notes": 200})
    at_most = 16_000
    order: ClassVar[int] = 540
    notes: int | None = flag(None, "How many of the notes that he holds; unless given, all.", ge=1)
    context: bool = flag(True, "Weigh all words of a note at once.")
    vectors: bool = flag(True, "Begin with a channel of shadow vectors.")

    @property
    def holding(self) -> Holding | None:
        """The adversary with this number of pairs; None where the table has none."""
        return next((one for one in HOLDINGS if one == f"pairs-{self.notes or PAIRS}"), None)

    @property
    def variant(self) -> str:
        """How many pairs are held."""
        return "" if self.notes is None else f"{self.notes} note{'s'[: self.notes > 1]}"

    def can(self, view: AdversaryView) -> bool:
        """Whether this number of notes is held in both forms."""
        return super().can(view) and len(view.pairs) >= (self.notes or 1)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Words that the pairs do not hold are weighed by their frequency in other notes."""
        place = "known pairs", id(view.others), id(view.pairs), self
        table, prior, pairs = view.kept(place, lambda: self._learnt(view, rng))
        return table.readings(view) if pairs is None else sure(in_context(view, pairs, table.held(prior)))

    def _learnt(self, view: AdversaryView, rng: Generator) -> tuple[Table, Doubles, Pairs | None]:
        """Candidates of each output, the frequencies of inputs, and with context the word pairs of plain notes."""
        held, policy, n_words = view.pairs[: self.notes], view.channel.policy, len(view.channel.words)
        plain = [*view.others, *(_plain(note) for note in held)]
        prior, outputs = frequency(plain, n_words), frequency(view.released, n_words)
        wide = WIDE if self.context else COMMON
        shadow = kept_shadow(view, "others", rng) if self.vectors else csr_matrix((n_words, n_words))
        table = pairs_table(learnt(held, policy, n_words), prior, outputs, shadow, policy.keeps_order, wide)
        return table, prior, pairs_of(plain, policy, n_words, rng) if self.context else None


def _plain(note: AlignedNote) -> Ints:
    """The source of a note that he holds, in its own order."""
    return note.truth[np.unique(note.places, return_index=True)[1]]


def pairs_table(
    known: Learnt, prior: Doubles, outputs: Doubles, shadow: csr_matrix, one_by_one: bool, wide: int = COMMON
) -> Table:
    """What draws of known words, and a shadow channel, tell of each output.

    Args:
        prior, outputs: (n_words,) shares of inputs and of outputs. shadow: (n_words, n_words) P(output | input), rows
            may be empty. one_by_one: the counts are of whole draws. wide: words that are candidates of every output.
    """
    n_words = prior.size
    totals = np.bincount(known.inputs, known.counts, n_words).astype(np.float64)
    unchanged = float(known.counts[known.inputs == known.outputs].sum() / max(known.counts.sum(), 1e-300))
    trust, doubt = _fitted(known, totals, outputs, shadow, unchanged) if one_by_one else UNORDERED
    scale = prior / (totals + trust)
    joint = csc_matrix((known.counts * scale[known.inputs], (known.inputs, known.outputs)), shape=(n_words, n_words))
    base = trust * scale * (1 - unchanged)
    joint = csc_matrix(joint + diags_array(base * (1 - doubt)) @ shadow)
    if unchanged:
        joint = csc_matrix(joint + diags_array(unchanged * trust * scale))
    return table_of(joint, outputs, base * np.where(_empty(shadow), 1.0, doubt), wide + MOST - COMMON, wide)


def _fitted(
    known: Learnt, totals: Doubles, outputs: Doubles, shadow: csr_matrix, unchanged: float
) -> tuple[float, float]:
    """b, the occurrences that q(y | x) weighs, and the weight of the release's frequencies in q, under which each draw
    is likeliest by all the others."""
    rest, same = totals[known.inputs] - 1, known.inputs == known.outputs
    drawn, usual = np.asarray(shadow[known.inputs, known.outputs]).ravel(), outputs[known.outputs]
    empty, best = _empty(shadow)[known.inputs], (-np.inf, 1.0, 1.0)
    for doubt in DOUBTS:
        mixed = np.where(empty, usual, (1 - doubt) * drawn + doubt * usual)
        base = (1 - unchanged) * mixed + unchanged * same
        for trust in TRUSTS:
            fit = (known.counts * np.log((known.counts - 1 + trust * base) / (rest + trust))).sum()
            best = max(best, (float(fit), float(trust), doubt))
    return best[1], best[2]


def _empty(shadow: csr_matrix) -> Mask:
    """(n_words,) the words without a row in the shadow channel."""
    return np.asarray(np.diff(shadow.indptr) == 0)
