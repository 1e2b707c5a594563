"""Counts of a MedText corpus and of general text for comparison (paper C, Table 1)."""

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

_LONGEST = 1_000_000  # characters; longer lines are split


@dataclass(frozen=True)
class PartCounts:
    """Counts of one part: notes, patients, lines, and words without line ends."""

    notes: int
    patients: int
    lines: int
    words: int


@dataclass(frozen=True)
class CorpusCounts:
    """One column of Table 1.

    Attributes:
        parts: by name; general text has one, `train`.
        vocabulary: frequent words, `<unk>` if there are rare ones, and `<eos>`.
        oov: share of running words that are rare.
    """

    name: str
    parts: dict[str, PartCounts]
    vocabulary: int
    oov: float

    @property
    def words(self) -> int:
        """Words of all parts."""
        return sum(part.words for part in self.parts.values())

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, JSON-serialisable."""
        return asdict(self)


def vocabulary_size(words: Dictionary) -> int:
    """Return the vocabulary size as in paper C's code: frequent words, `<unk>` if there are rare ones, `<eos>`."""
    return len(words.words) + (len(words.words) < len(words.counts)) + 1


def general_counts(
    path: Path, words: int, *, min_count: int, encoding: str = "utf-8", split: Splitter = sentences
) -> CorpusCounts:
    """Count general text, one sentence per line, up to the size of the notes.

    Vocabulary and OOV depend on the size of a corpus, so only texts of equal size are comparable.

    Args:
        path: `.txt` or `.txt.gz`. words: stop at this many words.

    Raises:
        InputError: unreadable, or without words.
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
        hint = "use a text file with one sentence per line for --general"
        raise InputError("contains no words", where=path.name, hint=hint)
    words_of_text = dictionary(texts, [""] * len(texts), min_count=min_count)
    part = PartCounts(notes=0, patients=0, lines=len(texts), words=seen)
    return CorpusCounts("general text", {"train": part}, vocabulary_size(words_of_text), words_of_text.unknown_share)


def _lines(path: Path, encoding: str) -> Iterator[str]:
    try:
        opened = gzip.open if path.name.endswith(".gz") else open
        with opened(path, "rt", encoding=encoding) as file:
            while line := file.readline(_LONGEST):
                yield line
    except LookupError:
        raise InputError("unknown --encoding", where=path.name, hint="use for example cp1252") from None
    except (OSError, EOFError, zlib.error, UnicodeError):
        hint = f"use a text file in {encoding}, .txt or .txt.gz, for --general"
        raise InputError("cannot be read", where=path.name, hint=hint) from None


def table_rows(columns: Sequence[CorpusCounts]) -> list[tuple[str, ...]]:
    """Return the rows of Table 1, starting with the column names; "" for counts that a corpus does not have."""
    rows = [("", *(column.name for column in columns))]
    for what in ("notes", "patients", "lines", "words"):
        for part in PARTS:
            cells = [getattr(column.parts[part], what) if part in column.parts else 0 for column in columns]
            rows.append((f"{what}, {part}", *(f"{cell:,}" if cell else "" for cell in cells)))
    rows.append(("vocabulary", *(f"{column.vocabulary:,}" for column in columns)))
    return [*rows, ("OOV", *(f"{column.oov:.1%}" for column in columns))]
