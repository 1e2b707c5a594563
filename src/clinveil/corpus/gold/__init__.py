"""Read gold spans from JSON lines, BRAT standoff or i2b2/n2c2 XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.spans import Span
from clinveil.corpus.gold.i2b2 import read_i2b2
from clinveil.corpus.gold.marks import Mark, Offsets, Scheme, read_labels
from clinveil.corpus.gold.standoff import read_brat, read_lines

__all__ = ["GoldSpans", "Mark", "Offsets", "Scheme", "read_labels", "read_spans", "spans_of"]
_KINDS = "use a .jsonl file, a folder of BRAT .ann files, or a folder of i2b2/n2c2 .xml files"


@dataclass(frozen=True)
class GoldSpans:
    """The annotated spans by note; memory grows with their number.

    Attributes:
        name: of the file or folder, for messages. marks: by note id; annotated notes may have none.
    """

    name: str
    marks: Mapping[str, Sequence[Mark]] = field(repr=False)
    scheme: Scheme = field(default_factory=Scheme)

    def of(self, note_id: str, text: str) -> list[Span]:
        """Return the spans of a note, sorted. Raises InputError for marks that do not match its text."""
        return self.scheme.spans(text, self.marks.get(note_id, ()))

    def refuse_unknown(self, note_ids: Iterable[str]) -> None:
        """Raise InputError if spans refer to missing notes."""
        unknown = [note_id for note_id in self.marks.keys() - set(note_ids) if self.marks[note_id]]
        if unknown:
            what = f"spans of {len(unknown):,} notes that are not among the notes"
            raise InputError(what, where=self.name, hint="use the same note ids in both (--id)")


def read_spans(path: str | Path, scheme: Scheme | None = None) -> GoldSpans:
    """Read the spans of a file or folder; the format follows from its name and content.

    Raises InputError, with file and line, for a missing or damaged file or an unknown format.
    """
    path = Path(path)
    marks: dict[str, list[Mark]] = {}
    for note_id, mark in _reader(path):
        marks.setdefault(note_id, []).extend([] if mark is None else [mark])
    return GoldSpans(path.name, marks, scheme or Scheme())


def spans_of(spans: Mapping[str, Sequence[tuple[int, int, str]]], name: str = "the spans") -> GoldSpans:
    """Return the spans of a mapping from note ids to (start, end, label). Raises InputError for other shapes."""
    try:
        marks = {
            str(note_id): [Mark(int(start), int(end), str(label), name) for start, end, label in of]
            for note_id, of in spans.items()
        }
    except (TypeError, ValueError, AttributeError):
        hint = "pass {note_id: [(start, end, label), …]}"
        raise InputError("spans have the wrong shape", where=name, hint=hint) from None
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
    raise InputError("unknown format of spans", where=path.name, hint=_KINDS)
