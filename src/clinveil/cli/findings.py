"""How a command shows findings: JSON for machines, a table for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from clinveil.finding import Finding, write_findings

if TYPE_CHECKING:
    from rich.table import Table

    from clinveil.report.summarise import Block, Row

COLUMNS = ("", "value", "95 % interval", "n", "chance", "control", "P")
REMARKS = ("question", "warning", "why")
WIDTH = 160


def show_findings(findings: Sequence[Finding], command: str, *, seed: int | None, json: str | None) -> None:
    """Write the findings document to the file `json` (`-` for stdout), or print tables on stdout without one."""
    if json is not None:
        write_findings(json, command, findings, seed=seed)
        return
    from rich.console import Console
    from rich.text import Text

    from clinveil.report.summarise import blocks

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for block in blocks(findings, "internal"):
        console.print(Text(block.title, style="bold"))
        console.print(_table(block))
        for remark in _remarks(block):
            console.print(Text(f"  {remark}", style="dim"))
        console.print()


def _table(block: Block) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(*COLUMNS, box=None, pad_edge=False, header_style="dim")
    for row in block.rows:
        table.add_row(*(Text(cell) for cell in _cells(row)))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    ends = f"{row.ends[0].text} to {row.ends[1].text}" if row.ends else ""
    p = row.finding.detail.get("p")
    shown = f"{p:.2g}" if isinstance(p, float) else ""
    return row.label, row.value.text, ends, f"{row.n.text} {row.unit}".strip(), row.chance.text, row.control.text, shown


def _remarks(block: Block) -> Iterator[str]:
    """What the numbers answer, what to beware of, and why one is missing; each once."""
    for key in REMARKS:
        said = dict.fromkeys(str(r.finding.detail[key]) for r in block.rows if key in r.finding.detail)
        yield from (f"{key}: {words}" for words in said)
