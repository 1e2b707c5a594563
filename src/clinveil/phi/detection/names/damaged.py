"""Names in damaged text: letters set apart by spaces (`J o h n`), and letters that OCR misread (`J0hn`, `Srnith`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.phi.detection.names.fields import CAPITAL, NameSpan
from clinveil.phi.detection.names.state import NameState
from clinveil.phi.detection.note import look_up
from clinveil.phi.matching.wordtable import mark

_SPACED = re.compile(
    r"(?:[A-Z](?: [a-z]){2,}(?: {1,3}[A-Z](?: [a-z]){2,})*|[A-Z](?: [A-Z]){3,}(?: {2,3}[A-Z](?: [A-Z]){2,})*)(?![^\W_])"
)
_GROUP = re.compile(r"[A-Z](?: [a-z])+|[A-Z](?: [A-Z])+")
_DIGIT = re.compile(r"[013458](?=[A-Za-z])")
_WORD = re.compile(r"[A-Z013458][A-Za-z013458]{3,}(?![^\W_])")
_SURNAME = re.compile(r" [A-Z013458][A-Za-z013458]+(?![^\W_])")
_READINGS = (str.maketrans("013458", "oleasb"), str.maketrans("013458", "oieasb"))
_SHORTEST, _LONGEST = 5, 24
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_NAME_OR_WORD = LexicalClass.NAME | LexicalClass.WORD


def _usual(word: str) -> bool:
    kind = lexical_classes(word)
    return bool(kind & _USUAL) and not kind & LexicalClass.WORD


def _misread(written: str) -> bool:
    """Return whether an unlisted word is a usual name if `rn` was m, or `vv` was w."""
    text, lower, kind = look_up(written)
    if len(text) < _SHORTEST or ("rn" not in lower and "vv" not in lower) or text == lower or kind & _NAME_OR_WORD:
        return False
    return _usual(lower.replace("rn", "m")) or _usual(lower.replace("vv", "w"))


_MISREAD = mark(_misread)


def damaged_names(state: NameState) -> Iterator[NameSpan]:
    """Yield letter-spaced names and names with misread letters."""
    yield from _spaced(state)
    yield from _with_digits(state.text)
    for index in state.words.marked(_MISREAD):
        word = state.words[index]
        yield NameSpan(word.start, word.end, "misread name")


def _spaced(state: NameState) -> Iterator[NameSpan]:
    reach = 0
    for index in state.words.marked(CAPITAL):
        start = state.words.starts[index]
        match = _SPACED.match(state.text, start) if start >= reach else None
        if match is None:
            continue
        reach = match.end()
        names = [group for group in _GROUP.finditer(match[0]) if _may_be_name(group[0].replace(" ", ""))]
        if names:
            yield NameSpan(start + names[0].start(), start + names[-1].end(), "spaced letters")


def _may_be_name(word: str) -> bool:
    """Return whether joined letters are a listed name or, in mixed case, an unlisted word."""
    kind = lexical_classes(word)
    if kind & LexicalClass.WORD:
        return bool(kind & _USUAL) and not kind & LexicalClass.FUNCTION and not word.isupper()
    return bool(kind & LexicalClass.NAME) or (len(word) > 3 and not word.isupper())


def _with_digits(text: str) -> Iterator[NameSpan]:
    """Yield words that are usual names if their digits are read as letters."""
    reach = 0
    for digit in _DIGIT.finditer(text):
        start = digit.start()
        while start > max(reach, digit.start() - _LONGEST) and text[start - 1].isalnum():
            start -= 1
        match = _WORD.match(text, start) if start >= reach else None
        if match is None:
            continue
        reach = match.end()
        letters = sum(map(str.isalpha, match[0]))
        if letters * 2 > len(match[0]) and any(map(_usual, _readings(match[0]))):
            surname = _SURNAME.match(text, reach)
            if surname and any(lexical_classes(reading) & _USUAL for reading in _readings(surname[0][1:])):
                reach = surname.end()
            yield NameSpan(match.start(), reach, "misread name")


def _readings(word: str) -> list[str]:
    return [word.lower().translate(table) for table in _READINGS]
