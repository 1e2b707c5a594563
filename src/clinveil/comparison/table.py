"""Results of a comparison, and their table: a row for each release, a column for each measure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, cast

from jinja2 import ChoiceLoader, PackageLoader
from markupsafe import Markup

from clinveil.attacks import AdversaryRow, Holding, Target, above_chance, adversary_table, target_of
from clinveil.comparison.settings import CompareSettings
from clinveil.core import Cell, Finding, private_text, write_findings
from clinveil.report import NONE, bare, environment

TABLE = "table.md"
FINDINGS = "findings.json"
PAGE = "compare.html"


@dataclass(frozen=True)
class MeasuredRelease:
    """What was measured of one release.

    Attributes:
        name, kind: of the release. findings: all of its findings. seconds: wall time.
        distinct: different words in the released notes.
        gates: how many gates had each outcome. failed: names of failed gates, without the test
            seed's.
        why: the reason where the release could not be made; then there are no findings.
    """

    name: str
    kind: str
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    distinct: int = 0
    gates: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "findings": [finding.as_dict() for finding in self.findings]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredRelease:
        """The result of `as_dict`. Raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            name=data["name"],
            kind=data["kind"],
            findings=tuple(Finding.from_dict(item) for item in data["findings"]),
            seconds=data["seconds"],
            distinct=data["distinct"],
            gates=data["gates"],
            failed=tuple(data["failed"]),
            why=data["why"],
        )


@dataclass(frozen=True)
class Comparison:
    """The result of `clinveil compare`.

    Attributes:
        settings: what was compared how. n_notes, n_patients: of the notes. releases: one for each
            row of the table.
        folder: where table, page and findings are; all of it is secret.
    """

    settings: CompareSettings
    n_notes: int
    n_patients: int
    releases: tuple[MeasuredRelease, ...]
    folder: Path


SAME = "="
TEN_WORDS: tuple[Target, ...] = ("note by ten words",)
NAMES: tuple[Target, ...] = ("names", "planted names")
OWN: tuple[Target, ...] = ("own identifiers",)
COPIES: tuple[Target, ...] = ("copies",)
PUBLIC: tuple[Target, ...] = ("note by public knowledge",)
CHOOSE = (
    "How to choose: set the risk that the recipient's agreement allows, leave out the rows above"
    " it and the rows with failed gates, and take the row with the highest utility for what the"
    f" recipient will do. Risks: success, and in brackets chance, the success of guessing; {SAME}"
    " where the attacks of this attacker do no better than those of a weaker attacker."
)


class ComparisonCell(NamedTuple):
    """A cell, and the reason where it has no number."""

    text: str
    why: str = ""


class ComparisonColumn(NamedTuple):
    """A column: its heading, its meaning in a sentence, and how its cells are made."""

    head: str
    meaning: str
    cell: Callable[[MeasuredRelease], ComparisonCell]


@dataclass(frozen=True)
class ComparisonTable:
    """The table, ready to print.

    Attributes:
        lead: what was compared, with floor and ceiling of the classifiers. heads: of all columns.
        rows: cells of each release, the first of them its name. meanings: head and sentence of each
            column.
        reasons: why cells have no number.
    """

    lead: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    meanings: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.heads, *self.rows)]
        lines.insert(1, "| --- |" + " ---: |" * (len(self.heads) - 1))
        notes = [f"- **{head}**: {meaning}" for head, meaning in self.meanings]
        notes += [f"- {NONE} {reason}" for reason in self.reasons]
        return "\n".join([self.lead, "", *lines, "", CHOOSE, "", *notes]) + "\n"


def table_of(comparison: Comparison) -> ComparisonTable:
    """Return the table of a comparison."""
    columns = list(_columns(comparison))
    rows = []
    reasons = dict[str, dict[str, None]]()
    for measured in comparison.releases:
        cells = [
            ComparisonCell(NONE, measured.why) if measured.why else column.cell(measured)
            for column in columns
        ]
        kind = "" if measured.name == measured.kind else f" ({measured.kind})"
        rows.append((measured.name + kind, *(cell.text for cell in cells)))
        for column, cell in zip(columns, cells, strict=True):
            if cell.why:
                where = (
                    measured.name
                    if measured.why
                    else f"{measured.name}, {column.head.removesuffix(', %').lower()}"
                )
                reasons.setdefault(cell.why.rstrip("."), {})[where] = None
    return ComparisonTable(
        _lead(comparison),
        ("Release", *(column.head for column in columns)),
        tuple(rows),
        tuple((column.head, column.meaning) for column in columns),
        tuple(f"({'; '.join(places)}): {why}." for why, places in reasons.items()),
    )


def utility_of(release: MeasuredRelease, measure: str, model: str = "") -> Finding | None:
    """Return the finding of a utility task, of one classifier where it has several."""
    found = (f for f in release.findings if f.measure == measure)
    return next((f for f in found if not model or model in f.labels or f.scores is None), None)


def _columns(comparison: Comparison) -> Iterator[ComparisonColumn]:
    yield ComparisonColumn(
        "Words",
        "different words in the released notes.",
        lambda m: ComparisonCell(f"{m.distinct:,}"),
    )
    yield from _utility_columns(comparison)
    yield from _risk_columns(comparison)
    yield ComparisonColumn(
        "Gates",
        "passed / failed / switched off, without that of the test seed.",
        lambda m: ComparisonCell(
            " / ".join(
                str(m.gates.get(outcome, 0)) for outcome in ("passed", "failed", "switched off")
            )
        ),
    )
    yield ComparisonColumn(
        "Seconds",
        "time to make and measure the release on this machine.",
        lambda m: ComparisonCell(f"{m.seconds:.0f}"),
    )


def _utility_columns(comparison: Comparison) -> Iterator[ComparisonColumn]:
    models = comparison.settings.model
    for model in models:
        which = f" {model}" if len(models) > 1 else ""
        meaning = (
            f"macro-F1 of a classifier ({model}) trained on the release and tested on real notes,"
            " in % of one "
        )
        meaning += "trained on real notes (95 % interval)."
        yield ComparisonColumn(
            f"Classifier{which}, %",
            meaning,
            partial(_of_real, measure="utility.transfer", model=model),
        )
        meaning = f"the same, tested on released notes ({model})."
        yield ComparisonColumn(
            f"Within{which}, %", meaning, partial(_of_real, measure="utility.within", model=model)
        )
    gap = (
        "0 is the floor without word order, 100 is as good as real notes, negative is worse than"
        " the floor "
    )
    gap += "(95 % interval)."
    for head, task, meaning in (
        ("Order, %", "sequence", f"a task that needs word order, tested on real sentences; {gap}"),
        ("Text, %", "language_model", f"prediction of the next word of real notes; {gap}"),
    ):
        yield ComparisonColumn(head, meaning, partial(_of_gap, measure=f"utility.{task}"))
    if comparison.settings.pairs:
        meaning = (
            "word vectors trained on the release, by their correlation with human scores, in % of"
            " vectors of "
        )
        meaning += "the real notes."
        yield ComparisonColumn("Vectors, %", meaning, partial(_of_gap, measure="utility.vectors"))


def _risk_columns(comparison: Comparison) -> Iterator[ComparisonColumn]:
    yield _risk_column(
        "Notes found, %",
        "notes found from ten words in a row, by the recipient / a recipient who also trained word"
        " vectors on similar text.",
        [("recipient", TEN_WORDS), ("shadow", TEN_WORDS)],
    )
    if comparison.settings.known:
        meaning = "patients found from the public texts, by the same two."
        yield _risk_column("Public text, %", meaning, [("recipient", PUBLIC), ("shadow", PUBLIC)])
    yield _risk_column(
        "Names, %",
        "names of patients or, where this shows more, names planted for the test, recovered by the"
        " same two / a recipient with 20 notes in both forms.",
        [("recipient", NAMES), ("shadow", NAMES), ("pairs-20", NAMES)],
    )
    meaning = "names recovered by a recipient with 200 notes in both forms; no gate judges this."
    yield _risk_column("200 pairs, %", meaning, [("pairs-200", NAMES)])
    meaning = (
        "notes found / names recovered by an attacker with the vault's word vectors: an upper"
        " bound."
    )
    yield _risk_column(
        "Stolen, %", meaning, [("stolen-vectors", TEN_WORDS), ("stolen-vectors", NAMES)]
    )
    meaning = "patients' own identifiers left in their notes (requires --patients)."
    yield _risk_column("Own, %", meaning, [("recipient", OWN)])
    if any(measured.kind == "synthetic" for measured in comparison.releases):
        meaning = (
            "patients of whom a passage of their own appears in the synthetic notes; in brackets "
            "held-out patients, whom the model never read, as a control."
        )
        yield ComparisonColumn("Copied, %", meaning, _copied)
        meaning = (
            "how well a recipient tells training patients from others (area under the curve), from"
            " the synthetic "
        )
        yield ComparisonColumn(
            "Membership",
            meaning + "notes alone; in brackets chance and the 95 % interval.",
            _membership,
        )


def _of_real(release: MeasuredRelease, measure: str, model: str) -> ComparisonCell:
    finding = utility_of(release, measure, model)
    if finding is None:
        return ComparisonCell(NONE, "the released notes have no label")
    if finding.value is None:
        return ComparisonCell(NONE, finding.why)
    scores = finding.scores
    assert scores is not None
    ends = (scores.of_ceiling_low, scores.of_ceiling_high)
    return ComparisonCell(_interval(scores.of_ceiling, *ends))


def _of_gap(release: MeasuredRelease, measure: str) -> ComparisonCell:
    finding = utility_of(release, measure)
    if finding is None or finding.value is None:
        return ComparisonCell(NONE, "" if finding is None else finding.why)
    return ComparisonCell(_interval(finding.value, finding.low, finding.high))


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return NONE
    if low is None or high is None:
        return f"{100 * value:.0f}"
    return f"{100 * value:.0f} ({100 * low:.0f} to {100 * high:.0f})"


def _risk_column(
    head: str, meaning: str, cells: Sequence[tuple[Holding, Sequence[Target]]]
) -> ComparisonColumn:
    """Return a column of the strongest attack of each adversary on some targets."""

    def cell(release: MeasuredRelease) -> ComparisonCell:
        table = adversary_table(release.findings)
        target_of = {targets: _strongest_target(table, cells, targets) for _, targets in cells}
        rows = [table.get(Cell(holding, target_of[targets])) for holding, targets in cells]
        texts = [_risk(row) for row in rows]
        missing = [row.finding for row in rows if row is not None and row.finding.value is None]
        why = missing[0].why if missing else ""
        return (
            ComparisonCell(" / ".join(texts)) if {*texts} != {NONE} else ComparisonCell(NONE, why)
        )

    return ComparisonColumn(head, meaning, cell)


def _strongest_target(
    table: Mapping[Cell, AdversaryRow],
    cells: Sequence[tuple[Holding, Sequence[Target]]],
    targets: Sequence[Target],
) -> Target:
    """Return the target of a column on which its adversaries are furthest above chance: one for all
    of them.
    """
    tried = [
        table[Cell(holding, target)]
        for holding, targets_of in cells
        for target in targets
        if targets_of == targets and Cell(holding, target) in table
    ]
    top = max(tried, key=lambda row: above_chance(row.finding), default=None)
    return targets[0] if top is None else cast(Target, top.cell.target)


def _risk(row: AdversaryRow | None) -> str:
    """Return success and chance, or a mark for the figure of a weaker adversary."""
    finding = None if row is None else row.finding
    if row is None or finding is None or finding.value is None:
        return NONE
    if row.by != row.cell.holding:
        return SAME
    planted = "planted " if row.cell.target == "planted names" else ""
    chance = "" if finding.chance is None else f" ({bare(finding.chance, 'share')})"
    return f"{planted}{bare(finding.value, 'share')}{chance}"


def _membership(release: MeasuredRelease) -> ComparisonCell:
    row = adversary_table(release.findings).get(Cell("recipient", "membership"))
    if row is None or row.finding.value is None:
        return ComparisonCell(NONE, "" if row is None else row.finding.why)
    auc = row.finding
    ends = "" if auc.low is None or auc.high is None else f", {auc.low:.2f} to {auc.high:.2f}"
    return ComparisonCell(f"{auc.value:.2f} ({auc.chance:.1f}{ends})")


def _copied(release: MeasuredRelease) -> ComparisonCell:
    found = [finding for finding in release.findings if target_of(finding) in COPIES]
    top = max(
        found, key=lambda finding: -1.0 if finding.value is None else finding.value, default=None
    )
    if top is None or top.value is None:
        return ComparisonCell(NONE, "" if top is None else top.why)
    control = "" if top.control is None else f" ({bare(top.control, 'share')})"
    return ComparisonCell(bare(top.value, "share") + control)


def _lead(comparison: Comparison) -> str:
    how = comparison.settings
    lines = [
        f"{comparison.n_notes:,} notes of {comparison.n_patients:,} patients, label {how.label}."
    ]
    for model in how.model:
        found = (
            utility_of(measured, "utility.transfer", model) for measured in comparison.releases
        )
        scores = next((f.scores for f in found if f is not None and f.scores is not None), None)
        if scores is not None:
            lines.append(
                f"Classifier {model}: macro-F1 {scores.ceiling:.3f} on real notes (the ceiling),"
                f" {scores.floor:.3f} on words drawn at random per label (the floor)."
            )
    return " ".join(lines)


def write_outputs(comparison: Comparison) -> ComparisonTable:
    """Write `table.md`, `findings.json` and `compare.html`; return the table."""
    out = comparison.folder
    table = table_of(comparison)
    private_text(out / TABLE, table.markdown())
    write_findings(out / FINDINGS, "compare", _findings(comparison), seed=comparison.settings.seed)
    private_text(out / PAGE, _page(comparison, table))
    return table


def _findings(comparison: Comparison) -> Iterator[Finding]:
    """Yield every finding, with the name and the kind of its release, and the other numbers of the
    table.
    """
    for measured in comparison.releases:
        findings = list(measured.findings)
        n_gates = sum(measured.gates.values())
        if measured.why:
            findings.append(Finding("compare.release", None, 0, None, why=measured.why))
        else:
            findings.append(
                Finding(
                    "compare.distinct_words",
                    measured.distinct,
                    measured.distinct,
                    None,
                    unit="words",
                )
            )
            findings.append(
                Finding("compare.seconds", measured.seconds, 1, "lower", unit="seconds")
            )
        for outcome, count in measured.gates.items():
            gates = Finding(
                "compare.gates",
                count,
                n_gates,
                None,
                unit="gates",
                count=count,
                labels=(outcome,),
            )
            findings.append(gates)
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
        choose=CHOOSE,
        failed=[
            (measured.name, ", ".join(measured.failed))
            for measured in comparison.releases
            if measured.failed
        ],
        version=version("clinveil"),
    )
