"""A vocabulary that keeps layout: words with their case and the space before them, line breaks,
punctuation, numbers.

Only pieces of `min_patients` patients or more are in it, so a model cannot write a rare word or
invent one. A rarer spelling of a shared word becomes its usual spelling, a rarer number becomes its
shape, whose digits are drawn when it is written, and a rare word becomes a slot, in which a shared
word of the same form is written. Headings are one piece.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core import (
    CLOSE,
    OPEN,
    PLACEHOLDER,
    Ints,
    Kind,
    SmallInts,
    lookup_form,
    tokenize,
    word_set,
)

END = 0
RARE_WORD = 1
DIGIT = "\ue000"  # of a shape; as a private-use character it is never in a piece of text
GAP = "\ue001"  # where a rare word is left out; between two words or numbers it becomes a space
_JOINS = re.compile(rf"(?<=[\w{DIGIT}{CLOSE}]){GAP}+(?=[\w{DIGIT}{OPEN}])")
_ASCII = re.compile(r"(?:(?<!\s) )?(?:[A-Za-z]+|[0-9]+|[!-/:-@\[-`{-~])|\s+")
SLOT = "\ue002"  # of a rare word; its kind follows
_HEADING = re.compile(rf"(?<![^\n,])[^\W\d_][^\n\d:;,.{DIGIT}{GAP}{SLOT}{OPEN}{CLOSE}]{{1,60}}:")
_BREAKS = ("\n\n", "\n")
_ENDINGS = (("ing",), ("ed",), ("ly",), ("al", "ic", "ous", "ive", "ar", "ary"), ("s",))
# Marks of pieces. A period after a short piece (abbreviation, letter, number) does not end a
# sentence.
SHORT, WORD, BLANK, PUNCTUATION, COMMA, ENDS, LINE, HEADING = range(-1, 7)
_ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "miss", "dr", "prof", "st", "vs", "no"})
_WRITTEN = frozenset({Kind.WORD, Kind.NUMBER, Kind.PUNCT, Kind.SPACE})


def pieces_of(text: str, headings: Container[str] = frozenset()) -> list[str]:
    """Return the pieces of a text: a single space belongs to the piece after it, other white space
    is a piece.

    Each of the `headings` is one piece at the start of a line, or after a comma without a space
    (MTSamples).
    """

    def plain(part: str) -> list[str]:
        return _ASCII.findall(part) if part.isascii() else list(_pieces(part))

    found = (match for match in _HEADING.finditer(text) if match[0] in headings)
    return _around(text, found, lambda part: _around(part, PLACEHOLDER.finditer(part), plain))


def _around(
    text: str, matches: Iterable[re.Match[str]], pieces: Callable[[str], list[str]]
) -> list[str]:
    """Return the matches, and the pieces of the text between them."""
    rows = list[str]()
    end = 0
    for match in matches:
        rows += [*pieces(text[end : match.start()]), match[0]]
        end = match.end()
    return [*rows, *pieces(text[end:])]


def slot_of(piece: str) -> str:
    """Return the slot of a rare word: the space before it, its case, and its ending; nothing for
    other pieces.
    """
    bare = piece.strip()
    if not bare.isalpha():
        return ""
    kind = "U" if bare.isupper() and len(bare) > 1 else "C" if bare[0].isupper() else ""
    kind = kind or next((str(row) for row, ends in enumerate(_ENDINGS) if bare.endswith(ends)), "")
    return f"{piece[: len(piece) - len(piece.lstrip())]}{SLOT}{kind}"


def _pieces(text: str) -> Iterator[str]:
    space = ""
    for token in tokenize(text):
        piece = text[token.start : token.end]
        if token.kind == Kind.SPACE:
            yield from [space] if space else []
            space = piece
        elif token.kind in _WRITTEN:
            yield from [space] if len(space) > 1 or space == "\n" else []
            yield (" " if space == " " else "") + piece
            space = ""
    yield from [space] if space else []


class LayoutVocabulary:
    """The shared pieces of training notes; `train_layout` collects them."""

    kind = "layout"

    def __init__(self, pieces: Iterable[str], numbers: Iterable[Sequence[str]] = ()) -> None:
        self.pieces = ("", "", *pieces)
        # Two pieces, and a number or shape that patients share there.
        self.numbers = {tuple(row) for row in numbers}
        self._ids = {piece: row for row, piece in enumerate(self.pieces) if row > RARE_WORD}
        self.words = word_set(
            piece for piece in self.pieces if SLOT not in piece and OPEN not in piece
        )
        self.headings = frozenset(filter(_HEADING.fullmatch, self.pieces))
        # By lookup form: the first, and therefore commonest, spelling after a space and without
        # one.
        self._usual: dict[tuple[bool, str], int] = {}
        for piece, row in self._ids.items():
            if form := _form(piece):
                self._usual.setdefault((piece[0] == " ", form), row)

    @property
    def size(self) -> int:
        """Pieces, including the end of a note and the rare word."""
        return len(self.pieces)

    @cached_property
    def marks(self) -> Ints:
        """The mark of each piece, (size,)."""
        return np.array([_mark(piece) for piece in self.pieces], dtype=np.int64)

    @cached_property
    def shapes(self) -> Ints:
        """The piece that stands for each piece in contexts, (size,): numbers of one shape are one
        piece.
        """
        first = dict[str, int]()
        shapes = (piece if OPEN in piece else re.sub(r"\d", DIGIT, piece) for piece in self.pieces)
        found = [first.setdefault(shape, row) if shape else row for row, shape in enumerate(shapes)]
        return np.array(found, dtype=np.int64)

    @cached_property
    def slots(self) -> dict[int, Ints]:
        """Words that can be written in each slot: of its kind, not among the commonest quarter of
        pieces if possible.

        A name has no spelling in lower case.
        """
        kinds = defaultdict[str, list[int]](list)
        for row, piece in enumerate(self.pieces):
            lower = piece.strip().lower()
            if (
                self.marks[row] == WORD
                and OPEN not in piece
                and (piece.islower() or not {lower, f" {lower}"} & self._ids.keys())
            ):
                kinds[slot_of(piece)].append(row)
        every = [row for rows in kinds.values() for row in rows]
        places = {
            row: kinds[piece] or every for row, piece in enumerate(self.pieces) if SLOT in piece
        }
        found = {
            row: np.array(own, dtype=np.int64) for row, own in {RARE_WORD: every, **places}.items()
        }
        return {
            row: rarer if (rarer := own[own > self.size // 4]).size else own
            for row, own in found.items()
        }

    @cached_property
    def edges(self) -> tuple[SmallInts, SmallInts]:
        """Token classes of the first and last character of each piece, (size,) each; -1 for pieces
        without text.
        """
        # A placeholder is like a word.
        texts = (
            PLACEHOLDER.sub(lambda match: match[0][: match.start("inner") - 1] + "x", row)
            for row in self.pieces
        )
        kinds = [[int(token.kind) for token in tokenize(text)] or [-1] for text in texts]
        first, last = ([row[at] for row in kinds] for at in (0, -1))
        return np.array(first, dtype=np.int32), np.array(last, dtype=np.int32)

    def encode(self, text: str) -> SmallInts:
        """Return the numbers of a note's pieces, followed by 0."""
        rows = list[int]()
        for before, piece in _with_context(pieces_of(text, self.headings), self._ids):
            options = (self._ids[one] for one in _options(piece) if (*before, one) in self.numbers)
            rows.append(next(options, 0) or self._ids.get(piece) or self._nearest(piece))
        return np.array([*(row for row in rows if row != END), END], dtype=np.int32)

    def _nearest(self, piece: str) -> int:
        """Return the shared piece that stands for a rare one; END for white space that is left
        out.
        """
        bare = piece.strip()
        if not bare:
            options: tuple[str, ...] = _BREAKS[piece.count("\n") < 2 :] if "\n" in piece else ()
            return next((self._ids[one] for one in options if one in self._ids), END)
        spaced = piece[0] == " "
        if bare.isdigit():
            shapes = (bare if spaced else f" {bare}", *_shapes(piece), *_shapes(bare))
            return next((self._ids[shape] for shape in shapes if shape in self._ids), RARE_WORD)
        form = _form(piece)
        if not form:
            return self._ids.get(bare if spaced else f" {bare}", RARE_WORD)
        slot = slot_of(piece)
        return (
            self._usual.get((spaced, form))
            or self._usual.get((not spaced, form))
            or self._ids.get(slot)
            or self._ids.get(slot[: slot.find(SLOT) + 1], RARE_WORD)
        )

    def decode(self, ids: Sequence[int], rng: Generator | None = None) -> str:
        """Return the text; digits of shapes are drawn, or 0 without a generator."""
        rows = np.array(ids, dtype=np.int64)
        first, last = (edge[rows] for edge in self.edges)
        # A usual spelling may lack the space of the word that it replaces.
        fuses = np.isin(first, (Kind.WORD, Kind.NUMBER)) & (first == np.roll(last, 1))
        fuses[:1] = False
        pieces = (
            GAP if row == RARE_WORD or SLOT in self.pieces[row] else self.pieces[row] for row in ids
        )
        text = "".join(
            GAP + piece if fused else piece
            for piece, fused in zip(pieces, fuses.tolist(), strict=True)
        )
        text = _JOINS.sub(" ", text).replace(GAP, "").strip()
        parts = text.split(DIGIT)
        digits = (
            ["0"] * (len(parts) - 1)
            if rng is None
            else rng.integers(10, size=len(parts) - 1).tolist()
        )
        return parts[0] + "".join(
            f"{digit}{part}" for digit, part in zip(digits, parts[1:], strict=True)
        )

    def knows(self, piece: str) -> bool:
        """Return whether a piece, in any case, is written as it is, with or without a space before
        it.
        """
        form = lookup_form(piece)
        return form in self.words or piece in self._ids or f" {piece}" in self._ids

    def as_dict(self) -> dict[str, Any]:
        """Return the pieces without the special ones."""
        return {
            "kind": self.kind,
            "pieces": list(self.pieces[RARE_WORD + 1 :]),
            "numbers": sorted(self.numbers),
        }


def _form(piece: str) -> str:
    """Return the lookup form; of a placeholder its kind, so that a rare number or form becomes the
    commonest one.
    """
    return (
        f"{OPEN}{inner['inner'].split()[0]}"
        if (inner := PLACEHOLDER.fullmatch(piece))
        else lookup_form(piece.strip())
    )


def _with_context(
    pieces: Iterable[str], known: Container[str]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each piece with the two before it; a number is "0" there, and a piece that is not known
    "".
    """
    before = "", ""
    for piece in pieces:
        yield before, piece
        before = before[1], "0" if piece.strip().isdigit() else piece if piece in known else ""


def _options(piece: str) -> tuple[str, ...]:
    """Return a number of three digits or more and its shapes, from special to general; nothing for
    other pieces.
    """
    return (piece, *_shapes(piece)) if len(piece.strip()) > 2 and piece.strip().isdigit() else ()


def _shapes(number: str) -> list[str]:
    """Return the number with its last digits replaced: one of them, two, up to all."""
    first = len(number) - len(number.lstrip())
    return [
        number[:end] + DIGIT * (len(number) - end) for end in range(len(number) - 1, first - 1, -1)
    ]


def _mark(piece: str) -> int:
    if _HEADING.fullmatch(piece):
        return HEADING
    if not piece.strip():
        return LINE if "\n" in piece else BLANK
    bare = piece.strip().lower()
    if piece[-1].isalnum() or any(sign in piece for sign in (SLOT, DIGIT, OPEN)):
        short = (
            bare in _ABBREVIATIONS
            or len(bare) == 1
            or bare[-1].isdigit()
            or DIGIT in piece
            or "-letter" in piece
        )
        return SHORT if short else WORD
    return ENDS if bare in {".", "?", "!"} else COMMA if piece == "," else PUNCTUATION


def train_layout(
    texts: Sequence[str], patients: Sequence[str], min_patients: int
) -> LayoutVocabulary:
    """Collect the pieces, spellings and shapes of numbers that `min_patients` patients or more
    have.
    """
    headings = _shared_by(min_patients, patients, (set(_HEADING.findall(text)) for text in texts))
    by_patient: dict[str, set[str]] = defaultdict(set)
    for patient, text in zip(patients, texts, strict=True):
        by_patient[patient].update(pieces_of(text, headings))
    holders = Counter(piece for own in by_patient.values() for piece in own)
    shapes = Counter(
        shape
        for own in by_patient.values()
        for shape in {s for p in own if p.strip().isdigit() for s in _shapes(p)}
    )
    forms = Counter(
        form for own in by_patient.values() for form in {_form(p) for p in own if OPEN not in p}
    )
    counts = {piece: max(holders[piece], shapes[piece]) for piece in (*holders, *shapes)}
    kept = [piece for piece, n in counts.items() if n >= min_patients]
    known = {_form(piece) for piece in kept}
    kept += [
        f" {form}" for form, n in forms.items() if form and n >= min_patients and form not in known
    ]
    rare = (
        {slot_of(piece) for piece in own if _form(piece) not in known}
        for own in by_patient.values()
    )
    kept += _shared_by(min_patients, by_patient, rare) - {""}
    return LayoutVocabulary(
        sorted(set(kept), key=lambda piece: (-counts.get(piece, 0), piece)),
        _shared_numbers(texts, patients, headings, set(kept), min_patients),
    )


def _shared_by(floor: int, owners: Iterable[str], rows: Iterable[set[str]]) -> frozenset[str]:
    """Return the values that occur with `floor` owners or more."""
    pairs = {(owner, value) for owner, row in zip(owners, rows, strict=True) for value in row}
    return frozenset(
        value for value, n in Counter(value for _, value in pairs).items() if n >= floor
    )


def _shared_numbers(
    texts: Sequence[str],
    patients: Sequence[str],
    headings: Container[str],
    known: Container[str],
    min_patients: int,
) -> Iterator[tuple[str, str, str]]:
    """Yield two pieces and the number or shape that enough patients have after them."""
    by_patient: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for patient, text in zip(patients, texts, strict=True):
        for before, piece in _with_context(pieces_of(text, headings), known):
            by_patient[patient].update((*before, one) for one in _options(piece))
    holders = Counter(row for own in by_patient.values() for row in own)
    yield from (row for row, n in holders.items() if n >= min_patients)
