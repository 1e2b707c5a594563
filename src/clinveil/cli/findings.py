"""Findings for people: a table on stdout, or the findings document where `--json` asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from clinveil.finding import Detail, Finding

_WIDE = 160  # columns where nobody's terminal limits the table


def say_findings(command: str, findings: Sequence[Finding], *, seed: int, json_out: str | None, title: str) -> None:
    """Write the document to `json_out` (a file, or - for stdout), or print a table with a head line."""
    from clinveil.finding import write_findings

    if json_out:
        write_findings(json_out, command, findings, seed=seed)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = [list(_row(finding)) for finding in findings]
    for place, column in enumerate(("measure", "of", "value", "95 %", "chance", "control", "p", "n")):
        # Numbers are never cut; what they are of may take several lines.
        width = max(map(len, (column, *(row[place] for row in rows)))) if place > 1 else None
        table.add_column(column, justify="right" if place > 1 else "left", min_width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    console.print(Text(title, style="bold"))
    console.print(table)
    for line in _remarks(findings):
        console.print(Text(line, style="dim"))


def _row(finding: Finding) -> Iterable[str]:
    detail = finding.detail
    of = [str(detail[key]) for key in _OF if detail.get(key)]
    of += [f"K {detail['k']}"] if "k" in detail else []
    of += [f"{detail['span']} words or more"] if "span" in detail else []
    of += [f"{detail['false_alarms']:.1%} false alarms"] if "false_alarms" in detail else []
    of += [_vocabulary(detail)] if "unknown_share" in detail else []
    of += [f"{detail['at_ceiling']} of {finding.n} at the ceiling"] if detail.get("at_ceiling") else []
    ends = None if finding.low is None or finding.high is None else (_number(finding.low), _number(finding.high))
    interval = (" to " if ends[0].startswith("-") else "-").join(ends) if ends else ""
    yield _name(finding)
    yield ", ".join(of)
    yield _number(finding.value)
    yield interval
    yield _number(finding.chance)
    yield _number(finding.control)
    yield _number(detail["p"]) if isinstance(detail.get("p"), float) else ""
    yield f"{finding.n:,}"


# What a number is of, in the detail of a finding.
_OF: tuple[str, ...] = ("list", "setting", "mode", "model", "from", "first_weights", "attacker", "family", "repeats")
_OF += ("side", "metric", "step", "series", "label", "scale", "range")


def _vocabulary(detail: Detail) -> str:
    """Its size, and how much of the notes it does not know: perplexities compare at one vocabulary only."""
    pieces = "words" if detail["vocabulary"] == "words" else "byte pairs"
    return f"{detail['size']:,} {pieces}, {detail['unknown_share']:.1%} unknown"


def _name(finding: Finding) -> str:
    return finding.measure.partition(".")[2].replace("_", " ")


def _number(value: object) -> str:
    """Four decimals, and for what would be nought in them three digits."""
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"


def _remarks(findings: Sequence[Finding]) -> Iterable[str]:
    """What was not measured, and what stands behind the columns, each said once, for all measures that it is of."""
    seen: dict[tuple[str, object], dict[str, None]] = {}
    for finding in findings:
        what = ", ".join(part for part in (_name(finding), str(finding.detail.get("series", ""))) if part)
        for key, says in _ASKED:
            if finding.detail.get(key):
                seen.setdefault((says, finding.detail[key]), {})[what] = None
        for key, says in _BEHIND:
            if finding.detail.get(key):
                seen.setdefault((says, finding.detail[key]), {})
    return [f"{'; '.join(names)} {says}: {told}".lstrip() for (says, told), names in seen.items()] + _methods(findings)


def _methods(findings: Sequence[Finding]) -> list[str]:
    """How intervals were made; where in several ways, of which measures each."""
    seen: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.detail.get("interval"):
            seen.setdefault(str(finding.detail["interval"]), {})[_name(finding)] = None
    if len(seen) == 1:
        return [f"95 %: {method}" for method in seen]
    return [f"95 % of {', '.join(names)}: {method}" for method, names in seen.items()]


# What a remark says of its measures, and of the columns, in the detail of a finding.
_ASKED: tuple[tuple[str, str], ...] = (("question", "asks"), ("warning", "beware"), ("code", "code"))
_BEHIND: tuple[tuple[str, str], ...] = (("why", "not measured"), ("not_checked", "not checked"), ("read", "read"))
_BEHIND += (("control_is", "control"), ("p_is", "p"))


def file_names(paths: Iterable[Path]) -> str:
    """The base names of some files."""
    return ", ".join(path.name for path in paths)
