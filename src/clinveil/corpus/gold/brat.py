"""Gold spans as BRAT standoff files: `T1<tab>NAME 5 9<tab>text` in a .ann file beside the .txt of each note.

A discontinuous span (`NAME 5 9;14 20`) becomes one span a fragment. Lines that mark no text (relations, events,
attributes, notes) are passed over. Source: https://brat.nlplab.org/standoff.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.spans import Span
from clinveil.corpus.gold.marks import Mark, Offsets, offset_map
from clinveil.corpus.gold.places import files_of, note_file
from clinveil.corpus.streams import wrong_encoding

_LINE = re.compile(r"T\d+\t(?P<label>\S+) (?P<places>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<said>.*))?")
_OTHERS = frozenset("RE AM N * #".replace(" ", ""))  # how lines that mark no text begin
_SHAPE = "T1<tab>LABEL START END<tab>text"


def read_brat(folder: Path) -> Iterator[tuple[str, Mark | None]]:
    """(note id, mark) for each span of all .ann files, and (note id, None) for each file. Raises InputError."""
    for file, note_id in files_of(folder, ".ann"):
        yield note_id, None
        try:
            lines = file.read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError:
            raise wrong_encoding(file.name, "utf-8") from None
        for number, line in enumerate(lines, start=1):
            yield from ((note_id, mark) for mark in _marks(line.rstrip("\r"), f"{file.name}, line {number}"))


def _marks(line: str, where: str) -> Iterator[Mark]:
    if not line.strip() or line[0] in _OTHERS:
        return
    match = _LINE.fullmatch(line)
    if match is None:
        raise InputError("no line of BRAT standoff", where=where, hint=_SHAPE)
    fragments = [tuple(map(int, part.split())) for part in match["places"].split(";")]
    said = match["said"] if len(fragments) == 1 else None
    for start, end in fragments:
        yield Mark(start, end, match["label"], where, said)


def write_brat(folder: Path, notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> None:
    """Write a .txt and a .ann for each (note id, text, spans); a line break within a span is written as a blank."""
    for note_id, text, spans in notes:
        note_file(folder, note_id, ".txt").write_bytes(("\ufeff" * text.startswith("\ufeff") + text).encode())
        places = offset_map(text, offsets)
        lines = (_line(f"T{number}", span, text, places) for number, span in enumerate(spans, start=1))
        note_file(folder, note_id, ".ann").write_bytes("".join(lines).encode())


def _line(name: str, span: Span, text: str, places: Sequence[int]) -> str:
    said = " ".join(text[span.start : span.end].split())
    return f"{name}\t{span.label} {places[span.start]} {places[span.end]}\t{said}\n"
