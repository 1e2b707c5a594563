"""The confidential report of a validation as Markdown. It contains numbers only, no text of notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinveil.core.finding import Finding

_HEADS = {
    "validate.recall": "Recall, from the annotated sample",
    "validate.precision": "Precision, from the annotated sample",
    "validate.places": "Share of identifiers in the sample, by stratum",
    "validate.known_patients": "Known patients whose own name was missed at least once",
    "validate.known_mentions": "Missed mentions of known patients' own names",
    "validate.canaries": "Canaries that survive",
    "validate.missed_by_both": "Identifiers missed by two detectors",
}
_MEANING = {
    "validate.recall": "The share of identifiers in these notes that the engine detects. The undetected rest of a"
    " partly detected identifier counts as missed. The interval refers to these notes and uses no model.",
    "validate.precision": "The share of detected spans that are identifiers.",
    "validate.places": "The share of locations in a stratum that contain an identifier.",
    "validate.known_patients": "Own names of the patients in the feed, with the engine run without (or with) the feed."
    " Patients whose notes do not name them are excluded. Chance: another patient's name in the same notes.",
    "validate.known_mentions": "As above, per mention.",
    "validate.canaries": "Generated identifiers where the engine had detected one (`found`), and where the notes"
    " mention a person or a day without one (`role`). The engine detects something at all locations of the first"
    " setting, so the true survival is higher. Those of the second have no title or field as context.",
    "validate.missed_by_both": "At odds ratio 1, the two detectors miss independently, which gives a lower bound. At a"
    " higher ratio, their misses are correlated. The true ratio is unknown; recall from the annotated sample does"
    " not depend on it.",
}
NEXT = """
## What to do next

Open spots.html in a browser and annotate the sample, or fill in the column `mark` of spots.csv. Then run
`clinveil validate --marked MARKS OUT`. Do not share this folder: spots.html and spots.csv contain note text.
"""


def report(findings: Sequence[Finding]) -> str:
    """Return the report as Markdown."""
    return "\n".join(["# Detection recall on these notes", "", *_lines(findings)]) + NEXT


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    for measure, head in _HEADS.items():
        rows = [finding for finding in findings if finding.measure == measure]
        if not rows:
            continue
        yield from (f"## {head}", "", _MEANING[measure], "")
        yield from ("| subject | value | 95 % | chance | n |", "| --- | ---: | --- | ---: | ---: |")
        yield from map(_row, rows)
        yield ""


def _row(finding: Finding) -> str:
    subject = ", ".join(
        str(finding.detail[key]) for key in ("setting", "label", "series", "stratum") if key in finding.detail
    )
    if finding.value is None:
        return f"| {subject} | not measured: {finding.detail['why']} | | | |"
    ends = "" if finding.low is None or finding.high is None else f"{finding.low:.4f} to {finding.high:.4f}"
    chance = "" if finding.chance is None else f"{finding.chance:.4f}"
    return f"| {subject} | {finding.value:.4f} | {ends} | {chance} | {finding.n:,} {finding.unit} |"
