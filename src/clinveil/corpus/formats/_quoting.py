"""The grammar of delimited text: find row ends and misplaced quotes.

RFC 4180 with two unambiguous extensions: rows may end in LF, CRLF or CR, and an unquoted field may contain quotes
after its first character (5" needle). A closing quote must be followed by a delimiter or the row's end: anything else
indicates a missing quote, and a lenient parser would merge two notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_END = rb"(?:\r\n|\n|\r)"
_QUOTED_OPEN = rb'"[^"]*+(?:""[^"]*+)*+'


@dataclass(frozen=True)
class Grammar:
    """Patterns for one delimiter (one ASCII byte). All repeats are possessive, so matching takes linear time."""

    delimiter: bytes
    _field: re.Pattern[bytes] = field(init=False, repr=False)
    _row: re.Pattern[bytes] = field(init=False, repr=False)
    _rows: re.Pattern[bytes] = field(init=False, repr=False)
    _partial: re.Pattern[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mark = re.escape(self.delimiter)
        value = rb'(?:%b"|[^"%b\r\n][^%b\r\n]*+|)' % (_QUOTED_OPEN, mark, mark)
        fields = rb"%b(?:%b%b)*+" % (value, mark, value)
        patterns = {
            "_field": rb"(%b)(?:%b|%b)" % (value, mark, _END),
            "_row": fields + _END,
            "_rows": rb"(?:%b%b)*+" % (fields, _END),
            "_partial": rb"%b(?:%b)?\Z" % (fields, _QUOTED_OPEN),
        }
        for name, pattern in patterns.items():
            object.__setattr__(self, name, re.compile(pattern))

    def complete(self, data: bytes) -> int:
        """Return the end of the last complete row of `data`; 0 if there is none."""
        match = self._rows.match(data)
        return match.end() if match else 0

    def may_go_on(self, data: bytes) -> bool:
        """Return whether `data` can be the beginning of a row; if not, a quote is misplaced."""
        return self._partial.match(data) is not None

    def rows(self, data: bytes) -> Iterator[bytes]:
        """Yield the complete rows at the beginning of `data`, without empty lines."""
        for match in self._row.finditer(data, 0, self.complete(data)):
            if (row := match.group()).strip(b"\r\n"):
                yield row

    def fields(self, row: bytes) -> list[bytes]:
        """Return the fields of one complete row, unquoted."""
        raw = [match.group(1) for match in self._field.finditer(row)]
        return [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in raw]
