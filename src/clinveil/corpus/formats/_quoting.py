"""The grammar of delimited text: where a row ends, and where a quote is out of place.

RFC 4180, and two liberties that are unambiguous: rows may end in LF, CRLF or CR, and an unquoted field may hold quotes
but for its first character (5" needle). A closed quote followed by anything but a delimiter or the row's end is
refused: that is what a lost quote looks like, and a lenient reader would melt two notes into one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_END = rb"(?:\r\n|\n|\r)"
_QUOTED_OPEN = rb'"[^"]*+(?:""[^"]*+)*+'


@dataclass(frozen=True)
class Grammar:
    """Patterns of one delimiter (one ASCII byte). All repeats are possessive, so matching takes linear time."""

    delimiter: bytes
    _field: re.Pattern[bytes] = field(init=False, repr=False)
    _row: re.Pattern[bytes] = field(init=False, repr=False)
    _rows: re.Pattern[bytes] = field(init=False, repr=False)
    _partial: re.Pattern[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mark = re.escape(self.delimiter)
        one = rb'(?:%b"|[^"%b\r\n][^%b\r\n]*+|)' % (_QUOTED_OPEN, mark, mark)
        fields = rb"%b(?:%b%b)*+" % (one, mark, one)
        patterns = {
            "_field": rb"(%b)(?:%b|%b)" % (one, mark, _END),
            "_row": fields + _END,
            "_rows": rb"(?:%b%b)*+" % (fields, _END),
            "_partial": rb"%b(?:%b)?\Z" % (fields, _QUOTED_OPEN),
        }
        for name, pattern in patterns.items():
            object.__setattr__(self, name, re.compile(pattern))

    def complete(self, data: bytes) -> int:
        """Where the last whole row of `data` ends; 0 if there is none."""
        match = self._rows.match(data)
        return match.end() if match else 0

    def may_go_on(self, data: bytes) -> bool:
        """Whether `data` can be the beginning of a row; if not, a quote is out of place."""
        return self._partial.match(data) is not None

    def rows(self, data: bytes) -> Iterator[bytes]:
        """The whole rows at the beginning of `data`, one by one, without empty lines."""
        for match in self._row.finditer(data, 0, self.complete(data)):
            if (row := match.group()).strip(b"\r\n"):
                yield row

    def fields(self, row: bytes) -> list[bytes]:
        """The fields of one whole row, without their quotes."""
        raw = [match.group(1) for match in self._field.finditer(row)]
        return [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in raw]
