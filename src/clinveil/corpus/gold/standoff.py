"""Gold spans as JSON lines, or as BRAT standoff.

JSON lines are `{"note_id": …, "start": …, "end": …, "label": …}`; other keys are ignored. A line with only a note_id
records a note that was annotated and has no spans.

BRAT has lines `T1<tab>NAME 5 9<tab>text` in a .ann file next to each note's .txt file. A discontinuous span
(`NAME 5 9;14 20`) becomes one span per fragment. Lines that mark no text (relations, events, attributes, notes) are
skipped. Source: https://brat.nlplab.org/standoff.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.corpus.gold.marks import Mark
from clinveil.corpus.note_files import note_files
from clinveil.corpus.streams import byte_lines, decoded

_SHAPE = 'write one {"note_id": …, "start": …, "end": …, "label": …} per line'
_LINE = re.compile(r"T\d+\t(?P<label>\S+) (?P<offsets>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<text>.*))?")
_OTHERS = frozenset("REAMN*#")  # first characters of lines that mark no text
_STANDOFF = "write T1<tab>LABEL START END<tab>text"


def read_lines(path: Path) -> Iterator[tuple[str, Mark | None]]:
    """Yield (note id, mark) for each line; gzip and zstd by name. Raises InputError with the line number."""
    for number, line in enumerate(byte_lines(path), start=1):
        if line.strip():
            yield _mark(line, f"{path.name}, line {number}")


def _mark(line: bytes, where: str) -> tuple[str, Mark | None]:
    try:
        record: Any = json.loads(line)
        note_id = record["note_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("not a JSON object with a note_id", where=where, hint=_SHAPE) from None
    note_id = str(note_id) if isinstance(note_id, int) and not isinstance(note_id, bool) else note_id
    if isinstance(note_id, str) and not {"start", "end", "label"} & record.keys():
        return note_id, None
    start, end, label, text = (record.get(key) for key in ("start", "end", "label", "text"))
    numbers = all(isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end))
    if not (numbers and isinstance(label, str) and isinstance(note_id, str)):
        raise InputError("a span needs a note_id, two whole numbers and a label", where=where, hint=_SHAPE)
    return note_id, Mark(start, end, label, where, text if isinstance(text, str) else None)


def read_brat(folder: Path) -> Iterator[tuple[str, Mark | None]]:
    """Yield (note id, None) for each .ann file and (note id, mark) for each of its spans. Raises InputError."""
    for file, note_id in note_files(folder, ".ann"):
        yield note_id, None
        for number, line in enumerate(byte_lines(file), start=1):
            text = decoded(line, file.name).rstrip("\r")
            yield from ((note_id, mark) for mark in _fragments(text, f"{file.name}, line {number}"))


def _fragments(line: str, where: str) -> Iterator[Mark]:
    if not line.strip() or line[0] in _OTHERS:
        return
    match = _LINE.fullmatch(line)
    if match is None:
        raise InputError("not a line of BRAT standoff", where=where, hint=_STANDOFF)
    fragments = [tuple(map(int, part.split())) for part in match["offsets"].split(";")]
    text = match["text"] if len(fragments) == 1 else None
    for start, end in fragments:
        yield Mark(start, end, match["label"], where, text)
