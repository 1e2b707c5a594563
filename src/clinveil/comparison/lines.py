"""The lines of a comparison: what is measured of each release, with its meaning and its cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, cast

from clinveil.attacks import AdversaryRow, Holding, Target, above_chance, adversary_table, target_of
from clinveil.comparison.measured import Comparison, MeasuredRelease
from clinveil.core import Cell, Finding
from clinveil.report import NONE, SPACE, bare

Group = Literal["use", "risk", "more"]
TEN_WORDS: tuple[Target, ...] = ("note by ten words",)
NAMES: tuple[Target, ...] = ("names", "planted names")
OWN: tuple[Target, ...] = ("own identifiers",)
COPIES: tuple[Target, ...] = ("copies",)
PUBLIC: tuple[Target, ...] = ("note by public knowledge",)
NO_PATIENTS = "no list of patients was given (--patients)"
OF_WRITTEN = "does not apply: another gate searches written notes for the names on the patient list"
NOT_MEASURED = "these notes give this attacker or this task no case"


class ComparisonCell(NamedTuple):
    """A cell: its text, the reason where it has no number, how far a risk is above chance, and the
    text without intervals, if it has any.
    """

    text: str
    why: str = ""
    above: float = -2.0
    short: str = ""


@dataclass(frozen=True)
class Line:
    """A line of the comparison.

    Attributes:
        group: what it belongs to. label: its heading. meaning: a sentence.
        cell: makes the cell of a release.
    """

    group: Group
    label: str
    meaning: str
    cell: Callable[[MeasuredRelease], ComparisonCell]


def lines_of(comparison: Comparison) -> Iterator[Line]:
    """Yield the lines of a comparison, in order."""
    yield from _use_lines(comparison)
    yield from _risk_lines(comparison)
    yield from _more_lines()


def utility_of(release: MeasuredRelease, measure: str, model: str = "") -> Finding | None:
    """Return the finding of a utility task, of one classifier where it has several."""
    found = (f for f in release.findings if f.measure == measure)
    return next((f for f in found if not model or model in f.labels or f.scores is None), None)


def _use_lines(comparison: Comparison) -> Iterator[Line]:
    for model in comparison.models:
        which = f" {model}" if len(comparison.models) > 1 else ""
        yield Line(
            "use",
            f"classifier{which}",
            f"macro-F1 of a classifier ({model}) trained on the release and tested on real notes,"
            " in % of one trained on real notes; floor: trained on words drawn at random per label",
            partial(_of_real, model=model),
        )
    gap = "0 is the floor without word order, 100 is as good as real notes"
    yield Line(
        "use",
        "word order",
        f"finding negated words in real sentences, which needs word order; {gap}",
        partial(_of_gap, measure="utility.sequence"),
    )
    yield Line(
        "use",
        "next word",
        f"prediction of the next word of real notes; {gap}",
        partial(_of_gap, measure="utility.language_model"),
    )
    if comparison.with_pairs:
        yield Line(
            "use",
            "word vectors",
            "word vectors trained on the release, by their correlation with human scores, in % of"
            " vectors of the real notes",
            partial(_of_gap, measure="utility.vectors"),
        )


def _risk_lines(comparison: Comparison) -> Iterator[Line]:
    with_vectors = "the same by a recipient who also trained word vectors on similar text"
    found = Block((("recipient", TEN_WORDS), ("shadow", TEN_WORDS)))
    meaning = "notes found from ten words in a row, by a recipient"
    yield found.line("risk", "notes found from ten words", meaning, 0)
    yield found.line("risk", "notes found, own vectors", with_vectors, 1)
    if comparison.with_known:
        public = Block((("recipient", PUBLIC), ("shadow", PUBLIC)))
        meaning = "patients found from the public texts, by a recipient"
        yield public.line("risk", "patients found from public text", meaning, 0)
        yield public.line("risk", "public text, own vectors", with_vectors, 1)
    names = Block((("recipient", NAMES), ("shadow", NAMES), ("pairs-20", NAMES)))
    meaning = (
        "names of patients or, where this shows more, names planted for the test, recovered by a"
        " recipient"
    )
    yield names.line("risk", "names recovered", meaning, 0)
    yield names.line("risk", "names, own vectors", with_vectors, 1)
    meaning = "names recovered by a recipient with 20 notes in both forms"
    yield names.line("risk", "names, 20 known notes", meaning, 2)
    yield Line(
        "risk",
        "own identifiers left",
        "patients' own identifiers left in their notes",
        partial(_own, listed=comparison.with_patients),
    )
    if any(measured.kind == "synthetic" for measured in comparison.releases):
        meaning = (
            "patients of whom a passage of their own appears in the synthetic notes; the control is"
            " patients whom the model never read"
        )
        yield Line("risk", "patients with a copied passage", meaning, _copied)
        meaning = (
            "how well a recipient tells training patients from others, from the synthetic notes"
            " alone (area under the curve)"
        )
        yield Line("risk", "membership", meaning, _membership)


def _more_lines() -> Iterator[Line]:
    meaning = "names recovered by a recipient with 200 notes in both forms"
    yield Block((("pairs-200", NAMES),)).line("more", "names, 200 known notes", meaning, 0)
    meaning = "the same by an attacker with the vault's word vectors: an upper bound"
    for label, targets in (("notes, stolen vectors", TEN_WORDS), ("names, stolen vectors", NAMES)):
        yield Block((("stolen-vectors", targets),)).line("more", label, meaning, 0)


def _of_real(release: MeasuredRelease, model: str) -> ComparisonCell:
    finding = utility_of(release, "utility.transfer", model)
    if finding is None:
        return ComparisonCell(NONE, NOT_MEASURED)
    scores = finding.scores
    if finding.value is None or scores is None or scores.of_ceiling is None:
        return ComparisonCell(NONE, finding.why or NOT_MEASURED)
    ends = (scores.of_ceiling_low, scores.of_ceiling_high)
    floor = ""
    if scores.floor is not None and scores.ceiling:
        floor = f"floor {100 * scores.floor / scores.ceiling:.0f}{SPACE}%"
    return ComparisonCell(
        _interval(scores.of_ceiling, *ends, also=floor),
        short=_interval(scores.of_ceiling, None, None, also=floor),
    )


def _of_gap(release: MeasuredRelease, measure: str) -> ComparisonCell:
    finding = utility_of(release, measure)
    if finding is None or finding.value is None:
        return ComparisonCell(NONE, (finding.why if finding else "") or NOT_MEASURED)
    return ComparisonCell(
        _interval(finding.value, finding.low, finding.high),
        short=_interval(finding.value, None, None),
    )


def _interval(value: float, low: float | None, high: float | None, also: str = "") -> str:
    ends = "" if low is None or high is None else f"{100 * low:.0f} to {100 * high:.0f}"
    brackets = "; ".join(filter(None, (ends, also)))
    text = f"{100 * value:.0f}{SPACE}%" + (f" ({brackets})" if brackets else "")
    return text.replace("-", "−")


@dataclass(frozen=True)
class Block:
    """Adversaries who attack the same targets; each line shows one of them.

    Attributes:
        cells: what each adversary holds, and the targets of which one is shown for all of them.
    """

    cells: Sequence[tuple[Holding, Sequence[Target]]]

    def line(self, group: Group, label: str, meaning: str, index: int) -> Line:
        """Return the line of one of the adversaries."""
        return Line(group, label, meaning, partial(self._cell, index=index))

    def _cell(self, release: MeasuredRelease, index: int) -> ComparisonCell:
        table = adversary_table(release.findings)
        holding, _ = self.cells[index]
        target = self._strongest_target(table)
        no_vectors = table.get(Cell("stolen-vectors", "words"))
        if holding == "stolen-vectors" and no_vectors and no_vectors.finding.value is None:
            return ComparisonCell(NONE, no_vectors.finding.why or NOT_MEASURED)
        targets = (target, *self.cells[index][1])
        rows = (table.get(Cell(who, one)) for who in (holding, "recipient") for one in targets)
        row = next((row for row in rows if row is not None), None)
        if row is None or row.finding.value is None:
            return ComparisonCell(NONE, (row.finding.why if row else "") or NOT_MEASURED)
        return _risk(row)

    def _strongest_target(self, table: Mapping[Cell, AdversaryRow]) -> Target:
        """Return the target on which the adversaries are furthest above chance: one for all of
        them.
        """
        tried = [
            table[Cell(holding, target)]
            for holding, targets in self.cells
            for target in targets
            if Cell(holding, target) in table
        ]
        top = max(tried, key=lambda row: above_chance(row.finding), default=None)
        return self.cells[0][1][0] if top is None else cast(Target, top.cell.target)


def _risk(row: AdversaryRow) -> ComparisonCell:
    """Return success and chance."""
    finding = row.finding
    assert finding.value is not None
    planted = "planted " if row.cell.target == "planted names" else ""
    chance = "no chance level"
    if finding.chance is not None:
        chance = f"chance {bare(finding.chance, 'share')}{SPACE}%"
    text = f"{planted}{bare(finding.value, 'share')}{SPACE}% ({chance})"
    return ComparisonCell(text, above=above_chance(finding))


def _own(release: MeasuredRelease, *, listed: bool) -> ComparisonCell:
    row = adversary_table(release.findings).get(Cell("recipient", "own identifiers"))
    if row is None or row.finding.value is None:
        why = row.finding.why if row else ""
        if not why and release.kind == "synthetic" and listed:
            why = OF_WRITTEN
        return ComparisonCell(NONE, why or (NOT_MEASURED if listed else NO_PATIENTS))
    finding = row.finding
    assert finding.value is not None
    return ComparisonCell(
        f"{bare(finding.value, 'share')}{SPACE}% (chance 0{SPACE}%)", above=finding.value
    )


def _membership(release: MeasuredRelease) -> ComparisonCell:
    row = adversary_table(release.findings).get(Cell("recipient", "membership"))
    if row is None or row.finding.value is None:
        return ComparisonCell(NONE, (row.finding.why if row else "") or NOT_MEASURED)
    auc = row.finding
    assert auc.value is not None
    ends = "" if auc.low is None or auc.high is None else f"{auc.low:.2f} to {auc.high:.2f}, "
    chance = 0.5 if auc.chance is None else auc.chance
    text = f"{auc.value:.2f} ({ends}chance {chance:.2f})"
    short = f"{auc.value:.2f} (chance {chance:.2f})"
    return ComparisonCell(text, above=2 * (auc.value - chance), short=short)


def _copied(release: MeasuredRelease) -> ComparisonCell:
    found = [finding for finding in release.findings if target_of(finding) in COPIES]
    top = max(
        found, key=lambda finding: -1.0 if finding.value is None else finding.value, default=None
    )
    if top is None or top.value is None:
        return ComparisonCell(NONE, (top.why if top else "") or NOT_MEASURED)
    control = (
        "no control" if top.control is None else f"control {bare(top.control, 'share')}{SPACE}%"
    )
    text = f"{bare(top.value, 'share')}{SPACE}% ({control})"
    return ComparisonCell(text, above=top.value - (top.control or 0.0))
