"""Word pairs with human scores of their similarity: the published lists in their layouts, and any table like them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles

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

    Args:
        any_size: take a list that is known by its name also where its rows are not as many as were published.

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
    published = _published(name)
    if published and len(found) not in published and not any_size:
        said = f"has {len(found)} pairs; the published list of that name has {' or '.join(map(str, published))}"
        raise InputError(said, where=path.name, remedy="--any-size takes it")
    detail = {"score": _scored_by(rows[0][1], scores, named=len(body) < len(rows))}
    if published:
        detail["published"] = " or ".join(map(str, published))
    return PairList(name, tuple(pair for pair, _ in found), np.array([score for _, score in found]), detail)


def _scored_by(header: list[str], scores: Sequence[int], *, named: bool) -> str:
    names = [header[place].lower() for place in scores] if named else ["third column"]
    return names[0] if len(names) == 1 else f"mean of {' and '.join(names)}"


def _rows(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
            reader = csv.reader(file, delimiter=separator, strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError(
            "is not there, or is no table in UTF-8", where=path.name, remedy="CSV: two terms, a score"
        ) from None
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
            raise InputError("has terms, but no column of scores", where=path.name, remedy="name it score")
    if len(header) != 3:
        raise InputError(
            "has no columns term1, term2 and score", where=path.name, remedy="give these names to its columns"
        )
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


def _published(name: str) -> tuple[int, ...]:
    compact = re.sub(r"\W|_", "", name)
    return next((sizes for pattern, sizes in PUBLISHED if re.search(pattern, compact)), ())


def unique_terms(pairs: PairList) -> Iterator[str]:
    """Every term once, in order of first sight."""
    return iter(dict.fromkeys(term for pair in pairs.terms for term in pair))
