"""Find notes that the detectors cannot read: not in English, in RTF, or with encoded blocks.

Notes in other languages are left out and counted. Many of them, or any note in another form, stop
the run. Messages name rows, not notes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import pyarrow as pa

from clinveil.core import InputError, visible_text
from clinveil.corpus.corpus import TEXT
from clinveil.lexicons import is_english

NOT_ENGLISH = "not in English"
RTF = "in RTF"
ENCODED = "with a base64 block"
MOST_LEFT_OUT = 0.01  # share of the notes
_MOST_KNOWN = 1 << 17  # texts, 64 bytes each
_NAMED = 5  # rows in a message
_RTF = re.compile(r"\A\s*+\{\\rtf|\{\\rtf[01]\\")
_SHORTEST_LINE = 60  # characters; base64 has lines of 64 or 76
_LINES = 3
_SHORTEST_BLOCK = 200
_RUN = re.compile(rf"[A-Za-z0-9+/]{{{_SHORTEST_LINE},}}+")
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9+/]"))


@dataclass
class Screened:
    """Rows of a pass by reason; those of several parts add up.

    Attributes:
        notes: notes read. counts: number of rows by reason. first: file and number of the first
            rows by reason.
    """

    notes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def add(self, reason: str, name: str, row: int) -> None:
        """Count a row of a file."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        row_names = self.first.setdefault(reason, [])
        if len(row_names) < _NAMED:
            row_names.append((name, row))

    def __iadd__(self, other: Screened) -> Screened:
        self.notes += other.notes
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            row_names = [*self.first.get(reason, ()), *other.first[reason]]
            self.first[reason] = row_names[:_NAMED]
        return self

    def refuse(self) -> None:
        """Raise InputError for notes in RTF or with encoded blocks, and for many notes in another
        language.
        """
        if self.counts.get(RTF):
            hint = (
                "convert them to plain text or HTML first, for example with pandoc or LibreOffice"
            )
            raise self._error(RTF, "notes in RTF, whose control words hide identifiers", hint)
        if self.counts.get(ENCODED):
            hint = "decode the block, or remove it from the text, for example if it is an image"
            raise self._error(
                ENCODED, "notes with a base64 block, which no detector can read", hint
            )
        if self.counts.get(NOT_ENGLISH, 0) > MOST_LEFT_OUT * self.notes:
            problem = "notes not in English, the only language of the detectors"
            hint = "omit them, or let identifiers remain with --set identifiers.language=any"
            raise self._error(NOT_ENGLISH, problem, hint)

    def _error(self, reason: str, problem: str, hint: str) -> InputError:
        count = self.counts[reason]
        rows: dict[str, list[str]] = {}
        for name, row in self.first[reason]:
            rows.setdefault(name, []).append(str(row))
        row_names = [
            f"{name}, row{'s' * (len(rows[name]) > 1)} {', '.join(rows[name])}" for name in rows
        ]
        ellipsis = ", …" if count > len(self.first[reason]) else ""
        return InputError(
            f"{count:,} of {self.notes:,} {problem}",
            where="; ".join(row_names) + ellipsis,
            hint=hint,
        )


def screened(
    batch: pa.RecordBatch, rows: Sequence[int], name: str, language: str, seen: Screened
) -> tuple[pa.RecordBatch, int]:
    """Return the notes of a batch that can be treated, and the number of those that are left out.

    Args:
        rows: number of each row in its file. name: of the file.
        language: `english`, or `any` to keep notes in all languages.
        seen: counts the rows; it may refuse them after the pass.
    """
    kept = [True] * batch.num_rows
    seen.notes += batch.num_rows
    for index, text in enumerate(batch.column(TEXT).to_pylist()):
        reason = _known_reason(text, language) if text else ""
        if reason:
            seen.add(reason, name, rows[index])
            kept[index] = reason != NOT_ENGLISH
    left_out = kept.count(False)
    return (batch.filter(pa.array(kept)) if left_out else batch), left_out


_reasons: dict[bytes, str] = {}


def _known_reason(text: str, language: str) -> str:
    """Return the reason of a text; that of a text that was read before is looked up by its hash.

    A release reads its notes many times.
    """
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=language.encode()).digest()
    if digest not in _reasons:
        if len(_reasons) >= _MOST_KNOWN:
            _reasons.clear()
        _reasons[digest] = _reason(text, language)
    return _reasons[digest]


def _reason(text: str, language: str) -> str:
    """Return why the detectors cannot read a text, or ""."""
    if "{\\rtf" in text and _RTF.search(text):
        return RTF
    if has_encoded_block(text):
        return ENCODED
    if language == "english" and not is_english(visible_text(text)):
        return NOT_ENGLISH
    return ""


def has_encoded_block(text: str) -> bool:
    """Return whether a text has a line of 200 base64 characters, or three lines of 60."""
    lines = 0
    for word in text.split():
        if len(word) < _SHORTEST_LINE:
            continue
        for match in _RUN.finditer(word):
            if not all(pattern.search(match[0]) for pattern in _MIXED):
                continue
            lines += 1
            if len(match[0]) >= _SHORTEST_BLOCK or lines >= _LINES:
                return True
    return False
