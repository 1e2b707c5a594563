"""Gold spans as BRAT standoff: `T1<tab>NAME 5 9<tab>text` in a .ann file next to each note's .txt file.

A discontinuous span (`NAME 5 9;14 20`) becomes one span per fragment. Lines that mark no text (relations, events,
attributes, notes) are skipped. Source: https://brat.nlplab.org/standoff.html.
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

_LINE = re.compile(r"T\d+\t(?P<label>\S+) (?P<offsets>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<text>.*))?")
_OTHERS = frozenset("RE AM N * #".replace(" ", ""))  # first characters of lines that mark no text
_SHAPE = "write T1<tab>LABEL START END<tab>text"


def read_brat(folder: Path) -> Iterator[tuple[str, Mark | None]]:
    """Yield (note id, None) for each .ann file and (note id, mark) for each of its spans. Raises InputError."""
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
        raise InputError("not a line of BRAT standoff", where=where, hint=_SHAPE)
    fragments = [tuple(map(int, part.split())) for part in match["offsets"].split(";")]
    text = match["text"] if len(fragments) == 1 else None
    for start, end in fragments:
        yield Mark(start, end, match["label"], where, text)


def write_brat(folder: Path, notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> None:
    """Write a .txt and a .ann file for each (note id, text, spans); line breaks within a span become blanks."""
    for note_id, text, spans in notes:
        note_file(folder, note_id, ".txt").write_bytes(("\ufeff" * text.startswith("\ufeff") + text).encode())
        positions = offset_map(text, offsets)
        lines = (_line(f"T{number}", span, text, positions) for number, span in enumerate(spans, start=1))
        note_file(folder, note_id, ".ann").write_bytes("".join(lines).encode())


def _line(name: str, span: Span, text: str, positions: Sequence[int]) -> str:
    quoted = " ".join(text[span.start : span.end].split())
    return f"{name}\t{span.label} {positions[span.start]} {positions[span.end]}\t{quoted}\n"
