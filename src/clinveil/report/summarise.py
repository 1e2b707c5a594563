"""Group findings by measure into typed blocks for the internal edition. No HTML here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinveil.core.finding import Finding
from clinveil.report.cells import Row, control_words, row
from clinveil.report.measures import COMPANIONS, UNKNOWN, distinct, find
from clinveil.report.numerals import Number
from clinveil.report.record import Edition, ReleaseRecord, TokenRow


@dataclass(frozen=True, slots=True)
class Block:
    """One measure: its text, and a row for each of its findings.

    `chance`, `control`, `p` and `methods` describe these columns in words; `questions` are asked by single rows only;
    `remarks` must be read with the numbers.
    """

    name: str
    title: str
    asked: str
    means: str
    questions: tuple[str, ...]
    rows: tuple[Row, ...]
    chance: str
    control: str
    p: str
    methods: tuple[str, ...]
    remarks: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def companions(self) -> dict[str, str]:
        """Headings of the companion columns that at least one row fills."""
        return {key: head for key, (head, _) in COMPANIONS.items() if any(key in row.beside for row in self.rows)}

    @property
    def more(self) -> list[tuple[str, Mapping[str, Number]]]:
        """The other figures of each row that has some."""
        return [(row.label, row.more) for row in self.rows if row.more]

    @property
    def ident(self) -> str:
        """The block's anchor in a page."""
        return "m-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in self.name)


def blocks(findings: Sequence[Finding], edition: Edition) -> list[Block]:
    """Return the findings by catalogue entry, in the order in which the entries first occur."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(find(finding.measure)[0], []).append(finding)
    return [_block(name, group, edition) for name, group in grouped.items()]


def _block(name: str, findings: Sequence[Finding], edition: Edition) -> Block:
    measure = find(name)[1]
    rows = tuple(row(finding, edition) for finding in findings)
    return Block(
        name=name,
        title=measure.title if measure is not UNKNOWN else f"{measure.title}: {name}",
        asked=measure.asked,
        means=measure.means,
        questions=distinct(f.question for f in findings if f.question != measure.asked),
        rows=rows,
        chance="; ".join(distinct(f.chance_is for f in findings if f.chance is not None)) or measure.chance,
        control="; ".join(distinct(control_words(f, measure.control) for f in findings if f.control is not None)),
        p="; ".join(distinct(f.p_is for f in findings if f.p is not None)),
        methods=distinct(f.method for f in findings),
        remarks=distinct(_sentence(key, text) for r in rows for key, text in r.remarks.items()),
        sources=distinct(f.source for f in findings),
    )


_PREFIXES = {
    "warning": "Warning: ",
    "why": "Not measured: ",
    "not_checked": "Not checked: ",
    "read": "Read: ",
    "code": "Code: ",
    "measured_on": "Measured on ",
}


def _sentence(key: str, text: str) -> str:
    return f"{_PREFIXES[key]}{text}".rstrip(".") + "."


def accounting(record: ReleaseRecord) -> list[TokenRow]:
    """Return the token accounting with the total last; empty where the kind has none."""
    return [*record.accounting, TokenRow.total(record.accounting)] if record.accounting else []
