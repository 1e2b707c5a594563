"""Word pairs with human scores of their similarity (the published lists, any table like them), and their vectors."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Floats, Ints, Mask
from clinveil.vectors.table import Vectors

# Published rows by list; of UMNSRS relatedness 588 are said and 587 are usable. The first name that fits counts.
PUBLISHED: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"umnsrssim\w*mod", (449,)),
    (r"umnsrsrel\w*mod", (458,)),
    (r"umnsrssim", (566,)),
    (r"umnsrsrel", (587, 588)),
    (r"minimayo", (29,)),
    (r"mayosrs", (101,)),
    (r"pedersen", (30,)),
    (r"hliaoutakis36", (36,)),
    (r"hliaoutakis", (34, 36)),
    (r"wordsim353", (353,)),
)
_TERMS = (("term1", "term2"), ("word1", "word2"))
_SCORES = (
    *(("score",), ("mean",), ("humanmean",), ("rating",), ("similarity",), ("relatedness",)),
    *(("physicians", "coders"), ("physician", "coder")),
)
Protocol = Literal["jamia", "clinicalnlp"]
Rows = list[tuple[int, list[str]]]


@dataclass(frozen=True)
class PairList:
    """Pairs of terms and how alike people find them.

    Attributes:
        name: of the list, from its file. terms: (n_pairs) both terms, as written.
        scores: (n_pairs,) float64; of physicians' and coders' scores the mean.
        detail: `score`, the column it is from (or "mean of ..."), and `published`, how many rows were, where known.
    """

    name: str
    terms: tuple[tuple[str, str], ...] = field(repr=False)
    scores: Doubles = field(repr=False)
    detail: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.terms)


def read_pairs(path: Path, *, any_size: bool = False) -> PairList:
    """Read a list: CSV or tab-separated, columns by name in any order, or three columns: two terms and a score.

    Known columns: term1, term2 (or word1, word2) and score, mean, rating, similarity, or physicians and coders.

    `any_size`: take a list that is known by its name also where its rows are not as many as were published.

    Raises:
        InputError: missing, not UTF-8, no such columns, a blank term, a score that is no number, or another number of
            rows than published; one line with the file and the row.
    """
    rows = _rows(path)
    terms, scores, body = _layout(rows, path)
    if not body:
        raise InputError("holds no pair below its header", where=path.name)
    found = [_pair(row, values, terms, scores, path) for row, values in body]
    name = re.sub(r"\W+", "-", path.stem.lower()).strip("-") or "pairs"
    compact = re.sub(r"\W|_", "", name)
    published = next((sizes for pattern, sizes in PUBLISHED if re.search(pattern, compact)), ())
    if published and len(found) not in published and not any_size:
        said = f"has {len(found)} pairs; the published list of that name has {' or '.join(map(str, published))}"
        raise InputError(said, where=path.name, hint="--any-size takes it")
    names = [rows[0][1][place].lower() for place in scores] if len(body) < len(rows) else ["third column"]
    detail = {"score": names[0] if len(names) == 1 else f"mean of {' and '.join(names)}"}
    if published:
        detail["published"] = " or ".join(map(str, published))
    return PairList(name, tuple(pair for pair, _ in found), np.array([score for _, score in found]), detail)


def _rows(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
            reader = csv.reader(file, delimiter=separator, strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error):
        what, hint = "is not there, or is no table in UTF-8", "CSV: two terms, a score"
        raise InputError(what, where=path.name, hint=hint) from None
    if not rows:
        raise InputError("holds no row", where=path.name)
    return rows


def _layout(rows: Rows, path: Path) -> tuple[Sequence[int], Sequence[int], Rows]:
    """The places of the terms and of the scores, and the rows below the header."""
    header = [re.sub(r"[\W_]+", "", cell.lower()) for cell in rows[0][1]]
    if len(set(header)) == len(header):
        terms = next((pair for pair in _TERMS if set(pair) <= set(header)), None)
        scores = next((names for names in _SCORES if set(names) <= set(header)), None)
        if terms and scores:
            return [header.index(name) for name in terms], [header.index(name) for name in scores], rows[1:]
        if terms:
            raise InputError("has terms, but no column of scores", where=path.name, hint="name it score")
    if len(header) != 3:
        hint = "give these names to its columns"
        raise InputError("has no columns term1, term2 and score", where=path.name, hint=hint)
    return [0, 1], [2], rows if _number(rows[0][1][2]) is not None else rows[1:]


def _pair(
    row: int, values: list[str], terms: Sequence[int], scores: Sequence[int], path: Path
) -> tuple[tuple[str, str], float]:
    if len(values) <= max(*terms, *scores):
        raise InputError(f"row {row} has {len(values)} columns", where=path.name)
    one, other = (values[place] for place in terms)
    if not one or not other:
        raise InputError(f"row {row} lacks a term", where=path.name)
    found = [_number(values[place]) for place in scores]
    numbers = [number for number in found if number is not None]
    if len(numbers) < len(found):
        raise InputError(f"row {row}: the score is no number", where=path.name)
    return (one, other), sum(numbers) / len(numbers)


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def unique_terms(pairs: PairList) -> Iterator[str]:
    """Every term once, in order of first sight."""
    return iter(dict.fromkeys(term for pair in pairs.terms for term in pair))


@dataclass(frozen=True)
class TermVectors:
    """The vectors of all terms of a list, (n_terms, dim) with zeros where none was found; (n_pairs,) rows of each pair.

    `partial`: (n_terms,) whether some but not all of its words have a vector; the mean is of those that have.
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
    """The vectors of both terms of every pair, each pair in one space: in `own`, that of the measured vectors, or,

    where that gives none (`from_subwords`, (n_pairs,)), in fastText's, `subword`; None without subwords.
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
    """Look the terms of a list up by lookup forms: jamia takes the mean of a term's words, clinicalnlp single words.

    `subwords`: fastText vectors of the same text, for unknown words (jamia only). A pair with such a word is compared
    among those wholly, for two trainings share no axes; the protocol leaves that open.

    Raises InputError: `subwords` that has none.
    """
    use = subwords if protocol == "jamia" else None
    if use is not None and use.subwords is None:
        raise InputError("these vectors have no subwords", hint="train them with --algorithm fasttext, into a folder")

    def own_words(term: str) -> list[Floats]:
        forms = words(term)
        known = [vectors.matrix[vectors.ids[form]] for form in forms if form in vectors.ids]
        refused = len(forms) > 1 if protocol == "clinicalnlp" else use is not None and len(known) < len(forms)
        return [] if refused else known

    own = _terms(pairs, vectors.dim, own_words)
    missing = np.isnan(own.cosines())
    if use is None or not missing.any():
        return PairVectors(own, None, np.zeros(len(pairs), dtype=np.bool_))
    needed = {term for pair, gap in zip(pairs.terms, missing, strict=True) if gap for term in pair}

    def with_subwords(term: str) -> list[Floats]:
        parts = [_subword(use, form) for form in words(term)] if term in needed else []
        return [part for part in parts if part is not None]

    subword = _terms(pairs, use.dim, with_subwords)
    return PairVectors(own, subword, missing & ~np.isnan(subword.cosines()))


def _terms(pairs: PairList, dim: int, known: Callable[[str], list[Floats]]) -> TermVectors:
    """Of each term the mean of the vectors that are known of its words."""
    terms = {term: row for row, term in enumerate(unique_terms(pairs))}
    matrix = np.zeros((len(terms), dim))
    found, partial = np.zeros(len(terms), dtype=np.bool_), np.zeros(len(terms), dtype=np.bool_)
    for term, row in terms.items():
        if parts := known(term):
            matrix[row], found[row] = np.mean(parts, axis=0, dtype=np.float64), True
            partial[row] = len(parts) < len(words(term))
    one, other = (np.array([terms[pair[side]] for pair in pairs.terms], dtype=np.int64) for side in (0, 1))
    return TermVectors(matrix, found, partial, one, other)


def _subword(vectors: Vectors, form: str) -> Floats | None:
    """fastText's vector of a word, and of another one that of its n-grams."""
    if form in vectors.ids:
        return vectors.matrix[vectors.ids[form]]
    return vectors.subwords.vector(form) if vectors.subwords else None
