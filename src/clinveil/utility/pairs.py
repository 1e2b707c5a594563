"""Word pairs with human similarity scores: lists, the vectors of their terms, and correlations."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Floats, InputError, Ints, Mask, words
from clinveil.vectors import Vectors

_TERMS = (("term1", "term2"), ("word1", "word2"))
_SCORES = (
    ("score",),
    ("mean",),
    ("humanmean",),
    ("rating",),
    ("similarity",),
    ("relatedness",),
    ("physicians", "coders"),
    ("physician", "coder"),
)
Statistic = Literal["pearson", "spearman"]
FEWEST_PAIRS = 20  # for a correlation
REPETITIONS = 100  # draws of random similarities for missing pairs (paper C's code)
PERMUTATIONS = 999
_FILLS = 10  # the same for each draw of the bootstrap
_CELLS = 1 << 21  # numbers in memory in `in_blocks`
Protocol = Literal["jamia", "clinicalnlp"]
Rows = list[tuple[int, list[str]]]


@dataclass(frozen=True)
class PairList:
    """Pairs of terms with human similarity scores.

    Attributes:
        name: name of the list, from its file. terms: (n_pairs) both terms, as written.
        scores: (n_pairs,) float64; the mean of the scores of physicians and coders.
    """

    name: str
    terms: tuple[tuple[str, str], ...] = field(repr=False)
    scores: Doubles = field(repr=False)

    def __len__(self) -> int:
        return len(self.terms)


def read_pairs(path: Path) -> PairList:
    """Read a list from CSV or tab-separated text, with named columns or three columns: two terms
    and a score.

    Column names: term1, term2 (or word1, word2) and score, mean, rating, similarity, or physicians
    and coders.

    Raises:
        InputError: missing, not UTF-8, unknown columns, a blank term, or a score that is not a
            number; one line with the file and the row.
    """
    rows = _rows(path)
    terms, scores, body = _layout(rows, path)
    if not body:
        raise InputError("has no pair below its header", where=path.name)
    pairs = [_pair(row, values, terms, scores, path) for row, values in body]
    name = re.sub(r"\W+", "-", path.stem.lower()).strip("-") or "pairs"
    return PairList(name, tuple(pair for pair, _ in pairs), np.array([score for _, score in pairs]))


def _rows(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
            reader = csv.reader(file, delimiter=separator, strict=True)
            rows = [
                (reader.line_num, [cell.strip() for cell in row])
                for row in reader
                if any(map(str.strip, row))
            ]
    except (OSError, UnicodeDecodeError, csv.Error):
        message = "is missing, or is not a table in UTF-8"
        hint = "pass CSV with two terms and a score"
        raise InputError(message, where=path.name, hint=hint) from None
    if not rows:
        raise InputError("has no row", where=path.name)
    return rows


def _layout(rows: Rows, path: Path) -> tuple[Sequence[int], Sequence[int], Rows]:
    """Return the columns of the terms and of the scores, and the rows below the header."""
    header = [re.sub(r"[\W_]+", "", cell.lower()) for cell in rows[0][1]]
    if len(set(header)) == len(header):
        terms = next((pair for pair in _TERMS if set(pair) <= set(header)), None)
        scores = next((names for names in _SCORES if set(names) <= set(header)), None)
        if terms and scores:
            return (
                [header.index(name) for name in terms],
                [header.index(name) for name in scores],
                rows[1:],
            )
        if terms:
            raise InputError(
                "has no column of scores", where=path.name, hint="name the column score"
            )
    if len(header) != 3:
        raise InputError(
            "has no columns term1, term2 and score", where=path.name, hint="rename its columns"
        )
    return [0, 1], [2], rows if _number(rows[0][1][2]) is not None else rows[1:]


def _pair(
    row: int, values: list[str], terms: Sequence[int], scores: Sequence[int], path: Path
) -> tuple[tuple[str, str], float]:
    if len(values) <= max(*terms, *scores):
        raise InputError(f"row {row} has {len(values)} columns", where=path.name)
    one, other = (values[column] for column in terms)
    if not one or not other:
        raise InputError(f"row {row} lacks a term", where=path.name)
    numbers = [number for column in scores if (number := _number(values[column])) is not None]
    if len(numbers) < len(scores):
        raise InputError(f"row {row}: the score is not a number", where=path.name)
    return (one, other), sum(numbers) / len(numbers)


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


@dataclass(frozen=True)
class TermVectors:
    """Vectors of all terms of a list, (n_terms, dim), zeros for missing ones; `first` and `second`:
    rows of each pair.

    `partial`: (n_terms,) whether only some words of a term have a vector, of which the mean is
    taken.
    """

    matrix: Doubles
    has_vector: Mask
    partial: Mask
    first: Ints
    second: Ints

    def cosines(self) -> Doubles:
        """Return the cosine of each pair, (n_pairs,); NaN if a term has no vector or a zero
        vector.
        """
        norms = np.linalg.norm(self.matrix, axis=1)
        length = norms[self.first] * norms[self.second]
        product = np.einsum("ij,ij->i", self.matrix[self.first], self.matrix[self.second])
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(product / length, -1, 1)
        return np.where(
            self.has_vector[self.first] & self.has_vector[self.second] & (length > 0),
            cosine,
            np.nan,
        )

    def permuted(self, rng: Generator) -> TermVectors:
        """Return the terms with their vectors permuted (control)."""
        live = np.flatnonzero(self.has_vector & (np.linalg.norm(self.matrix, axis=1) > 0))
        matrix = self.matrix.copy()
        matrix[live] = matrix[rng.permutation(live)]
        return TermVectors(matrix, self.has_vector, self.partial, self.first, self.second)


@dataclass(frozen=True)
class PairVectors:
    """Vectors of both terms of every pair.

    Pairs without vectors in `evaluated`, the measured vectors, are compared in `subword`, fastText
    vectors; `from_subwords`, (n_pairs,), marks these pairs.
    """

    evaluated: TermVectors
    subword: TermVectors | None
    from_subwords: Mask

    def cosines(self) -> Doubles:
        """Return the cosine of each pair, (n_pairs,); NaN if a term has no vector."""
        measured = self.evaluated.cosines()
        return (
            measured
            if self.subword is None
            else np.where(self.from_subwords, self.subword.cosines(), measured)
        )

    def partial(self) -> Mask:
        """Return whether a term of the pair lacks vectors of some of its words, (n_pairs,)."""
        return ~self.from_subwords & (
            self.evaluated.partial[self.evaluated.first]
            | self.evaluated.partial[self.evaluated.second]
        )

    def permuted(self, rng: Generator) -> PairVectors:
        """Return the terms with permuted vectors (control); the same pairs have a similarity."""
        subword = None if self.subword is None else self.subword.permuted(rng)
        return PairVectors(self.evaluated.permuted(rng), subword, self.from_subwords)


def pair_vectors(
    vectors: Vectors, pairs: PairList, protocol: Protocol = "jamia", subwords: Vectors | None = None
) -> PairVectors:
    """Return the vectors of the terms of a list: the mean over words (jamia), or single words only
    (clinicalnlp).

    `subwords`: fastText vectors of the same text, for unknown words (jamia only). Both terms of a
    pair with an unknown word are compared in these, because the axes of two trainings are
    unrelated; the protocol does not specify this.

    Raises InputError if `subwords` has no subword vectors.
    """
    use = subwords if protocol == "jamia" else None
    if use is not None and use.subwords is None:
        raise InputError(
            "the vectors have no subwords",
            hint="train with --algorithm fasttext and write a folder",
        )

    def own_words(term: str) -> list[Floats]:
        forms = words(term)
        known = [vectors.matrix[vectors.ids[form]] for form in forms if form in vectors.ids]
        refused = (
            len(forms) > 1
            if protocol == "clinicalnlp"
            else use is not None and len(known) < len(forms)
        )
        return [] if refused else known

    own = _terms(pairs, vectors.dim, own_words)
    missing = np.isnan(own.cosines())
    if use is None or not missing.any():
        return PairVectors(own, None, np.zeros(len(pairs), dtype=np.bool_))
    needed = {term for pair, gap in zip(pairs.terms, missing, strict=True) if gap for term in pair}

    def with_subwords(term: str) -> list[Floats]:
        """Return fastText's vectors of the words, or of the n-grams of unknown words."""
        found = []
        for form in words(term) if term in needed else ():
            known = form in use.ids
            vector = (
                use.matrix[use.ids[form]]
                if known
                else use.subwords.vector(form)
                if use.subwords
                else None
            )
            found += [] if vector is None else [vector]
        return found

    subword = _terms(pairs, use.dim, with_subwords)
    return PairVectors(own, subword, missing & ~np.isnan(subword.cosines()))


def _terms(pairs: PairList, dim: int, known: Callable[[str], list[Floats]]) -> TermVectors:
    """Return for each term the mean of the known vectors of its words."""
    terms = {
        term: row
        for row, term in enumerate(dict.fromkeys(term for pair in pairs.terms for term in pair))
    }
    matrix = np.zeros((len(terms), dim))
    found = np.zeros(len(terms), dtype=np.bool_)
    partial = np.zeros(len(terms), dtype=np.bool_)
    for term, row in terms.items():
        if parts := known(term):
            matrix[row] = np.mean(parts, axis=0, dtype=np.float64)
            found[row] = True
            partial[row] = len(parts) < len(words(term))
    one, other = (
        np.array([terms[pair[side]] for pair in pairs.terms], dtype=np.int64) for side in (0, 1)
    )
    return TermVectors(matrix, found, partial, one, other)


def prepared(rows: Doubles, statistic: Statistic) -> Doubles:
    """Return values or ranks of each row scaled to mean 0 and length 1, so that correlations are
    dot products.

    Constant rows become NaN.
    """
    if statistic == "spearman":
        from scipy.stats import rankdata  # takes half a second to import

        rows = np.asarray(rankdata(rows, axis=1), dtype=np.float64)
    spread = np.ptp(rows, axis=1, keepdims=True)
    centred = (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.nan)
    return np.asarray(
        centred / np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None], dtype=np.float64
    )


def products(first: Doubles, second: Doubles) -> Doubles:
    """Return the correlation of corresponding prepared rows, (n_rows,)."""
    return np.asarray(np.clip(np.einsum("ij,ij->i", first, second), -1, 1), dtype=np.float64)


def in_blocks(count: int, width: int, values: Callable[[int], Doubles]) -> Doubles:
    """Return the results of `values(n)` for blocks of `count` rows, (count,), in bounded memory."""
    most = max(1, _CELLS // max(1, width))
    return np.concatenate([values(min(most, count - start)) for start in range(0, count, most)])


@dataclass(frozen=True)
class Correlated:
    """Similarities and human scores of the same pairs.

    Attributes:
        cosines: (n_pairs,) NaN where missing. scores: (n_pairs,).
        random: replace missing similarities with uniform draws from [-1, 1) in each use; otherwise
            with 0.
    """

    cosines: Doubles
    scores: Doubles
    statistic: Statistic
    random: bool = False

    def value(self, rng: Generator) -> float:
        """Return the correlation (with random similarities the mean of 100); NaN if one side is
        constant.
        """
        return float(products(self._mean(rng), self._prepared_scores())[0])

    def of(self, cosines: Doubles, rng: Generator) -> Doubles:
        """Return the correlation of other similarities (n_rows, n_pairs) with the scores,
        (n_rows,).
        """
        return products(
            prepared(self._filled(cosines, rng), self.statistic), self._prepared_scores()
        )

    def permuted(self, rng: Generator) -> Doubles:
        """Return the correlations with permuted scores, (999,), with one set of random
        similarities.
        """
        mean = self._mean(rng)[0]
        scores = self._prepared_scores()[0]

        def shuffled(n: int) -> Doubles:
            return np.asarray(
                rng.permuted(np.tile(scores, (n, 1)), axis=1) @ mean, dtype=np.float64
            )

        return in_blocks(PERMUTATIONS, scores.size, shuffled)

    def resampled(self, rng: Generator, draws: int) -> Doubles:
        """Return the correlations over pairs drawn with replacement, without constant draws, (at
        most draws,).

        With random similarities each draw is the mean of ten.
        """
        size = self.scores.size
        fills = _FILLS if self._gaps() else 1

        def drawn(n: int) -> Doubles:
            rows = rng.integers(size, size=(n, size))
            scores = prepared(self.scores[rows], self.statistic)
            values = [products(self._drawn(rows, rng), scores) for _ in range(fills)]
            return np.asarray(np.mean(values, axis=0), dtype=np.float64)

        values = in_blocks(draws, size, drawn)
        return values[~np.isnan(values)]

    def _drawn(self, rows: Ints, rng: Generator) -> Doubles:
        """Return prepared similarities of drawn pairs; a missing pair that is drawn twice has one
        similarity.
        """
        filled = self._filled(np.tile(self.cosines, (len(rows), 1)), rng)
        return prepared(np.take_along_axis(filled, rows, axis=1), self.statistic)

    def _gaps(self) -> bool:
        return self.random and bool(np.isnan(self.cosines).any())

    def _mean(self, rng: Generator) -> Doubles:
        """Return prepared similarities averaged over random draws, (1, n_pairs), which averages the
        correlations.
        """
        fills = REPETITIONS if self._gaps() else 1
        rows = prepared(self._filled(np.tile(self.cosines, (fills, 1)), rng), self.statistic)
        return np.asarray(rows.mean(axis=0, keepdims=True), dtype=np.float64)

    def _prepared_scores(self) -> Doubles:
        return prepared(self.scores[None], self.statistic)

    def _filled(self, cosines: Doubles, rng: Generator) -> Doubles:
        gaps = np.isnan(cosines)
        filled = cosines.copy()
        filled[gaps] = rng.uniform(-1, 1, int(gaps.sum())) if self.random else 0.0
        return filled
