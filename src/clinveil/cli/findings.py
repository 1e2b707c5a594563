"""Print findings as a table, or write them as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clinveil.core import Finding, write_findings
from clinveil.report import NONE, row, terse

_WIDE = 160  # columns, if the output is not a terminal


def print_findings(
    command: str, findings: Sequence[Finding], *, seed: int, json_out: str | None, title: str
) -> None:
    """Write findings to `json_out` (a file, or - for stdout), or print a table under a title."""
    if json_out:
        write_findings(json_out, command, findings, seed=seed)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = [list(_cells(finding)) for finding in findings]
    for index, column in enumerate(
        ("measure", "of", "value", "95 %", "chance", "control", "p", "n")
    ):
        # Numbers are never cut; names may take several lines.
        width = max(map(len, (column, *(cells[index] for cells in rows)))) if index > 1 else None
        table.add_column(column, justify="right" if index > 1 else "left", min_width=width)
    for cells in rows:
        table.add_row(*map(Text, cells))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    console.print(Text(title, style="bold"))
    console.print(table)
    for line in _remarks(findings):
        console.print(Text(line, style="dim"))


def _cells(finding: Finding) -> Iterator[str]:
    """Yield the cells of a finding's row."""
    shown = row(finding, kind="number", write=terse)
    ends = [end.text for end in shown.ends or ()]
    numbers = (shown.value, shown.chance, shown.control)
    value, chance, control = ("-" if number.text == NONE else number.text for number in numbers)
    yield _name(finding)
    yield ", ".join(shown.variants)
    yield value
    yield (" to " if ends and ends[0].startswith("-") else "-").join(ends)
    yield chance
    yield control
    yield "" if finding.p is None else shown.p.text
    yield shown.n.text


def _name(finding: Finding) -> str:
    return finding.measure.partition(".")[2].replace("_", " ")


def _remarks(findings: Sequence[Finding]) -> Iterable[str]:
    """Yield each remark once, with the measures that it is about."""
    seen: dict[tuple[str, str], dict[str, None]] = {}
    for finding in findings:
        name = ", ".join(filter(None, (_name(finding), finding.series)))
        for kind, text, named in _texts(finding):
            if text:
                seen.setdefault((kind, text), {}).update({name: None} if named else {})
    lines = [f"{'; '.join(names)} {kind}: {text}".lstrip() for (kind, text), names in seen.items()]
    methods: dict[
        str, dict[str, None]
    ] = {}  # of the intervals; if there are several, with the measures of each
    for finding in (f for f in findings if f.method):
        methods.setdefault(finding.method, {})[_name(finding)] = None
    of = (f" of {', '.join(names)}" if len(methods) > 1 else "" for names in methods.values())
    return [*lines, *(f"95 %{named}: {method}" for method, named in zip(methods, of, strict=True))]


def _texts(finding: Finding) -> Iterator[tuple[str, str, bool]]:
    """Yield the kind of each remark on a finding, its text, and whether the measure is named."""
    yield "asks", finding.question, True
    if finding.scores is not None:
        yield "value", "share of the gap from the floor (0) to the ceiling (1)", True
    yield "beware", finding.warning, True
    for remark in finding.remarks:
        yield "note", remark, True
    yield ("not measured" if finding.value is None else "note"), finding.why, False
    yield "chance", finding.chance_is, False
    yield (
        "positive control" if finding.control_kind == "positive" else "control",
        finding.control_is,
        False,
    )
    yield "p", finding.p_is, False
