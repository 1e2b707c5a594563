"""The vectors of the terms of a word-pair list: looked up, composed of subwords, or missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Floats, Ints, Mask
from clinveil.utility.pairs import PairList, unique_terms
from clinveil.vectors.table import Vectors

Protocol = Literal["jamia", "clinicalnlp"]


@dataclass(frozen=True)
class TermVectors:
    """The vectors of all terms of a list.

    Attributes:
        matrix: (n_terms, dim) float64, zero where there is none. found: (n_terms,) bool.
        partial: (n_terms,) bool, whether some but not all of its words have a vector; the mean is of those that have.
        one, other: (n_pairs,) the rows of each pair.
    """

    matrix: Doubles
    found: Mask
    partial: Mask
    one: Ints
    other: Ints

    def cosines(self) -> Doubles:
        """(n_pairs,) NaN where a term has no vector, or one of length 0."""
        norms = np.linalg.norm(self.matrix, axis=1)
        length = norms[self.one] * norms[self.other]
        product = np.einsum("ij,ij->i", self.matrix[self.one], self.matrix[self.other])
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(product / length, -1, 1)
        return np.where(self.found[self.one] & self.found[self.other] & (length > 0), cosine, np.nan)

    def permuted(self, rng: Generator) -> TermVectors:
        """The same terms, with the vectors of those that have one permuted among them (a control)."""
        live = np.flatnonzero(self.found & (np.linalg.norm(self.matrix, axis=1) > 0))
        matrix = self.matrix.copy()
        matrix[live] = matrix[rng.permutation(live)]
        return TermVectors(matrix, self.found, self.partial, self.one, self.other)


@dataclass(frozen=True)
class PairVectors:
    """The vectors of both terms of every pair, each pair in one space.

    Attributes:
        own: in the vectors that are measured.
        subword: in fastText's, for pairs that have no similarity in `own`; None without subwords.
        from_subwords: (n_pairs,) bool, whose similarity is of `subword`.
    """

    own: TermVectors
    subword: TermVectors | None
    from_subwords: Mask

    def cosines(self) -> Doubles:
        """(n_pairs,) NaN where a term has no vector."""
        own = self.own.cosines()
        return own if self.subword is None else np.where(self.from_subwords, self.subword.cosines(), own)

    def partial(self) -> Mask:
        """(n_pairs,) whether a term's mean lacks some of its words."""
        return ~self.from_subwords & (self.own.partial[self.own.one] | self.own.partial[self.own.other])

    def permuted(self, rng: Generator) -> PairVectors:
        """The control: vectors permuted among the terms; the same pairs keep a similarity."""
        subword = None if self.subword is None else self.subword.permuted(rng)
        return PairVectors(self.own.permuted(rng), subword, self.from_subwords)


def pair_vectors(
    vectors: Vectors, pairs: PairList, protocol: Protocol = "jamia", subwords: Vectors | None = None
) -> PairVectors:
    """Look the terms of a list up, by lookup forms.

    Args:
        protocol: jamia takes the mean of a term's words, clinicalnlp single words only.
        subwords: fastText vectors for unknown words (jamia only); they must come from the same text as `vectors`.
            A pair with an unknown word is compared among those wholly, for two trainings share no axes; the protocol
            leaves that open.

    Raises:
        InputError: `subwords` that has none.
    """
    use = subwords if protocol == "jamia" else None
    if use is not None and use.subwords is None:
        raise InputError("these vectors have no subwords", remedy="train them with --algorithm fasttext, into a folder")
    own = _known(vectors, pairs, single=protocol == "clinicalnlp", whole=use is not None)
    missing = np.isnan(own.cosines())
    if use is None or not missing.any():
        return PairVectors(own, None, np.zeros(len(pairs), dtype=np.bool_))
    subword = _composed(use, pairs, own, missing)
    return PairVectors(own, subword, missing & ~np.isnan(subword.cosines()))


def _known(vectors: Vectors, pairs: PairList, *, single: bool, whole: bool) -> TermVectors:
    """Means of known words; `single`: of one word only; `whole`: only where all its words are known."""
    terms = {term: row for row, term in enumerate(unique_terms(pairs))}
    matrix = np.zeros((len(terms), vectors.dim))
    found, partial = np.zeros(len(terms), dtype=np.bool_), np.zeros(len(terms), dtype=np.bool_)
    for term, row in terms.items():
        forms = words(term)
        known = [vectors.ids[form] for form in forms if form in vectors.ids]
        gaps = len(known) < len(forms)
        if known and not (single and len(forms) > 1) and not (whole and gaps):
            matrix[row], found[row], partial[row] = vectors.matrix[known].mean(axis=0, dtype=np.float64), True, gaps
    one, other = (np.array([terms[pair[side]] for pair in pairs.terms], dtype=np.int64) for side in (0, 1))
    return TermVectors(matrix, found, partial, one, other)


def _composed(vectors: Vectors, pairs: PairList, own: TermVectors, missing: Mask) -> TermVectors:
    """fastText's vectors of the terms of missing pairs: its words, and for the others their n-grams."""
    needed = set(own.one[missing].tolist()) | set(own.other[missing].tolist())
    matrix, found = np.zeros((own.found.size, vectors.dim)), np.zeros_like(own.found)
    for row, term in enumerate(unique_terms(pairs)):
        parts = [_subword(vectors, form) for form in words(term)] if row in needed else []
        known = [part for part in parts if part is not None]
        if known:
            matrix[row], found[row] = np.mean(known, axis=0, dtype=np.float64), True
    return TermVectors(matrix, found, np.zeros_like(found), own.one, own.other)


def _subword(vectors: Vectors, form: str) -> Floats | None:
    if form in vectors.ids:
        return vectors.matrix[vectors.ids[form]]
    return vectors.subwords.vector(form) if vectors.subwords else None
