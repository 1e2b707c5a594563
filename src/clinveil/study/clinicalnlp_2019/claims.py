"""Claims of paper C, compared with the findings of the study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE, decimals
from clinveil.study.clinicalnlp_2019.settings import REAL, SAME, UNIGRAM, label_of
from clinveil.study.engine import Results
from clinveil.study.tables import Spec, Table, shown

ENOUGH = 6  # patients or notes that a verdict requires
HOLDS, NOT, OPEN, UNMEASURED = "holds", "does not hold", "undecided", "not measured"
NO_POWER = "the task has no power here: real notes do not exceed the majority guess"


def claims_table(results: Results, spec: Spec) -> Table:
    """Return a table with one row per claim: the paper's numbers, the findings, and the verdict by intervals."""
    rows = [(claim, printed, here, verdict) for (claim, printed), here, verdict in _claims(results, spec.paper)]
    return spec.table(rows, enough=ENOUGH, verdicts=len(rows))


def lists_of(results: Results) -> list[str]:
    """Return the names of the word-pair lists."""
    return sorted({str(finding.detail["list"]) for finding in results.all("utility.similarity")})


def without_power(real: Finding) -> bool:
    """Return whether a task does not distinguish real notes from guessing, so its results are not informative."""
    return real.low is None or (real.chance is not None and real.low <= real.chance)


Claim = tuple[Sequence[str], str, str]  # the paper's text and numbers; the findings; the verdict


def _claims(results: Results, paper: Mapping[str, Sequence[str]]) -> Iterator[Claim]:
    """Yield the claims; `first` is the model with the lowest dropout and `last` the one with the highest."""
    labels = [label_of(dropout) for dropout in results.settings.dropout]
    first, last = labels[0], labels[-1]

    def two(measure: str, one: str, other: str, digits: int = 3, **detail: str) -> tuple[str, str]:
        """Return findings and verdict of a claim that the first value is below the second."""
        ours = {label: results.of(measure, corpus=label, **detail) for label in (one, other)}
        text = "; ".join(f"{label}: {shown(finding, digits)}" for label, finding in ours.items())
        return text, below(ours[one], ours[other])

    def fallen(corpus: str, how: str, **detail: str) -> tuple[str, str]:
        """Return finding and verdict of a claim that a score is lower, paired by patient."""
        finding = results.of("attack.pdtp_fall", corpus=corpus, **detail)
        return NONE if finding is None else how.format(shown(finding, 2)), above_zero(finding)

    predicted = {"of": "valid", "by": "the model"}
    best = _least(results, "utility.perplexity", labels, predicted)
    yield (paper["predicts"], *two("utility.perplexity", best, UNIGRAM, 1, **predicted))
    for mode, of in (("compat", "score"), ("exact", "score"), ("exact", "effect")):
        yield (paper[f"fall-{mode}-{of}"], *fallen(last, "falls by {}", mode=mode, of=of))
    for name in lists_of(results):
        claim, printed = paper["relatedness" if "rel" in name else "similarity"]
        yield ((claim.format(list=name), printed), *two("utility.similarity", first, last, list=name))
    text, verdict = two("utility.nli", first, last, series="vectors")
    real = results.of("utility.nli", corpus=REAL, series="vectors")
    powerless = real is not None and without_power(real)
    yield paper["inference"], text, f"{NO_POWER} ({decimals(real.chance)})" if real and powerless else verdict
    yield (paper["useful"], *two("utility.casing", UNIGRAM, first, series="model"))
    safest = _least(results, "attack.pdtp", labels, {"mode": "exact", "from": "the model"})
    for of in ("score", "effect"):
        how = f"lower by {{}} than {safest}, the same patients"
        yield (paper[f"safest-{of}"], *fallen(SAME, how, against=safest, of=of))
    yield (paper["real"], *two("utility.casing", first, REAL, series="model"))


def _least(results: Results, measure: str, labels: Sequence[str], detail: Mapping[str, str]) -> str:
    """Return the model with the lowest value, or the first one if nothing was measured."""
    findings = {label: results.of(measure, corpus=label, **detail) for label in labels}
    values = {label: f.value for label, f in findings.items() if f is not None and f.value is not None}
    return min(values, key=lambda label: values[label]) if values else labels[0]


def below(one: Finding | None, other: Finding | None) -> str:
    """Return whether the first finding is below the second, by intervals that do not overlap."""
    if one is None or other is None or None in (one.low, one.high, other.low, other.high):
        return UNMEASURED
    assert one.low is not None and one.high is not None and other.low is not None and other.high is not None
    if min(one.n, other.n) < ENOUGH:
        return OPEN
    return HOLDS if one.high < other.low else NOT if one.low > other.high else OPEN


def above_zero(finding: Finding | None) -> str:
    """Return whether a difference is above 0, by its interval."""
    if finding is None or finding.low is None or finding.high is None:
        return UNMEASURED
    if finding.n < ENOUGH:
        return OPEN
    return HOLDS if finding.low > 0 else NOT if finding.high < 0 else OPEN
