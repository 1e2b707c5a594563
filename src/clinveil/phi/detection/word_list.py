"""`WordList`: words and phrases of a site, which are always or never replaced, and their places in
a note.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from clinveil.core import LABELS, Span, UsageError
from clinveil.phi.detection.note import NoteView

_TOKEN = re.compile(r"[^\W_]+")
_GAP = 3  # characters between two words of a phrase
_LABEL = "NAME"
_JOINED = frozenset("-'@_")
_Phrase = tuple[tuple[str, ...], str]


class PhraseMatch(NamedTuple):
    """A phrase in the plain copy of a note."""

    start: int
    end: int
    label: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class WordList:
    """Phrases of one or more words, in any letter case; its repr contains none of them.

    Attributes:
        phrases: words of each phrase in lower case, and its label.
    """

    phrases: tuple[_Phrase, ...] = field(repr=False)
    _first: Mapping[str, list[_Phrase]] = field(init=False, repr=False, compare=False)

    @classmethod
    def read(cls, path: Path, *, labels: bool = False) -> WordList:
        """Read one phrase per line; with `labels`, a tab and a label may follow (default: NAME).

        Raises UsageError for a missing or empty file, another encoding, or an unknown label.
        """
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError:
            hint = "save it as UTF-8"
            raise UsageError("is not UTF-8 text", where=path.name, hint=hint) from None
        except OSError:
            raise UsageError(
                "cannot be read", where=path.name, hint="write one word per line"
            ) from None
        phrases = set[_Phrase]()
        for number, line in enumerate(lines, 1):
            phrase, _, label = line.partition("\t")
            label = label.strip() or _LABEL
            if "\t" in line and not (labels and label in LABELS):
                hint = (
                    "one of " + ", ".join(LABELS) if labels else "write one word or phrase per line"
                )
                raise UsageError(f"line {number}: unknown label", where=path.name, hint=hint)
            if words := tuple(word.casefold() for word in _TOKEN.findall(phrase)):
                phrases.add((words, label))
        if not phrases:
            raise UsageError("contains no words", where=path.name, hint="write one word per line")
        return cls(tuple(sorted(phrases)))

    def __post_init__(self) -> None:
        first = defaultdict[str, list[_Phrase]](list)
        for words, label in self.phrases:
            first[words[0]].append((words, label))
        object.__setattr__(self, "_first", dict(first))

    @property
    def digest(self) -> str:
        """SHA-256 of the phrases and labels in hex."""
        return hashlib.sha256(repr(self.phrases).encode()).hexdigest()

    @property
    def labels(self) -> frozenset[str]:
        """Labels of the phrases."""
        return frozenset(label for _, label in self.phrases)

    def matches(self, note: NoteView) -> Iterator[PhraseMatch]:
        """Yield the phrases in a note."""
        text = note.aligned.text
        tokens = [(match[0].casefold(), *match.span()) for match in _TOKEN.finditer(text)]
        for index, (word, start, _) in enumerate(tokens):
            for words, label in self._first.get(word, ()):
                inside = tokens[index : index + len(words)]
                if tuple(token for token, _, _ in inside) == words and _close(inside):
                    yield PhraseMatch(start, inside[-1][2], label, words)

    def spans(self, note: NoteView) -> Iterator[Span]:
        """Yield the phrases as spans."""
        for start, end, label, _ in self.matches(note):
            yield note.span(start, end, label, "find-words", 1.0, "word list of the policy")

    def kept(self, note: NoteView, patient_words: Iterable[str] = ()) -> list[tuple[int, int]]:
        """Return the ranges of the note that are never replaced, sorted.

        Left out are phrases with a word of `patient_words` (the patient's row in the list), phrases
        joined to other letters or digits (`Smith-May`, `may@x.org`), and digits that are part of a
        number.
        """
        row = frozenset(patient_words)
        text = note.aligned.text
        free = (
            match
            for match in self.matches(note)
            if not row.intersection(match.words) and _stands_alone(text, match)
        )
        return _merged(note.aligned.source_offsets(match.start, match.end) for match in free)


def _close(tokens: list[tuple[str, int, int]]) -> bool:
    return all(later[1] - before[2] <= _GAP for before, later in pairwise(tokens))


def _stands_alone(text: str, match: PhraseMatch) -> bool:
    number = all(word.isdigit() for word in match.words)
    part_of_number = number and (
        _digit_near(text, match.start - 2) or _digit_near(text, match.end + 1)
    )
    return not part_of_number and not _joined(text, match)


def _joined(text: str, match: PhraseMatch) -> bool:
    """Whether a letter or digit follows a hyphen, an apostrophe, an at sign or an underscore next
    to a phrase.
    """
    left = text[max(0, match.start - 2) : match.start]
    right = text[match.end : match.end + 2]
    return (len(left) == 2 and left[1] in _JOINED and left[0].isalnum()) or (
        len(right) == 2 and right[0] in _JOINED and right[1].isalnum() and right != "'s"
    )


def _digit_near(text: str, index: int) -> bool:
    return 0 <= index < len(text) and text[index].isdigit()


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged = list[tuple[int, int]]()
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def cut(text: str, spans: Iterable[Span], kept: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Yield the spans without the kept ranges; what remains of a span has a letter or a digit.

    Args:
        kept: sorted ranges that do not overlap.
    """
    for span in spans:
        start = span.start
        index = bisect_right(kept, start, key=lambda kept_range: kept_range[1])
        while index < len(kept) and kept[index][0] < span.end:
            first, last = kept[index]
            index += 1
            yield from _part(text, span, start, first)
            start = last
        yield from _part(text, span, start, span.end)


def _part(text: str, span: Span, start: int, end: int) -> Iterator[Span]:
    inside = [index for index in range(start, end) if text[index].isalnum()] if start < end else []
    if inside and (start, end) == (span.start, span.end):
        yield span
    elif inside:
        yield span.with_range(inside[0], inside[-1] + 1)
