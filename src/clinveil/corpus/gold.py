"""Read gold spans from JSON lines, BRAT standoff or i2b2/n2c2 XML, and convert them to our spans.

JSON lines are `{"note_id": …, "start": …, "end": …, "label": …}`; other keys are ignored. A line
with only a note_id records a note that was annotated and has no spans.

BRAT has lines `T1<tab>NAME 5 9<tab>text` in a .ann file next to each note's .txt file. A
discontinuous span (`NAME 5 9;14 20`) becomes one span per fragment. Lines that mark no text
(relations, events, attributes, notes) are skipped. Source: https://brat.nlplab.org/standoff.html.

i2b2 XML has `<TEXT>` and `<TAGS>`, one file per note; see `formats.folders`.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

from clinveil.core import LABELS, InputError, Span, UsageError
from clinveil.corpus.formats.folders import note_files, read_xml
from clinveil.corpus.streams import byte_lines, decoded

Offsets = Literal["codepoints", "bytes", "utf16"]
OVER_89 = "AGE>89"
_AGE = re.compile(r"\d+")
_COMPARED = 60  # compare this many characters of a repeated text, because some tools truncate it
_FORMATS = "use a .jsonl file, a folder of BRAT .ann files, or a folder of i2b2/n2c2 .xml files"
_SHAPE = 'write one {"note_id": …, "start": …, "end": …, "label": …} per line'
_LINE = re.compile(r"T\d+\t(?P<label>\S+) (?P<offsets>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<text>.*))?")
_OTHERS = frozenset("REAMN*#")  # first characters of lines that mark no text


@dataclass(frozen=True, slots=True)
class FileMark:
    """A span as stored in a file.

    Attributes:
        start, end: in the unit of the annotation tool. where: file and line or tag, for messages.
        text: the annotated text as repeated in the file, or None. The repr shows neither label nor
            text.
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
        offsets: the unit of the annotation tool: code points, UTF-8 bytes, or UTF-16 units (Java,
            browsers).
        labels: additional label names of the tool -> ours, or "" for labels that are not
            identifiers.
    """

    offsets: Offsets = "codepoints"
    labels: Mapping[str, str] = field(default_factory=dict)

    def spans(self, text: str, marks: Iterable[FileMark]) -> list[Span]:
        """Return the spans of a note: sorted, with known labels, within the text, without overlaps.

        Raises:
            InputError: a mark outside the text or within a character, an empty, negative or
                overlapping one, an unknown label, or a repeated text that differs from the note.
        """
        positions = offset_map(text, self.offsets)
        pairs = list[tuple[Span, FileMark]]()
        for mark in marks:
            start, end = _inside(mark, positions)
            repeated, actual = (
                " ".join(value.split())[:_COMPARED] for value in (mark.text or "", text[start:end])
            )
            if mark.text is not None and repeated != actual:
                other = "bytes or utf16" if self.offsets == "codepoints" else "codepoints"
                hint = f"use the annotated notes, or try offsets={other}"
                raise InputError(
                    "the span's text differs from the note", where=mark.where, hint=hint
                )
            if label := self._label(mark, text[start:end]):
                pairs.append((Span(start, end, label), mark))
        pairs.sort(key=lambda pair: pair[0])
        for (span, _), (following, mark) in pairwise(pairs):
            if span.overlaps(following):
                raise InputError("two spans overlap", where=mark.where, hint="keep the longer one")
        return [span for span, _ in pairs]

    def _label(self, mark: FileMark, text: str) -> str:
        """Return our label, or "" if it is not an identifier."""
        label = self.labels.get(form(mark.label))
        if label is None:
            label = mark.label if mark.label in LABELS else known_labels().get(form(mark.label))
        if label is None:
            hint = (
                'map it with --labels, a TOML file of THEIRS = "OURS"; use "" for labels that are'
                " not identifiers"
            )
            raise InputError(f"unknown label {mark.label[:40]!r}", where=mark.where, hint=hint)
        if label == OVER_89:
            years = [int(number) for number in _AGE.findall(text)]
            return "" if years and max(years) <= 89 else "AGE"
        return label


def _inside(mark: FileMark, positions: Sequence[int]) -> tuple[int, int]:
    """Return start and end in code points. Raises InputError."""
    last = positions[len(positions) - 1]
    if not 0 <= mark.start < mark.end:
        raise InputError(
            "a span needs 0 <= start < end", where=mark.where, hint="correct its offsets"
        )
    if mark.end > last:
        problem = f"the span ends at {mark.end}, but the note ends at {last}"
        raise InputError(problem, where=mark.where, hint="check the setting offsets")
    start, end = (bisect_left(positions, offset) for offset in (mark.start, mark.end))
    if [positions[start], positions[end]] != [mark.start, mark.end]:
        raise InputError(
            "the span begins or ends within a character",
            where=mark.where,
            hint="check the setting offsets",
        )
    return start, end


def offset_map(text: str, offsets: Offsets) -> Sequence[int]:
    """Return the offset before each code point of a text, and at its end, in the given unit:
    (len(text) + 1,).
    """
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
    table = tomllib.loads(
        files("clinveil.corpus").joinpath("gold_labels.toml").read_text(encoding="utf-8")
    )
    return {form(name): str(ours) for name, ours in table["labels"].items()}


def read_labels(path: Path) -> Mapping[str, str]:
    """Read a TOML file of THEIRS = "OURS" or "". Raises InputError for invalid TOML, UsageError for
    unknown labels.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(
            "not a TOML file", where=path.name, hint='write lines such as THEIRS = "NAME"'
        ) from None
    for ours in table.values():
        if not isinstance(ours, str) or (ours and ours not in LABELS and ours != OVER_89):
            hint = "use one of " + ", ".join(LABELS) + ', or "" for none'
            raise UsageError("maps to an unknown label", where=path.name, hint=hint)
    return {form(name): ours for name, ours in table.items()}


@dataclass(frozen=True)
class GoldSpans:
    """The annotated spans by note; memory grows with their number.

    Attributes:
        name: of the file or folder, for messages. marks: by note id; annotated notes may have none.
    """

    name: str
    marks: Mapping[str, Sequence[FileMark]] = field(repr=False)
    scheme: Scheme = field(default_factory=Scheme)

    def of(self, note_id: str, text: str) -> list[Span]:
        """Return the spans of a note, sorted. Raises InputError for marks that do not match its
        text.
        """
        return self.scheme.spans(text, self.marks.get(note_id, ()))

    def refuse_unknown(self, note_ids: Iterable[str]) -> None:
        """Raise InputError if spans refer to missing notes."""
        unknown = [note_id for note_id in self.marks.keys() - set(note_ids) if self.marks[note_id]]
        if unknown:
            problem = f"spans of {len(unknown):,} notes that are not among the notes"
            raise InputError(problem, where=self.name, hint="use the same note ids in both (--id)")


def read_spans(path: str | Path, scheme: Scheme | None = None) -> GoldSpans:
    """Read the spans of a file or folder; the format follows from its name and content.

    Raises InputError, with file and line, for a missing or damaged file or an unknown format.
    """
    path = Path(path)
    marks: dict[str, list[FileMark]] = {}
    for note_id, mark in _marks(path):
        marks.setdefault(note_id, []).extend([] if mark is None else [mark])
    return GoldSpans(path.name, marks, scheme or Scheme())


def spans_of(
    spans: Mapping[str, Sequence[tuple[int, int, str]]], name: str = "the spans"
) -> GoldSpans:
    """Return the spans of a mapping from note ids to (start, end, label). Raises InputError for
    other shapes.
    """
    try:
        marks = {
            str(note_id): [
                FileMark(int(start), int(end), str(label), name) for start, end, label in of
            ]
            for note_id, of in spans.items()
        }
    except (TypeError, ValueError, AttributeError):
        hint = "pass {note_id: [(start, end, label), …]}"
        raise InputError("spans have the wrong shape", where=name, hint=hint) from None
    return GoldSpans(name, marks)


def _marks(path: Path) -> Iterator[tuple[str, FileMark | None]]:
    """Yield (note id, mark) for each span, and (note id, None) for a note that was annotated."""
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    if path.is_dir():
        if any(path.rglob("*.ann")):
            return _brat(path)
        if any(path.rglob("*.xml")):
            return _xml(note_files(path, ".xml"))
    elif path.name.lower().endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
        lines = enumerate(byte_lines(path), start=1)
        return (
            _of_line(line, f"{path.name}, line {number}") for number, line in lines if line.strip()
        )
    elif path.name.lower().endswith(".xml"):
        return _xml([(path, path.name[: -len(".xml")])])
    raise InputError("unknown format of spans", where=path.name, hint=_FORMATS)


def _of_line(line: bytes, where: str) -> tuple[str, FileMark | None]:
    try:
        record: Any = json.loads(line)
        note_id = record["note_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("not a JSON object with a note_id", where=where, hint=_SHAPE) from None
    note_id = (
        str(note_id) if isinstance(note_id, int) and not isinstance(note_id, bool) else note_id
    )
    if isinstance(note_id, str) and not {"start", "end", "label"} & record.keys():
        return note_id, None
    start, end, label, text = (record.get(key) for key in ("start", "end", "label", "text"))
    numbers = all(
        isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end)
    )
    if not (numbers and isinstance(label, str) and isinstance(note_id, str)):
        raise InputError(
            "a span needs a note_id, two whole numbers and a label", where=where, hint=_SHAPE
        )
    return note_id, FileMark(start, end, label, where, text if isinstance(text, str) else None)


def _brat(folder: Path) -> Iterator[tuple[str, FileMark | None]]:
    for file, note_id in note_files(folder, ".ann"):
        yield note_id, None
        for number, data in enumerate(byte_lines(file), start=1):
            line = decoded(data, file.name).rstrip("\r")
            where = f"{file.name}, line {number}"
            if not line.strip() or line[0] in _OTHERS:
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                hint = "write T1<tab>LABEL START END<tab>text"
                raise InputError("not a line of BRAT standoff", where=where, hint=hint)
            fragments = [tuple(map(int, part.split())) for part in match["offsets"].split(";")]
            text = match["text"] if len(fragments) == 1 else None
            yield from (
                (note_id, FileMark(start, end, match["label"], where, text))
                for start, end in fragments
            )


def _xml(notes: Iterable[tuple[Path, str]]) -> Iterator[tuple[str, FileMark | None]]:
    for file, note_id in notes:
        yield note_id, None
        for tag in (tag for tags in read_xml(file)[1].iter("TAGS") for tag in tags):
            where = f"{file.name}, a {tag.tag[:20]} tag" if str(tag.tag).isalnum() else file.name
            try:
                start = int(tag.attrib["start"])
                end = int(tag.attrib["end"])
            except (KeyError, ValueError):
                hint = 'write for example <NAME start="5" end="9" TYPE="PATIENT"/>'
                raise InputError("a tag without start and end", where=where, hint=hint) from None
            label = tag.attrib.get("TYPE") or str(tag.tag)
            # i2b2 marks all ages.
            label = OVER_89 if label.upper() == "AGE" else label
            yield note_id, FileMark(start, end, label, where, tag.attrib.get("text"))
