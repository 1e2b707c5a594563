"""Mechanism `matched`: a word is replaced by one of its N nearest words of like frequency, never by itself.

Near means near in [vector at length 1; a ln count]: an attacker who knows how often words occur gains by naming the
most frequent candidate, and among words of like frequency he gains little. N may depend on how often the word occurs:
rare words need more company, and frequent ones can have it. It has no epsilon, as `neighbours` has none.

Source: own; the frequencies that give a substitution away are those of Sweeney's and of any substitution cipher.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms.neighbours import rank_distribution
from clinveil.channel.settings import N_HELP, N
from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Floats, Ints

WIDEST = 1000  # neighbours of a word at most


@mechanisms.register("matched")
class MatchedMechanism(Mechanism):
    """Neighbours of like frequency; N fixed or from a range, larger for rare words, growing with the root of counts."""

    name: ClassVar[str] = "matched"
    n: N = flag("3-14", N_HELP, short="-n")
    frequency_weight: float = flag(0.3, "matched: weight of ln count beside a vector of length 1.", ge=0, le=100)
    n_rare: int = flag(
        0, "matched: N of words of fewer than --rare-below occurrences (0: as the others).", ge=0, le=WIDEST
    )
    rare_below: int = flag(20, "Words of fewer occurrences are rare.", ge=1)
    n_by_root: float = flag(0.0, "matched: N grows by so many for each unit of a count's root.", ge=0, le=1000)

    @property
    def need(self) -> int:
        """As many as the widest row that does not depend on counts, and the word itself."""
        return max(self.n.high, self.n_rare) + 1

    @property
    def said(self) -> str:
        """The settings in a few words."""
        rare = f", {self.n_rare} for rare words" if self.n_rare else ""
        return f"N {self.n} of like frequency{rare}"

    def compile(self, material: Material) -> Channel:
        """The channel. N never exceeds 1,000, nor the words that may come out but one."""
        from clinveil.vectors.euclidean import nearest_rows

        counts = material.vectors.counts
        counts = np.ones(len(material.vectors), dtype=np.int64) if counts is None else counts
        space, widths = self._space(material.vectors.matrix, counts), self._widths(counts, material)
        lengths, order, outputs, chances = widths.copy(), [], [], []
        for width in np.unique(widths):
            rows = np.flatnonzero(widths == width).astype(np.int32)
            near = nearest_rows(space, material.eligible, rows, int(width), threads=material.threads)
            order.append(np.repeat(rows, width))
            outputs.append(near.ravel())
            chances.append(np.tile(self._ranks(int(width)), rows.size))
        by_row = np.argsort(np.concatenate(order), kind="stable")
        said = self.model_dump(exclude={"n"}) | {"low": self.n.low, "high": self.n.high, "widest": int(widths.max())}
        return material.channel(
            self.name, said, lengths, np.concatenate(outputs)[by_row], np.concatenate(chances)[by_row]
        )

    def _space(self, matrix: Floats, counts: Ints) -> Floats:
        lengths = np.maximum(np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True), 1e-12)
        last = self.frequency_weight * np.log(np.maximum(counts, 1))
        return np.concatenate([matrix / lengths, last[:, None]], axis=1).astype(np.float32)

    def _widths(self, counts: Ints, material: Material) -> Ints:
        """The greatest N of each word, (n_words,)."""
        grown = self.n.high + np.floor(self.n_by_root * np.sqrt(counts)).astype(np.int64)
        if self.n_rare:
            grown = np.where(counts < self.rare_below, self.n_rare, grown)
        most = min(WIDEST, int(material.eligible.sum()) - 1)
        if most < max(self.n.high, self.n_rare):
            raise InputError(f"{most + 1} words may come out, too few for N {self.n}", hint="take a smaller N")
        return np.minimum(grown, most)

    def _ranks(self, width: int) -> Doubles:
        """P(rank) of a word whose greatest N is `width`: its range reaches as far below that as the setting's."""
        return rank_distribution(max(1, width - (self.n.high - self.n.low)), width)
