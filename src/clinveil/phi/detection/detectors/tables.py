"""Columns of tables: a heading (Age, DOB, Hosp No) determines the label of the cells below it.

Cells are separated by `|`, tabs, semicolons, commas, or two spaces and more. A table ends at a line
with another number of cells, at a blank line and at another heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clinveil.core import Span
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import Anchor, matcher

_SCORE = 0.85
_NUMBER = re.compile(r"#?[A-Za-z]{0,4}[-/. ]?\d[\w./ -]{1,18}")
_DAY = re.compile(r"\d{1,4}[/.-]\d{1,2}(?:[/.-]\d{1,4})?|\d{6}|\d{8}|(?:19|20)\d\d")
_PHONE = re.compile(r"[+(]?\d[\d\s()./-]{5,18}\d")
_ZIP = re.compile(r"[A-Z]{0,2}\d[A-Z\d]{1,4}(?:[ -]?[A-Z\d]{3,4})?", re.IGNORECASE)
# Label -> heading, and the form of a cell.
_COLUMNS = {
    "AGE": (r"age(?:\s?\((?:y|yrs?|years?)\))?|age\s?(?:yrs?|years?)", re.compile(r"9\d|1[0-2]\d")),
    "DATE": (
        r"d\.?o\.?b\.?|(?:date\sof\s)?birth(?:\s?date)?|dates?|date\sof\s(?:service|admission"
        r"|discharge|death|visit)|dos"
        r"|(?:admit(?:ted)?|admission|discharged?|visit|service|death|seen|collected"
        r"|drawn)(?:\sdate)?",
        _DAY,
    ),
    "MRN": (
        r"mrn|mr\s?(?:#|no\.?)|(?:hosp(?:ital)?|unit|chart|record|medical\srecord|patient"
        r"|pt)\.?\s?(?:#|no\.?|number|id)|urn",
        _NUMBER,
    ),
    "PHONE": (
        r"(?:home|work|cell)?\s?(?:tele)?phone(?:\s?(?:#|no\.?|number))?|tel\.?|mobile|cell|pager",
        _PHONE,
    ),
    "ZIP": (r"zip(?:\s?code)?|post(?:al)?\s?code", _ZIP),
    "ACCOUNT": (r"(?:account|acct)\.?\s?(?:#|no\.?|number)?", _NUMBER),
    "HEALTH_PLAN": (r"(?:nhs|insurance|member|policy|medicare)\s?(?:#|no\.?|number|id)", _NUMBER),
    "SSN": (r"ssn|social\ssecurity(?:\s(?:no\.?|number))?", _NUMBER),
    "ID": (
        r"id|(?:visit|encounter|case|accession|specimen|study|episode)\s?(?:#|no\.?|number|id)"
        r"|accession",
        _NUMBER,
    ),
}
_HEADING = re.compile(
    r"(?<![A-Za-z])(?:"
    + "|".join(f"(?P<{label}>{heading})" for label, (heading, _) in _COLUMNS.items())
    + r")(?![A-Za-z])",
    re.IGNORECASE,
)
_HEADINGS = matcher(
    _HEADING,
    Anchor(
        "*birth* *phone* accession* account* acct* admission* admit* age* case* cell* chart*"
        " collected* d* encounter* episode* hosp* id* insurance* medical medicare* member* mobile*"
        " mr* nhs* pager* patient* policy* post* pt* record* security* seen* service* specimen*"
        " ssn* study* tel* unit* urn* visit* zip*",
        within=12,
        after="[^A-Za-z]",
    ),
)
_SEPARATORS = (
    ("|", re.compile(r"\|")),
    ("\t", re.compile(r"\t")),
    (";", re.compile(";")),
    ("  ", re.compile(r" {2,}")),
    (",", re.compile(",")),
)
# A heading fills its cell.
_LEFT = re.compile(r"(?:^|[|\t;,\n]| {2})[ \"'*_#]*\Z")
_RIGHT = re.compile(r"[ \"'*_#]*(?:[|\t;,\r\n]|$)| {2}")
_FRAME = re.compile(r"[\s|+:=-]*")  # the line under the headings
_MARKS = " \"'*_"


class _Tables:
    """Detector of identifiers in the columns of tables."""

    name = "tables"
    labels = frozenset(_COLUMNS)
    examples = (
        (
            "| Patient | Age | Hosp No |\n|---|---|---|\n| A | {AGE:94} | {MRN:77123} |\n| B | 72 |"
            " {MRN:88-421} |\n"
        ),
        "Id\tDOB\tTel\tPostcode\n{ID:K4471}\t{DATE:030482}\t{PHONE:555 0199}\t{ZIP:44107}\n",
        "Account no;SSN;NHS no\n{ACCOUNT:88123};{SSN:536221234};{HEALTH_PLAN:4857773456}\n",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield the cells below each heading."""
        text = note.plain
        if "\n" not in text:
            return
        for match in _HEADINGS.matches(note):
            if not (
                _LEFT.search(text, max(0, match.start() - 4), match.start())
                and _RIGHT.match(text, match.end())
            ):
                continue
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            if end < 0 or len(text[end : end + 400].strip()) == 0:
                continue
            heading = text[begin:end]
            for sign, separator in _SEPARATORS:
                if sign in heading.strip():
                    yield from self._column(note, match, separator, begin, end)
                    break

    def _column(
        self, note: NoteView, match: re.Match[str], separator: re.Pattern[str], begin: int, end: int
    ) -> Iterator[Span]:
        """Yield the cells of one column, if the match is a heading of its own."""
        heads = list(_cells(note.plain, separator, begin, end))
        column = next(
            (
                i
                for i, (start, stop) in enumerate(heads)
                if start <= match.start() and match.end() <= stop
            ),
            None,
        )
        label = match.lastgroup
        if (
            column is None
            or label is None
            or note.plain[slice(*heads[column])].strip(_MARKS + "#") != match[0].strip("#")
        ):
            return
        form = _COLUMNS[label][1]
        for first, last in _lines(note.plain, end + 1):
            line = note.plain[first:last]
            if _FRAME.fullmatch(line) and line.strip():
                continue
            cells = list(_cells(note.plain, separator, first, last))
            if len(cells) != len(heads):
                return
            start, stop = cells[column]
            cell = note.plain[start:stop]
            value = cell.strip(_MARKS)
            if _HEADING.fullmatch(value):
                return
            if value and form.fullmatch(value):
                start += cell.index(value)
                yield note.span(
                    start, start + len(value), label, self.name, _SCORE, f"{label} column"
                )


def _lines(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the lines from an offset, up to a blank one."""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not text[start:end].strip():
            return
        yield start, end
        start = end + 1


def _cells(
    text: str, separator: re.Pattern[str], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the cells of a line."""
    for match in separator.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


TABLES = _Tables()
