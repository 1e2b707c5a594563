"""`Mark`, a span as a file has it; and how it becomes a `Span` of a note: offsets, labels, checks."""

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
_SEEN = 60  # of a text that a file repeats, so many characters are compared: some tools cut it


@dataclass(frozen=True, slots=True)
class Mark:
    """A span as a file has it.

    Attributes:
        start, end: in the unit of the file's tool. where: file and line or tag, for messages.
        said: the text that the file says stands there, or None. Its repr shows neither label nor text.
    """

    start: int
    end: int
    label: str = field(repr=False)
    where: str
    said: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scheme:
    """How marks become spans.

    Attributes:
        offsets: what the tool that made them counts: code points, bytes of UTF-8, or units of UTF-16 (Java, browsers).
        labels: more label names of the tool -> ours, or "" for what is no identifier.
    """

    offsets: Offsets = "codepoints"
    labels: Mapping[str, str] = field(default_factory=dict)

    def spans(self, text: str, marks: Iterable[Mark]) -> list[Span]:
        """The spans of a note: sorted, of known labels, within the text, without overlaps.

        Raises:
            InputError: a mark outside the text or within a character, upside down, over another, of an unknown label,
                or whose own text is not what stands there.
        """
        places, made = offset_map(text, self.offsets), list[tuple[Span, Mark]]()
        for mark in marks:
            start, end = _inside(mark, places)
            self._compare(mark, text[start:end])
            if label := self._label(mark, text[start:end]):
                made.append((Span(start, end, label), mark))
        made.sort(key=lambda pair: pair[0])
        for (one, _), (other, mark) in pairwise(made):
            if one.overlaps(other):
                raise InputError("two spans overlap", where=mark.where, hint="keep the longer one")
        return [span for span, _ in made]

    def _label(self, mark: Mark, text: str) -> str:
        """Our label, "" for what is no identifier."""
        found = self.labels.get(form(mark.label))
        if found is None:
            found = mark.label if mark.label in LABELS else known_labels().get(form(mark.label))
        if found is None:
            hint = 'map it by --labels, a TOML file of THEIRS = "OURS", or "" for what is no identifier'
            raise InputError(f"unknown label {mark.label[:40]!r}", where=mark.where, hint=hint)
        if found == OVER_89:
            years = [int(number) for number in _AGE.findall(text)]
            return "" if years and max(years) <= 89 else "AGE"
        return found

    def _compare(self, mark: Mark, text: str) -> None:
        if mark.said is None:
            return
        said, there = (" ".join(one.split())[:_SEEN] for one in (mark.said, text))
        if said != there:
            other = "bytes or utf16" if self.offsets == "codepoints" else "codepoints"
            what = "its text does not stand at its place in the note"
            raise InputError(what, where=mark.where, hint=f"the notes changed, or --offsets {other}")


def _inside(mark: Mark, places: Sequence[int]) -> tuple[int, int]:
    """Start and end in code points. Raises InputError."""
    last = places[len(places) - 1]
    if not 0 <= mark.start < mark.end:
        raise InputError("a span needs 0 <= start < end", where=mark.where)
    if mark.end > last:
        raise InputError(f"a span ends at {mark.end}, the note at {last}", where=mark.where, hint="check --offsets")
    found = [bisect_left(places, place) for place in (mark.start, mark.end)]
    if [places[i] for i in found] != [mark.start, mark.end]:
        raise InputError("a span begins or ends within a character", where=mark.where, hint="check --offsets")
    return found[0], found[1]


def offset_map(text: str, offsets: Offsets) -> Sequence[int]:
    """The offset before each code point of a text, and at its end, in a unit: (len(text) + 1,)."""
    if offsets == "codepoints" or text.isascii():
        return range(len(text) + 1)
    if offsets == "bytes":
        return list(accumulate((len(c.encode("utf-8", "surrogatepass")) for c in text), initial=0))
    return list(accumulate((1 + (c > "\uffff") for c in text), initial=0))


def form(label: str) -> str:
    """A label without case and with spaces: `Phone_Fax` -> `PHONE FAX`."""
    return " ".join(re.split(r"[\s_-]+", label.upper().strip()))


@cache
def _tables() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads(files(__package__).joinpath("labels.toml").read_text(encoding="utf-8"))


@cache
def known_labels() -> Mapping[str, str]:
    """What other schemes call our labels, by `form`."""
    return {form(name): str(ours) for name, ours in _tables()["labels"].items()}


@cache
def i2b2_tags() -> Mapping[str, tuple[str, str]]:
    """Our labels -> tag and TYPE of i2b2/n2c2 files."""
    return {ours: (pair[0], pair[1]) for ours, pair in _tables()["i2b2"].items()}  # type: ignore[index]


def read_labels(path: Path) -> Mapping[str, str]:
    """A TOML file of THEIRS = "OURS" or "", by `form`. Raises InputError for no TOML, UsageError for other labels."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("not a TOML file", where=path.name, hint='write THEIRS = "NAME"') from None
    for ours in table.values():
        if not isinstance(ours, str) or (ours and ours not in LABELS and ours != OVER_89):
            hint = "one of " + ", ".join(LABELS) + ', or "" for none'
            raise UsageError("maps to a label that is not ours", where=path.name, hint=hint)
    return {form(name): ours for name, ours in table.items()}
