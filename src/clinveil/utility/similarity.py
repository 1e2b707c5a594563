"""Word similarity: do cosines of word vectors agree with people's judgements? Two protocols, which differ.

*jamia* (paper A, after Wang et al. 2018): Pearson; a term of several words is the mean of their vectors; words without
a vector get one from fastText's subwords; what still has none is left out and counted.
*clinicalnlp* (paper C): Spearman; single words that occur at least m times in the *real* training text, the same pairs
for every vector set; a similarity that is missing is drawn from [-1, 1), and the correlation averaged over 100 draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.stats import permutation_p
from clinveil.tokens import words
from clinveil.utility.pairs import PairList, unique_terms
from clinveil.vectors.table import Vectors

Protocol = Literal["jamia", "clinicalnlp"]
Missing = Literal["exclude", "random", "zero"]
Values = NDArray[np.float64]
REPETITIONS = 100  # of the random similarities of missing pairs (paper C's code)
DRAWS, PERMUTATIONS, SHUFFLES = 1_000, 999, 100
SOURCE = {
    "jamia": "paper A, Table 3 and Figure 1; protocol of Wang et al. 2018",
    "clinicalnlp": "paper C, section 3.3; protocol of its released code",
}


@dataclass(frozen=True)
class TermVectors:
    """The vectors of all terms of a list.

    Attributes:
        matrix: (n_terms, dim) float64, zero where there is none. found: (n_terms,) bool.
        partial: (n_terms,) bool, whether some but not all of its words have a vector; the mean is of those that have.
        one, other: (n_pairs,) the rows of each pair.
    """

    matrix: Values
    found: NDArray[np.bool_]
    partial: NDArray[np.bool_]
    one: NDArray[np.int64]
    other: NDArray[np.int64]

    def cosines(self, order: NDArray[np.int64] | None = None) -> Values:
        """(n_pairs,) NaN where a term has no vector; `order` gives the terms each other's vectors (control)."""
        matrix, found = (self.matrix, self.found) if order is None else (self.matrix[order], self.found[order])
        norms = np.linalg.norm(matrix, axis=1)
        length = norms[self.one] * norms[self.other]
        product = np.einsum("ij,ij->i", matrix[self.one], matrix[self.other])
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(product / length, -1, 1)
        return np.where(found[self.one] & found[self.other] & (length > 0), cosine, np.nan)


def term_vectors(
    vectors: Vectors, pairs: PairList, protocol: Protocol = "jamia", subwords: Vectors | None = None
) -> TermVectors:
    """Look the terms of a list up, by lookup forms.

    Args:
        subwords: fastText vectors for unknown words (jamia only); they must come from the same text as `vectors`.
            Both cosines of a pair are taken in one space: a pair with an unknown word is looked up there wholly, which
            the protocol leaves open, for vectors of two trainings share no axes.
    """
    terms = {term: row for row, term in enumerate(unique_terms(pairs))}
    matrix = np.zeros((len(terms), vectors.dim))
    found, partial = np.zeros(len(terms), dtype=np.bool_), np.zeros(len(terms), dtype=np.bool_)
    for term, row in terms.items():
        forms = words(term)
        if protocol == "clinicalnlp" and len(forms) != 1:
            continue
        known = [vectors.ids[form] for form in forms if form in vectors.ids]
        if known and (len(known) == len(forms) or subwords is None):
            matrix[row], found[row] = vectors.matrix[known].mean(axis=0, dtype=np.float64), True
            partial[row] = len(known) < len(forms)
    one, other = (np.array([terms[pair[side]] for pair in pairs.terms], dtype=np.int64) for side in (0, 1))
    return TermVectors(matrix, found, partial, one, other)


def pair_similarities(
    vectors: Vectors, pairs: PairList, *, protocol: Protocol = "jamia", subwords: Vectors | None = None
) -> Values:
    """(n_pairs,) cosines, NaN where a term has no vector.

    Given fastText vectors as `subwords`, a pair with a word that `vectors` does not know is compared among those.
    """
    return _looked_up(vectors, pairs, protocol, subwords)[0]


def _looked_up(
    vectors: Vectors, pairs: PairList, protocol: Protocol, subwords: Vectors | None
) -> tuple[Values, NDArray[np.bool_]]:
    """Cosines, and which of them are from subwords."""
    cosines = term_vectors(vectors, pairs, protocol, subwords).cosines()
    if subwords is None or protocol == "clinicalnlp":
        return cosines, np.zeros(len(pairs), dtype=np.bool_)
    elsewhere = subword_terms(subwords, pairs).cosines()
    missing = np.isnan(cosines)
    return np.where(missing, elsewhere, cosines), missing & ~np.isnan(elsewhere)


def subword_terms(vectors: Vectors, pairs: PairList) -> TermVectors:
    """The vectors of all terms from fastText: its words, and for the others their n-grams.

    Raises InputError for vectors without subwords.
    """
    if vectors.subwords is None:
        raise InputError("these vectors have no subwords", remedy="train them with --algorithm fasttext, into a folder")
    base = term_vectors(vectors, pairs)
    matrix, found = np.zeros_like(base.matrix), np.zeros_like(base.found)
    for row, term in enumerate(unique_terms(pairs)):
        parts = [_subword(vectors, form) for form in words(term)]
        known = [part for part in parts if part is not None]
        if known:
            matrix[row], found[row] = np.mean(known, axis=0, dtype=np.float64), True
    return TermVectors(matrix, found, np.zeros_like(found), base.one, base.other)


def _subword(vectors: Vectors, form: str) -> NDArray[np.float32] | None:
    if form in vectors.ids:
        return vectors.matrix[vectors.ids[form]]
    return vectors.subwords.vector(form) if vectors.subwords else None


def pearson(one: Values, other: Values) -> float:
    """Pearson's correlation; NaN where one side does not vary."""
    a, b = one - one.mean(), other - other.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")


def spearman(one: Values, other: Values) -> float:
    """Spearman's: Pearson's of the ranks, ties at their mean."""
    return pearson(_ranks(one), _ranks(other))


def _ranks(values: Values) -> Values:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def frequent_pairs(pairs: PairList, frequencies: Mapping[str, int], min_count: int) -> NDArray[np.bool_]:
    """(n_pairs,) whether both terms are single words that occur at least `min_count` times (paper C)."""

    def often(term: str) -> bool:
        forms = words(term)
        return len(forms) == 1 and frequencies.get(forms[0], 0) >= min_count

    return np.array([often(one) and often(other) for one, other in pairs.terms], dtype=np.bool_)


def similarity(
    vectors: Vectors,
    pairs: PairList,
    rng: Generator,
    *,
    protocol: Protocol = "jamia",
    subwords: Vectors | None = None,
    frequencies: Mapping[str, int] | None = None,
    min_count: int = 20,
    missing: Missing | None = None,
    only: NDArray[np.bool_] | None = None,
    draws: int = DRAWS,
) -> list[Finding]:
    """The correlation of cosines with people's scores, and how much of the list it covers.

    Args:
        protocol: `jamia` or `clinicalnlp`, see above.
        subwords: fastText vectors of the same text, for words without a vector (jamia).
        frequencies: how often each word occurs in the real training text (clinicalnlp; needed there).
        min_count: m of clinicalnlp (paper: 20 for the small set, 30 for the large one).
        missing: what becomes of pairs without a similarity: `exclude` (jamia's default), `random` (clinicalnlp's) or
            `zero`.
        only: (n_pairs,) bool, the pairs to score, so that vector sets are compared on the same ones.
        draws: of the bootstrap over pairs.

    Returns:
        `utility.similarity`: chance 0; control: the terms' vectors dealt out anew among the terms, mean of 100; P by
        permuting the scores. `utility.similarity_coverage`: the share of pairs that have a similarity of their own.
        Where subwords lend some pairs theirs, both come a second time for the pairs that need none.

    Raises:
        InputError: clinicalnlp without frequencies, or `only` of another length.
    """
    if protocol == "clinicalnlp" and frequencies is None:
        raise InputError("protocol clinicalnlp needs the real training notes", remedy="name them with --notes")
    if only is not None and only.shape != (len(pairs),):
        raise InputError(f"a mask of {only.shape} for {len(pairs)} pairs")
    policy: Missing = missing or ("random" if protocol == "clinicalnlp" else "exclude")
    wanted = np.ones(len(pairs), dtype=np.bool_) if only is None else only.copy()
    if protocol == "clinicalnlp":
        wanted &= frequent_pairs(pairs, frequencies or {}, min_count)
    cosines, from_subwords = _looked_up(vectors, pairs, protocol, subwords)
    own = wanted & ~np.isnan(cosines)
    scored = own if policy == "exclude" else wanted
    statistic = spearman if protocol == "clinicalnlp" else pearson
    detail: dict[str, Any] = {"list": pairs.name, "protocol": protocol, "statistic": statistic.__name__}
    detail |= {"pairs": len(pairs), "asked": int(wanted.sum()), "covered": int(own.sum()), "missing": policy}
    detail |= {"scored": int(scored.sum()), "by_subwords": int((own & from_subwords).sum()), "unit": "word pairs"}
    if protocol == "clinicalnlp":
        detail["min_count"] = min_count
    fill = _fill(cosines[scored], policy)
    terms = term_vectors(vectors, pairs, protocol, subwords)
    detail["partial"] = int((own & ~from_subwords & (terms.partial[terms.one] | terms.partial[terms.other])).sum())
    measured = _Measured(pairs.scores[scored], fill, statistic, REPETITIONS if policy == "random" else 1)
    found = [_correlation(measured, terms, own & ~from_subwords, detail, rng, draws), _coverage(own, wanted, detail)]
    if not detail["by_subwords"]:
        return found
    bare = similarity(vectors, pairs, rng, missing=missing, only=only, draws=draws)
    return [_of("all pairs", finding) for finding in found] + [_of("pairs that need no subwords", f) for f in bare]


def _of(series: str, finding: Finding) -> Finding:
    return replace(finding, detail={**finding.detail, "series": series})


def _fill(cosines: Values, policy: Missing) -> Callable[[Generator], Values]:
    """The similarities with what is missing filled in, anew at each call."""
    gaps = np.isnan(cosines)

    def filled(rng: Generator) -> Values:
        values = cosines.copy()
        values[gaps] = rng.uniform(-1, 1, int(gaps.sum())) if policy == "random" else 0.0
        return values

    return filled


@dataclass(frozen=True)
class _Measured:
    scores: Values
    fill: Callable[[Generator], Values]
    statistic: Callable[[Values, Values], float]
    repetitions: int

    def value(self, rng: Generator) -> float:
        return float(np.mean([self.statistic(self.fill(rng), self.scores) for _ in range(self.repetitions)]))

    def resampled(self, rng: Generator, draws: int) -> Values:
        rows = (rng.integers(self.scores.size, size=self.scores.size) for _ in range(draws))
        values = np.array([self.statistic(self.fill(rng)[row], self.scores[row]) for row in rows])
        return values[~np.isnan(values)]

    def permuted(self, rng: Generator) -> Values:
        similarities = self.fill(rng)
        draws = (self.statistic(similarities, rng.permutation(self.scores)) for _ in range(PERMUTATIONS))
        return np.array(list(draws))


def _correlation(
    measured: _Measured,
    terms: TermVectors,
    own: NDArray[np.bool_],
    detail: dict[str, Any],
    rng: Generator,
    draws: int,
) -> Finding:
    source, n = SOURCE[detail["protocol"]], measured.scores.size
    if detail["covered"] < 3:
        why = f"{detail['covered']} of {detail['asked']} pairs have a similarity; a correlation needs three"
        return Finding("utility.similarity", None, n, "higher", source=source, detail={**detail, "why": why})
    value, resampled = measured.value(rng), measured.resampled(rng, draws)
    if np.isnan(value) or not resampled.size:
        why = "the similarities or the scores do not vary"
        return Finding("utility.similarity", None, n, "higher", source=source, detail={**detail, "why": why})
    low, high = np.quantile(resampled, [0.025, 0.975])
    more: dict[str, Any] = {
        "p": permutation_p(value, measured.permuted(rng)),
        "interval": "bootstrap over word pairs, 95 %",
    }
    more["p_is"] = "people's scores permuted, one-sided"
    control = _control(terms, measured, own, rng)
    if control is not None:
        more["control_is"] = "vectors dealt out anew among the terms"
    return Finding("utility.similarity", value, n, "higher", low, high, 0.0, control, source, {**detail, **more})


def _control(terms: TermVectors, measured: _Measured, own: NDArray[np.bool_], rng: Generator) -> float | None:
    """The mean correlation when the vectors of terms are dealt out anew; None where no such draw has three pairs."""
    rows = np.flatnonzero(terms.found)
    if measured.scores.size != int(own.sum()) or rows.size < 4:
        return None
    values = []
    for _ in range(SHUFFLES):
        order = np.arange(terms.found.size)
        order[rows] = rng.permutation(rows)
        cosines = terms.cosines(order)[own]
        live = ~np.isnan(cosines)
        if live.sum() >= 3:
            values.append(measured.statistic(cosines[live], measured.scores[live]))
    values = [value for value in values if not np.isnan(value)]
    return float(np.mean(values)) if values else None


def _coverage(own: NDArray[np.bool_], wanted: NDArray[np.bool_], detail: dict[str, Any]) -> Finding:
    n = int(wanted.sum())
    why = {"why": "a count has no interval" if n else "no pair is asked for"}
    share = float(own.sum() / n) if n else None
    return Finding(
        "utility.similarity_coverage", share, n, "higher", source=SOURCE[detail["protocol"]], detail={**detail, **why}
    )
