"""Findings from the annotated sample, and the confidential report as Markdown, which contains no text of notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinveil.core.finding import Detail, Finding
from clinveil.phi.validation.design import KINDS, METHOD, Annotated, recall
from clinveil.phi.validation.sheet import UNSURE, Design, annotated
from clinveil.stats import clopper_pearson, sum_of_intervals

SOURCE = "stratified random sample with known inclusion probabilities (Horvitz & Thompson 1952)"
EACH, SUMMED = "Clopper-Pearson, 95 %", "Clopper-Pearson by stratum, then MOVER, 95 %"
WORST, BEST = (0, 1), (1, 0)  # values of an unsure mark for a detected and an undetected location


def marked_findings(design: Design, marks: Mapping[str, int]) -> list[Finding]:
    """Return recall and precision with their intervals, and the share of locations with identifiers per stratum.

    Unsure marks count against the engine in the value and the lower end, and for it in the upper end. Raises InputError
    if a stratum has no marks.
    """
    worst, best = (annotated(design, marks, unsure=unsure) for unsure in (WORST, BEST))
    about = {"marked": len(marks), "unsure": sum(mark == UNSURE for mark in marks.values())}
    return [_recall(worst, best, about), _precision(worst, best, about), *_strata(worst)]


def _recall(worst: Mapping[str, Annotated], best: Mapping[str, Annotated], about: Mapping[str, int]) -> Finding:
    low, high = recall([*worst.values()]), recall([*best.values()])
    if low is None or high is None:
        why = "no detected location was marked as an identifier"
        return Finding("validate.recall", None, 0, "higher", detail={**about, "why": why})
    detail = {**about, "found": low.found, "missed": low.missed}
    fields: dict[str, Any] = {"unit": "places", "method": METHOD, "source": SOURCE, "detail": detail}
    return Finding("validate.recall", low.value, about["marked"], "higher", low.low, high.high, **fields)


def _precision(worst: Mapping[str, Annotated], best: Mapping[str, Annotated], about: Mapping[str, int]) -> Finding:
    locations = sum(stratum.size for stratum in worst.values() if stratum.found)
    looked = sum(stratum.looked for stratum in worst.values() if stratum.found)
    if not looked:
        return Finding("validate.precision", None, 0, "higher", detail={**about, "why": "the engine detected nothing"})
    (value, low, _), (_, _, high) = _share(worst, locations), _share(best, locations)
    fields: dict[str, Any] = {"unit": "places", "method": SUMMED, "source": SOURCE}
    return Finding("validate.precision", value, looked, "higher", low, high, detail=about, **fields)


def _share(strata: Mapping[str, Annotated], locations: int) -> tuple[float, float, float]:
    found = [stratum for stratum in strata.values() if stratum.found and stratum.size]
    values = [stratum.size / locations * len(stratum.hits) / stratum.looked for stratum in found]
    ends = [[s.size / locations * end for end in clopper_pearson(len(s.hits), s.looked)] for s in found]
    low, high = sum_of_intervals(values, ends)
    return sum(values), max(low, 0.0), min(high, 1.0)


def _strata(strata: Mapping[str, Annotated]) -> Iterator[Finding]:
    """Yield, per stratum, the share of marked locations that contain an identifier."""
    fields: dict[str, Any] = {"unit": "places", "method": EACH, "source": SOURCE}
    for name, stratum in strata.items():
        if not stratum.size:
            continue
        hits, looked = len(stratum.hits), stratum.looked
        detail: Detail = {"stratum": KINDS[name].description, "places": stratum.size, "identifiers": sum(stratum.hits)}
        ends = clopper_pearson(hits, looked)
        yield Finding("validate.places", hits / looked, looked, None, *ends, count=hits, detail=detail, **fields)


_SECTIONS = {
    "validate.recall": (
        "Recall, from the annotated sample",
        "The share of identifiers in these notes that the engine detects. The undetected rest of a partly detected"
        " identifier counts as missed. The interval refers to these notes and uses no model.",
    ),
    "validate.precision": (
        "Precision, from the annotated sample",
        "The share of detected spans that are identifiers.",
    ),
    "validate.places": (
        "Share of identifiers in the sample, by stratum",
        "The share of locations in a stratum that contain an identifier.",
    ),
    "validate.known_patients": (
        "Known patients whose own name was missed at least once",
        "Own names of the patients in the feed, with the engine run without (or with) the feed. Patients whose notes do"
        " not name them are excluded. Chance: another patient's name in the same notes.",
    ),
    "validate.known_mentions": ("Missed mentions of known patients' own names", "As above, per mention."),
}
_HEAD = "# Detection recall on these notes\n"
_NEXT = """
## What to do next

Open spots.html in a browser and annotate the sample, or fill in the column `mark` of spots.csv. Then run
`clinveil validate --marked MARKS OUT`. Do not share this folder: spots.html and spots.csv contain note text.
"""


def report(findings: Sequence[Finding]) -> str:
    """Return the report as Markdown."""
    lines = [_HEAD]
    for measure, (head, meaning) in _SECTIONS.items():
        if rows := [_row(finding) for finding in findings if finding.measure == measure]:
            lines += [f"## {head}", "", meaning, ""]
            lines += ["| subject | value | 95 % | chance | n |", "| --- | ---: | --- | ---: | ---: |", *rows, ""]
    return "\n".join(lines) + _NEXT


def _row(finding: Finding) -> str:
    subject = ", ".join(
        str(finding.detail[key]) for key in ("setting", "label", "series", "stratum") if key in finding.detail
    )
    if finding.value is None:
        return f"| {subject} | not measured: {finding.detail['why']} | | | |"
    ends = "" if finding.low is None or finding.high is None else f"{finding.low:.4f} to {finding.high:.4f}"
    chance = "" if finding.chance is None else f"{finding.chance:.4f}"
    return f"| {subject} | {finding.value:.4f} | {ends} | {chance} | {finding.n:,} {finding.unit} |"
