"""What paper C says, held against what was found here: each with the numbers that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clinveil.core.finding import Finding
from clinveil.study.clinicalnlp_2019.corpora import REAL, UNIGRAM
from clinveil.study.clinicalnlp_2019.plan import label_of
from clinveil.study.clinicalnlp_2019.results import SAME, Results
from clinveil.study.plain import NONE, Row, Table, interval, number

FALL = "11.7 to 9.6 at 0.5 (11.8 at 0.3)"
ENOUGH = 6  # units; fewer say little of how much patients differ
HOLDS, NOT, OPEN = "holds", "does not hold", "cannot be told"
NO_POWER = "the task has no power here: real notes do not beat the majority guess"


def claims_table(results: Results) -> Table:
    """One row a claim: the paper's numbers, ours, and the verdict by intervals."""
    rows = tuple(_rows(results))
    remarks = (
        "A claim about a difference holds or does not hold where the interval of the difference leaves out 0, or where "
        f"two intervals do not meet; otherwise, and with fewer than {ENOUGH} patients or notes, it cannot be told. "
        "Privacy scores are compared patient by patient, the unigram's too.",
        f"These are {len(rows)} verdicts at 95 % each, without a correction for their number: where nothing differs, "
        "one in 20 is still decided, half of those in the paper's favour.",
    )
    heads = ("the paper says", "its numbers", "here", "verdict")
    return Table("claims", "What holds here", "Do the paper's findings hold on these notes?", heads, rows, remarks)


def _rows(results: Results) -> Iterator[Row]:
    """Each claim's figures are named by their model; `first` has the least dropout, `last` the most."""
    labels = [label_of(dropout) for dropout in results.settings.dropout]
    first, last = labels[0], labels[-1]
    found = {label: results.of("utility.perplexity", label, of="valid", by="the model") for label in (*labels, UNIGRAM)}
    best = _least(found, labels)
    claim = "the LSTM predicts far better than the unigram (perplexity, validation notes)"
    yield _row(claim, "12.5 / 702.4", {best: found[best], UNIGRAM: found[UNIGRAM]}, 1)
    yield from _dropout_rows(results, last)
    lists = sorted({str(f.detail["list"]) for f in results.findings if f.measure == "utility.similarity"})
    for name in lists:
        theirs = ".125 / .160" if "rel" in name else ".227 / .259"
        pair = {label: results.of("utility.similarity", label, list=name) for label in (first, last)}
        yield _row(f"{name} is better with dropout 0.5 than with 0", theirs, pair, 3)
    pair = {label: results.of("utility.nli", label, series="vectors") for label in (first, last)}
    row = _row("inference rises with dropout", ".678 / .692", pair, 3)
    real = results.of("utility.nli", REAL, series="vectors")
    yield (*row[:-1], f"{NO_POWER} ({number(real.chance)})") if real and without_power(real) else row
    cased = {label: results.of("utility.casing", label, series="model") for label in (UNIGRAM, first, REAL)}
    pair = {label: cased[label] for label in (UNIGRAM, first)}
    yield _row("the unigram is the least useful (letter case)", ".488 / .895", pair, 3)
    safest = _least({label: _score(results, label) for label in labels}, labels)
    for of, claim, theirs in (
        ("score", "the unigram is the safest", "0.9 / 6.6"),
        ("effect", "and so it is by what a patient adds at one word", "not measured"),
    ):
        fall = results.of("attack.pdtp_fall", SAME, against=safest, of=of)
        yield (claim, theirs, _said(fall, f"than {safest}, the same patients", "lower"), _positive(fall))
    pair = {label: cased[label] for label in (first, REAL)}
    yield _row("real notes are more useful (letter case)", ".895 / .910", pair, 3)


def without_power(real: Finding) -> bool:
    """Whether a task cannot tell real notes from guessing, so that its figures tell nothing of others."""
    return real.low is None or (real.chance is not None and real.low <= real.chance)


def _dropout_rows(results: Results, last: str) -> Iterator[Row]:
    """The fall from the least dropout to the most, patient by patient."""
    asked = (
        ("compat", "score", "dropout lowers the privacy score (its code)", FALL),
        ("exact", "score", "dropout lowers the privacy score (all else fixed)", FALL),
        ("exact", "effect", "and so it does with what a patient adds at one word", "not measured"),
    )
    for mode, of, claim, theirs in asked:
        fall = results.of("attack.pdtp_fall", last, mode=mode, of=of)
        yield (claim, theirs, _said(fall, "", "falls"), _positive(fall))


def _said(fall: Finding | None, than: str, how: str) -> str:
    return NONE if fall is None else f"{how} by {interval(fall.value, fall.low, fall.high, 2)} {than}".rstrip()


def _score(results: Results, label: str) -> Finding | None:
    return results.of("attack.pdtp", label, mode="exact", **{"from": "the model"})


def _least(found: Mapping[str, Finding | None], labels: Sequence[str]) -> str:
    """The model with the lowest value; the first where nothing was measured."""
    values = {label: f.value for label in labels if (f := found[label]) is not None and f.value is not None}
    return min(values, key=lambda label: values[label]) if values else labels[0]


def _row(claim: str, theirs: str, ours: Mapping[str, Finding | None], digits: int) -> Row:
    """A claim that the first of two is below the second."""
    shown = [f"{label}: {NONE if f is None else interval(f.value, f.low, f.high, digits)}" for label, f in ours.items()]
    one, *other = ours.values()
    return (claim, theirs, "; ".join(shown), _below(one, other[0] if other else None))


def _below(one: Finding | None, other: Finding | None) -> str:
    """Whether the first is below the second, by intervals that do not meet."""
    ends = [None if f is None or f.low is None or f.high is None else (f.low, f.high) for f in (one, other)]
    if ends[0] is None or ends[1] is None:
        return "not measured"
    if min(f.n for f in (one, other) if f is not None) < ENOUGH:
        return OPEN
    if ends[0][1] < ends[1][0]:
        return HOLDS
    return NOT if ends[0][0] > ends[1][1] else OPEN


def _positive(finding: Finding | None) -> str:
    if finding is None or finding.low is None or finding.high is None:
        return "not measured"
    if finding.n < ENOUGH:
        return OPEN
    if finding.low > 0:
        return HOLDS
    return NOT if finding.high < 0 else OPEN
