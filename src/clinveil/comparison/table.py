"""The table of a comparison: one row for each release, for the page, Markdown and the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from clinveil.comparison.lines import ComparisonCell, Group, Line, lines_of, utility_of
from clinveil.comparison.measured import Comparison, MeasuredRelease
from clinveil.report import NONE

TO: dict[str, str] = {"agreement": "under an agreement", "public": "to the public"}
"""The audiences of a verdict, with their text."""
IN_HEADS = (" to recipients under an agreement", " to the public")
"""Words of a verdict that a heading of the terminal has."""
NO_NOTES = "it is refused, so its notes were not kept"
GROUPS: dict[Group, str] = {
    "use": "Use for recipients",
    "risk": "Risk from recipients",
    "more": "Risk from others who hold more",
}
HEADS = ("Release", "May it leave?", *GROUPS.values())
LABELS = 12  # characters of the first column in the terminal
COLUMN = 26
ACROSS = 3  # releases next to each other in the terminal
WIDTH = LABELS + ACROSS * (COLUMN + 2)


@dataclass(frozen=True)
class Entry:
    """One line of a cell.

    Attributes:
        label: what it is, "" for none. text: number or sentence; a dash where there is none.
        note: letter of the reason for a missing number.
    """

    label: str
    text: str
    note: str = ""

    def __str__(self) -> str:
        label = f"{self.label}: " if self.label else ""
        note = f" ({self.note})" if self.note else ""
        return f"{label}{self.text}{note}"


@dataclass(frozen=True)
class TableRow:
    """One release.

    Attributes:
        name: with its kind, if that is another word. facts: of the release, under its name.
        phrase: some released words. verdicts: one for each audience, with whether it may leave.
        cells: entries by group, in the order of `GROUPS`.
        short: entries for the terminal, by heading.
    """

    name: str
    facts: str
    phrase: str
    verdicts: tuple[tuple[bool, Entry], ...]
    cells: tuple[tuple[Entry, ...], ...]
    short: tuple[tuple[str, tuple[Entry, ...]], ...]


@dataclass(frozen=True)
class ComparisonTable:
    """The table, ready to print.

    Attributes:
        lead: what was compared, with floor and ceiling of the classifiers. advice: how to choose.
        meanings: label and sentence of each line. reasons: letter and text. short_reasons: of the
            table for the terminal.
    """

    lead: str
    advice: str
    rows: tuple[TableRow, ...]
    meanings: tuple[tuple[str, str], ...]
    reasons: tuple[tuple[str, str], ...]
    short_reasons: tuple[tuple[str, str], ...]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
        for row in self.rows:
            verdicts = [str(entry) for _, entry in row.verdicts]
            cells = [[row.name, row.facts], verdicts, *([str(e) for e in c] for c in row.cells)]
            lines.append("| " + " | ".join("<br>".join(filter(None, c)) for c in cells) + " |")
        notes = [f"- **{label}**: {meaning}." for label, meaning in self.meanings]
        notes += [f"- ({letter}) {reason}." for letter, reason in self.reasons]
        return "\n".join([self.lead, "", *lines, "", self.advice, "", *notes]) + "\n"

    def terminal(self) -> str:
        """Return a short table for the terminal, with a column for each release."""
        parts = [
            _side_by_side(self.rows[start : start + ACROSS])
            for start in range(0, len(self.rows), ACROSS)
        ]
        notes = [f"({letter}) {reason}." for letter, reason in self.short_reasons]
        wrapped = ["\n".join(textwrap.wrap(text, WIDTH)) for text in (*notes, self.advice)]
        return "\n\n".join([*parts, *wrapped])


def table_of(comparison: Comparison) -> ComparisonTable:
    """Return the table of a comparison."""
    lines = list(lines_of(comparison))
    reasons = Reasons()
    short = Reasons()
    # On a terminal or in a log, only words of invented notes are shown.
    is_invented = comparison.seed is None
    rows = tuple(
        _row(measured, lines, reasons, short, with_phrase=is_invented)
        for measured in comparison.releases
    )
    return ComparisonTable(
        lead=_lead(comparison),
        advice=advice(comparison.releases),
        rows=rows,
        meanings=tuple((line.label, line.meaning) for line in lines),
        reasons=tuple((letter, why) for why, letter in reasons.letters.items()),
        short_reasons=tuple((letter, why) for why, letter in short.letters.items()),
    )


class Reasons:
    """The reasons why cells have no number, each with a letter."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, why: str) -> str:
        """Return the letter of a reason: a, b, ..., z, aa, ab, ..."""
        why = why.rstrip(".")
        if why not in self.letters:
            number = len(self.letters)
            first, second = divmod(number, len(ascii_lowercase))
            prefix = ascii_lowercase[first - 1] if first else ""
            self.letters[why] = prefix + ascii_lowercase[second]
        return self.letters[why]


def advice(releases: Sequence[MeasuredRelease]) -> str:
    """Return which releases may leave to whom, and how to choose among them."""
    sentences = []
    for audience, text in TO.items():
        names = [
            one.name
            for one in releases
            if audience in one.verdicts and one.verdicts[audience].may_leave
        ]
        sentences.append(f"May leave {text}: {', '.join(names) or 'none of these'}.")
    return (
        f"{' '.join(sentences)} Of those for your recipients, choose the one with the use that fits"
        " their work; a person decides, with its report."
    )


def _row(
    measured: MeasuredRelease,
    lines: Sequence[Line],
    reasons: Reasons,
    short: Reasons,
    *,
    with_phrase: bool,
) -> TableRow:
    kind = "" if measured.name == measured.kind else f" ({measured.kind})"
    if measured.why:
        missing = Entry("", NONE, reasons.letter(measured.why))
        return TableRow(
            name=measured.name + kind,
            facts="not made",
            phrase="",
            verdicts=((False, missing),),
            cells=tuple((missing,) for _ in GROUPS),
            short=(
                ("", (Entry("", measured.name),)),
                ("use", (Entry("", NONE, short.letter(measured.why)),)),
            ),
        )
    cells = {line: line.cell(measured) for line in lines}
    return TableRow(
        name=measured.name + kind,
        facts=f"{measured.distinct:,} different words" if measured.distinct else "no notes left",
        phrase=measured.phrase,
        verdicts=tuple(
            (verdict.may_leave, Entry("", verdict.sentence))
            for verdict in measured.verdicts.values()
        ),
        cells=tuple(
            tuple(_entries([(line, cells[line]) for line in lines if line.group == group], reasons))
            for group in GROUPS
        ),
        short=tuple(_short(measured, cells, short, with_phrase=with_phrase)),
    )


def _entries(
    pairs: Sequence[tuple[Line, ComparisonCell]], reasons: Reasons, *, short: bool = False
) -> Iterator[Entry]:
    """Yield the lines of a cell; those that are empty for one reason are one line.

    short: without intervals.
    """
    empty: dict[str, list[str]] = {}
    for line, cell in pairs:
        if cell.text == NONE:
            empty.setdefault(cell.why, []).append(line.label)
        else:
            yield Entry(line.label, (cell.short if short else "") or cell.text)
    for why, labels in empty.items():
        yield Entry(", ".join(labels), NONE, reasons.letter(why))


def _short(
    measured: MeasuredRelease,
    cells: dict[Line, ComparisonCell],
    reasons: Reasons,
    *,
    with_phrase: bool,
) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """Yield heading and entries of the lines in the terminal."""
    yield "", (Entry("", measured.name),)
    phrase = Entry("", f"“{measured.phrase}”")
    if not measured.phrase:
        phrase = Entry("", NONE, reasons.letter(NO_NOTES))
    if with_phrase:
        yield "reads like", (phrase,)
    uses = [(line, cell) for line, cell in cells.items() if line.group == "use"]
    yield "use", tuple(_entries(uses, reasons, short=True))
    risks = [(line, cell) for line, cell in cells.items() if line.group == "risk"]
    worst = max(risks, key=lambda risk: risk[1].above)
    yield "worst risk", tuple(_entries([worst], reasons, short=True))
    for audience, verdict in measured.verdicts.items():
        sentence = verdict.sentence
        for words in IN_HEADS:
            sentence = sentence.replace(words, "")
        yield audience, (Entry("", sentence),)


def _side_by_side(rows: Sequence[TableRow]) -> str:
    """Return the short entries of some releases in columns."""
    heads = list(dict.fromkeys(head for row in rows for head, _ in row.short))
    lines = []
    for number, head in enumerate(heads):
        columns = [
            [text for e in dict(row.short).get(head, ()) for text in textwrap.wrap(str(e), COLUMN)]
            for row in rows
        ]
        for index in range(max(map(len, columns))):
            texts = [column[index] if index < len(column) else "" for column in columns]
            first = head if index == 0 else ""
            lines.append(f"{first:<{LABELS}}" + "".join(f"  {text:<{COLUMN}}" for text in texts))
        if number == 0:
            lines.append("-" * (LABELS + len(rows) * (COLUMN + 2)))
    return "\n".join(line.rstrip() for line in lines)


def _lead(comparison: Comparison) -> str:
    lines = [
        f"{comparison.n_notes:,} notes of {comparison.n_patients:,} patients, label"
        f" {comparison.label}."
    ]
    for model in comparison.models:
        found = (
            utility_of(measured, "utility.transfer", model) for measured in comparison.releases
        )
        scores = next((f.scores for f in found if f is not None and f.scores is not None), None)
        if scores is not None and scores.ceiling is not None and scores.floor is not None:
            lines.append(
                f"Classifier {model}: macro-F1 {scores.ceiling:.3f} on real notes,"
                f" {scores.floor:.3f} (the floor) on words drawn at random per label."
            )
    return " ".join(lines)
