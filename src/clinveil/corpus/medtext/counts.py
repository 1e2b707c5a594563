"""The counts of a MedText corpus, and of general text beside it (paper C, Table 1)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.corpus.medtext.form import Splitter, sentences
from clinveil.corpus.medtext.parts import PARTS, Dictionary, dictionary

_LONGEST = 1_000_000  # characters; a longer line is no sentence


@dataclass(frozen=True)
class PartCounts:
    """Of one part: notes, patients, lines, and words without the ends of lines."""

    notes: int
    patients: int
    lines: int
    words: int


@dataclass(frozen=True)
class CorpusCounts:
    """One column of Table 1.

    Attributes:
        parts: by name; general text has one, `train`.
        vocabulary: words that are kept, `<unk>` where a word is rare, and `<eos>`.
        oov: share of running words that are rare.
    """

    name: str
    parts: dict[str, PartCounts]
    vocabulary: int
    oov: float

    @property
    def words(self) -> int:
        """Of all parts."""
        return sum(part.words for part in self.parts.values())

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def vocabulary_size(words: Dictionary) -> int:
    """Kept words, `<unk>` if there is a rare one, `<eos>`: what the dictionary of paper C's code counts."""
    return len(words.words) + (len(words.words) < len(words.counts)) + 1


def general_counts(
    path: Path, words: int, *, min_count: int, encoding: str = "utf-8", split: Splitter = sentences
) -> CorpusCounts:
    """The counts of general text, a sentence a line, cut where it has as many words as the notes.

    Both vocabulary and OOV depend on the size of a corpus, so only text of one size compares.

    Args:
        path: `.txt` or `.txt.gz`. words: how many at least, if it has so many.

    Raises:
        InputError: it cannot be read, or holds no word.
    """
    texts, seen = [], 0
    for line in _lines(path, encoding):
        row = [token for sentence in split(line) for token in sentence]
        if row:
            texts.append(" ".join(row))
            seen += len(row)
        if seen >= words:
            break
    if not texts:
        raise InputError("no line holds a word", where=path.name, hint="--general takes a sentence a line")
    found = dictionary(texts, [""] * len(texts), min_count=min_count)
    part = PartCounts(notes=0, patients=0, lines=len(texts), words=seen)
    return CorpusCounts("general text", {"train": part}, vocabulary_size(found), found.unknown_share)


def _lines(path: Path, encoding: str) -> Iterator[str]:
    try:
        opened = gzip.open if path.name.endswith(".gz") else open
        with opened(path, "rt", encoding=encoding) as file:
            while line := file.readline(_LONGEST):
                yield line
    except LookupError:
        raise InputError("no such --encoding", where=path.name, hint="for example cp1252") from None
    except (OSError, EOFError, zlib.error, UnicodeError):
        hint = f"--general takes a text file in {encoding}, .txt or .txt.gz"
        raise InputError("cannot be read", where=path.name, hint=hint) from None


def table_rows(columns: Sequence[CorpusCounts]) -> list[tuple[str, ...]]:
    """The rows of Table 1, the names of the columns first; "" where a corpus has no such count."""
    rows = [("", *(column.name for column in columns))]
    for what in ("notes", "patients", "lines", "words"):
        for part in PARTS:
            cells = [getattr(column.parts[part], what) if part in column.parts else 0 for column in columns]
            rows.append((f"{what}, {part}", *(f"{cell:,}" if cell else "" for cell in cells)))
    rows.append(("vocabulary", *(f"{column.vocabulary:,}" for column in columns)))
    return [*rows, ("OOV", *(f"{column.oov:.1%}" for column in columns))]
