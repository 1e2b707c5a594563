"""Gold spans in and out: `read_spans` and `write_spans`, for JSON lines, BRAT standoff and i2b2/n2c2 XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.spans import Span
from clinveil.corpus.gold.brat import read_brat, write_brat
from clinveil.corpus.gold.i2b2 import read_i2b2, write_i2b2
from clinveil.corpus.gold.lines import read_lines, write_lines
from clinveil.corpus.gold.marks import Mark, Offsets, Scheme, read_labels

__all__ = ["GoldSpans", "Mark", "Offsets", "Scheme", "read_labels", "read_spans", "spans_of", "write_spans"]
_KINDS = "a .jsonl file, a folder of BRAT .ann, or a folder of i2b2/n2c2 .xml"
NotesWithSpans = Iterable[tuple[str, str, Sequence[Span]]]


@dataclass(frozen=True)
class GoldSpans:
    """The marks of an annotation, by note; memory grows with their number.

    Attributes:
        name: of the file or folder, for messages. marks: by note id; notes that were looked at may have none.
    """

    name: str
    marks: Mapping[str, Sequence[Mark]] = field(repr=False)
    scheme: Scheme = field(default_factory=Scheme)

    def of(self, note_id: str, text: str) -> list[Span]:
        """The spans of a note, sorted. Raises InputError for marks that do not fit it."""
        return self.scheme.spans(text, self.marks.get(note_id, ()))

    def refuse_unknown(self, note_ids: Iterable[str]) -> None:
        """Raise InputError where spans are of notes that are not there."""
        lost = [note_id for note_id in self.marks.keys() - set(note_ids) if self.marks[note_id]]
        if lost:
            what = f"spans of {len(lost):,} notes that are not among the notes"
            raise InputError(what, where=self.name, hint="the ids of both must be the same (--id)")


def read_spans(path: str | Path, scheme: Scheme | None = None) -> GoldSpans:
    """The spans of a file or folder; of what form it is, its name and its content tell.

    Raises InputError for what is not there, is of no known form, or is damaged: with the file and the line.
    """
    path = Path(path)
    marks: dict[str, list[Mark]] = {}
    for note_id, mark in _reader(path):
        marks.setdefault(note_id, []).extend([] if mark is None else [mark])
    return GoldSpans(path.name, marks, scheme or Scheme())


def spans_of(spans: Mapping[str, Sequence[tuple[int, int, str]]], name: str = "the spans") -> GoldSpans:
    """The spans of a mapping from note ids to (start, end, label). Raises InputError for other shapes."""
    try:
        marks = {
            str(note_id): [Mark(int(start), int(end), str(label), name) for start, end, label in of]
            for note_id, of in spans.items()
        }
    except (TypeError, ValueError, AttributeError):
        raise InputError("not note id -> (start, end, label)", where=name) from None
    return GoldSpans(name, marks)


def _reader(path: Path) -> Iterator[tuple[str, Mark | None]]:
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    if path.is_dir():
        if any(path.rglob("*.ann")):
            return read_brat(path)
        if any(path.rglob("*.xml")):
            return read_i2b2(path)
    elif path.name.lower().endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
        return read_lines(path)
    elif path.name.lower().endswith(".xml"):
        return read_i2b2(path)
    raise InputError("no spans of a known form", where=path.name, hint=_KINDS)


def write_spans(path: Path, notes: NotesWithSpans, kind: str, offsets: Offsets = "codepoints") -> None:
    """Write the spans of notes: `jsonl` (a file, no text), `brat` or `i2b2` (a folder, notes and all).

    Raises InputError for what the form cannot carry.
    """
    writers = {"jsonl": write_lines, "brat": write_brat, "i2b2": write_i2b2}
    writers[kind](path, notes, offsets)
