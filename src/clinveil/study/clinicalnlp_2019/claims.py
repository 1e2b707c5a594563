"""What paper C says, held against what was found here: each with the numbers that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE, decimals
from clinveil.study.clinicalnlp_2019.settings import REAL, SAME, UNIGRAM, label_of
from clinveil.study.engine import Results
from clinveil.study.tables import Spec, Table, shown

ENOUGH = 6  # units; fewer say little of how much patients differ
HOLDS, NOT, OPEN, UNMEASURED = "holds", "does not hold", "cannot be told", "not measured"
NO_POWER = "the task has no power here: real notes do not beat the majority guess"


def claims_table(results: Results, spec: Spec) -> Table:
    """One row a claim: the paper's numbers, ours, and the verdict by intervals."""
    rows = [(says, printed, here, verdict) for (says, printed), here, verdict in _claims(results, spec.paper)]
    return spec.table(rows, enough=ENOUGH, verdicts=len(rows))


def lists_of(results: Results) -> list[str]:
    """The word-pair lists."""
    return sorted({str(finding.detail["list"]) for finding in results.all("utility.similarity")})


def without_power(real: Finding) -> bool:
    """Whether a task cannot tell real notes from guessing, so that its figures tell nothing of others."""
    return real.low is None or (real.chance is not None and real.low <= real.chance)


Claim = tuple[Sequence[str], str, str]  # the paper's words and numbers; ours; the verdict


def _claims(results: Results, paper: Mapping[str, Sequence[str]]) -> Iterator[Claim]:
    """Each claim's figures are named by their model; `first` has the least dropout, `last` the most."""
    labels = [label_of(dropout) for dropout in results.settings.dropout]
    first, last = labels[0], labels[-1]

    def two(measure: str, one: str, other: str, digits: int = 3, **detail: str) -> tuple[str, str]:
        """A claim that the first of two is below the second."""
        ours = {label: results.of(measure, corpus=label, **detail) for label in (one, other)}
        said = "; ".join(f"{label}: {shown(finding, digits)}" for label, finding in ours.items())
        return said, below(ours[one], ours[other])

    def fallen(corpus: str, how: str, **detail: str) -> tuple[str, str]:
        """A claim that a score is lower, patient by patient."""
        finding = results.of("attack.pdtp_fall", corpus=corpus, **detail)
        return NONE if finding is None else how.format(shown(finding, 2)), above_zero(finding)

    predicted = {"of": "valid", "by": "the model"}
    best = _least(results, "utility.perplexity", labels, predicted)
    yield (paper["predicts"], *two("utility.perplexity", best, UNIGRAM, 1, **predicted))
    for mode, of in (("compat", "score"), ("exact", "score"), ("exact", "effect")):
        yield (paper[f"fall-{mode}-{of}"], *fallen(last, "falls by {}", mode=mode, of=of))
    for name in lists_of(results):
        says, printed = paper["relatedness" if "rel" in name else "similarity"]
        yield ((says.format(list=name), printed), *two("utility.similarity", first, last, list=name))
    said, verdict = two("utility.nli", first, last, series="vectors")
    real = results.of("utility.nli", corpus=REAL, series="vectors")
    powerless = real is not None and without_power(real)
    yield paper["inference"], said, f"{NO_POWER} ({decimals(real.chance)})" if real and powerless else verdict
    yield (paper["useful"], *two("utility.casing", UNIGRAM, first, series="model"))
    safest = _least(results, "attack.pdtp", labels, {"mode": "exact", "from": "the model"})
    for of in ("score", "effect"):
        how = f"lower by {{}} than {safest}, the same patients"
        yield (paper[f"safest-{of}"], *fallen(SAME, how, against=safest, of=of))
    yield (paper["real"], *two("utility.casing", first, REAL, series="model"))


def _least(results: Results, measure: str, labels: Sequence[str], detail: Mapping[str, str]) -> str:
    """The model with the lowest value; the first where nothing was measured."""
    found = {label: results.of(measure, corpus=label, **detail) for label in labels}
    values = {label: f.value for label, f in found.items() if f is not None and f.value is not None}
    return min(values, key=lambda label: values[label]) if values else labels[0]


def below(one: Finding | None, other: Finding | None) -> str:
    """Whether the first is below the second, by intervals that do not meet."""
    if one is None or other is None or None in (one.low, one.high, other.low, other.high):
        return UNMEASURED
    assert one.low is not None and one.high is not None and other.low is not None and other.high is not None
    if min(one.n, other.n) < ENOUGH:
        return OPEN
    return HOLDS if one.high < other.low else NOT if one.low > other.high else OPEN


def above_zero(finding: Finding | None) -> str:
    """Whether a difference is above 0, by its interval."""
    if finding is None or finding.low is None or finding.high is None:
        return UNMEASURED
    if finding.n < ENOUGH:
        return OPEN
    return HOLDS if finding.low > 0 else NOT if finding.high < 0 else OPEN
