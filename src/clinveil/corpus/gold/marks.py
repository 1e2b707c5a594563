"""`Mark`, a span as stored in a file, and its conversion to a `Span`: offsets, labels, checks."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from clinveil.core.errors import InputError, UsageError
from clinveil.core.spans import LABELS, Span

Offsets = Literal["codepoints", "bytes", "utf16"]
OVER_89 = "AGE>89"
_AGE = re.compile(r"\d+")
_COMPARED = 60  # compare this many characters of a repeated text, because some tools truncate it


@dataclass(frozen=True, slots=True)
class Mark:
    """A span as stored in a file.

    Attributes:
        start, end: in the unit of the annotation tool. where: file and line or tag, for messages.
        text: the annotated text as repeated in the file, or None. The repr shows neither label nor text.
    """

    start: int
    end: int
    label: str = field(repr=False)
    where: str
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scheme:
    """The conversion of marks to spans.

    Attributes:
        offsets: the unit of the annotation tool: code points, UTF-8 bytes, or UTF-16 units (Java, browsers).
        labels: additional label names of the tool -> ours, or "" for labels that are not identifiers.
    """

    offsets: Offsets = "codepoints"
    labels: Mapping[str, str] = field(default_factory=dict)

    def spans(self, text: str, marks: Iterable[Mark]) -> list[Span]:
        """Return the spans of a note: sorted, with known labels, within the text, without overlaps.

        Raises:
            InputError: a mark outside the text or within a character, an empty, negative or overlapping one, an unknown
                label, or a repeated text that differs from the note.
        """
        positions, pairs = offset_map(text, self.offsets), list[tuple[Span, Mark]]()
        for mark in marks:
            start, end = _inside(mark, positions)
            self._compare(mark, text[start:end])
            if label := self._label(mark, text[start:end]):
                pairs.append((Span(start, end, label), mark))
        pairs.sort(key=lambda pair: pair[0])
        for (span, _), (following, mark) in pairwise(pairs):
            if span.overlaps(following):
                raise InputError("two spans overlap", where=mark.where, hint="keep the longer one")
        return [span for span, _ in pairs]

    def _label(self, mark: Mark, text: str) -> str:
        """Return our label, or "" if it is not an identifier."""
        label = self.labels.get(form(mark.label))
        if label is None:
            label = mark.label if mark.label in LABELS else known_labels().get(form(mark.label))
        if label is None:
            hint = 'map it with --labels, a TOML file of THEIRS = "OURS"; use "" for labels that are not identifiers'
            raise InputError(f"unknown label {mark.label[:40]!r}", where=mark.where, hint=hint)
        if label == OVER_89:
            years = [int(number) for number in _AGE.findall(text)]
            return "" if years and max(years) <= 89 else "AGE"
        return label

    def _compare(self, mark: Mark, text: str) -> None:
        if mark.text is None:
            return
        repeated, actual = (" ".join(value.split())[:_COMPARED] for value in (mark.text, text))
        if repeated != actual:
            other = "bytes or utf16" if self.offsets == "codepoints" else "codepoints"
            what = "the span's text differs from the note"
            raise InputError(what, where=mark.where, hint=f"use the annotated notes, or try --offsets {other}")


def _inside(mark: Mark, positions: Sequence[int]) -> tuple[int, int]:
    """Return start and end in code points. Raises InputError."""
    last = positions[len(positions) - 1]
    if not 0 <= mark.start < mark.end:
        raise InputError("a span needs 0 <= start < end", where=mark.where, hint="correct its offsets")
    if mark.end > last:
        what = f"the span ends at {mark.end}, but the note ends at {last}"
        raise InputError(what, where=mark.where, hint="check --offsets")
    start, end = (bisect_left(positions, offset) for offset in (mark.start, mark.end))
    if [positions[start], positions[end]] != [mark.start, mark.end]:
        raise InputError("the span begins or ends within a character", where=mark.where, hint="check --offsets")
    return start, end


def offset_map(text: str, offsets: Offsets) -> Sequence[int]:
    """Return the offset before each code point of a text, and at its end, in the given unit: (len(text) + 1,)."""
    if offsets == "codepoints" or text.isascii():
        return range(len(text) + 1)
    if offsets == "bytes":
        return list(accumulate((len(c.encode("utf-8", "surrogatepass")) for c in text), initial=0))
    return list(accumulate((1 + (c > "\uffff") for c in text), initial=0))


def form(label: str) -> str:
    """Return a label in upper case with spaces: `Phone_Fax` -> `PHONE FAX`."""
    return " ".join(re.split(r"[\s_-]+", label.upper().strip()))


@cache
def known_labels() -> Mapping[str, str]:
    """Return our labels by the names of other schemes, normalised with `form`."""
    table = tomllib.loads(files(__package__).joinpath("labels.toml").read_text(encoding="utf-8"))
    return {form(name): str(ours) for name, ours in table["labels"].items()}


def read_labels(path: Path) -> Mapping[str, str]:
    """Read a TOML file of THEIRS = "OURS" or "". Raises InputError for invalid TOML, UsageError for unknown labels."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("not a TOML file", where=path.name, hint='write lines such as THEIRS = "NAME"') from None
    for ours in table.values():
        if not isinstance(ours, str) or (ours and ours not in LABELS and ours != OVER_89):
            hint = "use one of " + ", ".join(LABELS) + ', or "" for none'
            raise UsageError("maps to an unknown label", where=path.name, hint=hint)
    return {form(name): ours for name, ours in table.items()}
