"""The private report of a validation: what was measured, in words. It holds numbers only, no text of notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinveil.core.finding import Finding

_HEADS = {
    "validate.recall": "Recall, from the places that were looked at",
    "validate.precision": "Precision, from the places that were looked at",
    "validate.places": "What the places held, by kind",
    "validate.known_patients": "Known patients of whose own name something is left",
    "validate.known_mentions": "Mentions of known patients' own names that are left",
    "validate.canaries": "Canaries that survive",
    "validate.missed_by_both": "Identifiers that two detectors both missed",
}
_MEANING = {
    "validate.recall": "The share of identifiers in these notes that the engine finds, in pieces: what is left of one"
    " that was found in part counts as missed. The interval is about these notes; no model stands behind it.",
    "validate.precision": "The share of what the engine found that is an identifier.",
    "validate.places": "The share of places of a kind that hold an identifier.",
    "validate.known_patients": "The feed is truth that the engine was not given (or was). Patients whose notes do not"
    " name them are left out. Chance: another patient's name in the same notes.",
    "validate.known_mentions": "As above, by mention.",
    "validate.canaries": "Invented identifiers in places where the engine had found one (`found`), and where the notes"
    " speak of a person or a day without one (`role`). Places of the first sort are such that the engine finds"
    " something, so the true survival is higher; those of the second have no title and no field around them.",
    "validate.missed_by_both": "As if the two detectors missed independently of one another (odds ratio 1): a lower"
    " bound. With a higher odds ratio, what one misses the other misses more often too. Which ratio is true is not"
    " known; the marks of the places tell recall without it.",
}
NEXT = """
## What to do next

Open spots.html in a browser and mark the places, or fill the column `mark` of spots.csv; then
`clinveil validate --marked MARKS OUT`. Nothing in this folder may leave: spots.html and spots.csv hold note text.
"""


def report(findings: Sequence[Finding]) -> str:
    """The report as Markdown."""
    return "\n".join(["# What is known of recall on these notes", "", *_lines(findings)]) + NEXT


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    for measure, head in _HEADS.items():
        mine = [finding for finding in findings if finding.measure == measure]
        if not mine:
            continue
        yield from (f"## {head}", "", _MEANING[measure], "")
        yield from ("| of | value | 95 % | chance | n |", "| --- | ---: | --- | ---: | ---: |")
        yield from map(_row, mine)
        yield ""


def _row(finding: Finding) -> str:
    of = ", ".join(
        str(finding.detail[key]) for key in ("setting", "label", "series", "stratum") if key in finding.detail
    )
    if finding.value is None:
        return f"| {of} | not measured: {finding.detail['why']} | | | |"
    ends = "" if finding.low is None or finding.high is None else f"{finding.low:.4f} to {finding.high:.4f}"
    chance = "" if finding.chance is None else f"{finding.chance:.4f}"
    return f"| {of} | {finding.value:.4f} | {ends} | {chance} | {finding.n:,} {finding.unit} |"
