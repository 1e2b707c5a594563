"""Write table, page and findings of a comparison."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version

from jinja2 import ChoiceLoader, PackageLoader
from markupsafe import Markup

from clinveil.comparison.measured import Comparison
from clinveil.comparison.table import HEADS, ComparisonTable, table_of
from clinveil.core import Finding, private_text, write_findings
from clinveil.report import environment

TABLE = "table.md"
FINDINGS = "findings.json"
PAGE = "compare.html"


def write_outputs(comparison: Comparison) -> ComparisonTable:
    """Write `table.md`, `findings.json` and `compare.html`; return the table."""
    out = comparison.folder
    table = table_of(comparison)
    private_text(out / TABLE, table.markdown())
    write_findings(out / FINDINGS, "compare", _findings(comparison), seed=comparison.seed)
    private_text(out / PAGE, _page(comparison, table))
    return table


def _findings(comparison: Comparison) -> Iterator[Finding]:
    """Yield every finding, with the name and the kind of its release, and the other numbers of the
    table.
    """
    for measured in comparison.releases:
        findings = list(measured.findings)
        if measured.why:
            findings.append(Finding("compare.release", None, 0, None, why=measured.why))
        else:
            n = measured.distinct
            findings.append(Finding("compare.distinct_words", n, n, None, unit="words"))
            seconds = measured.seconds
            findings.append(Finding("compare.seconds", seconds, 1, "lower", unit="seconds"))
        for audience, verdict in measured.verdicts.items():
            may_leave = float(verdict.may_leave)
            findings.append(Finding("compare.may_leave", may_leave, 1, None, labels=(audience,)))
        for finding in findings:
            yield replace(finding, labels=(measured.name, measured.kind, *finding.labels))


def _page(comparison: Comparison, table: ComparisonTable) -> str:
    env = environment()
    assert env.loader is not None
    pages = env.overlay(loader=ChoiceLoader([PackageLoader("clinveil.comparison"), env.loader]))
    style = "".join(pages.get_template(name).render() for name in ("style.css", "compare.css"))
    return pages.get_template("compare.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        table=table,
        heads=HEADS,
        is_invented=comparison.seed is None,
        version=version("clinveil"),
    )
