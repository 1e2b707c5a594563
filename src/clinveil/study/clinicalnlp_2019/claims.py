"""What paper C says, held against what was found here: each with the numbers that decide it."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.finding import Finding
from clinveil.study.clinicalnlp_2019.plan import label_of
from clinveil.study.clinicalnlp_2019.results import Results
from clinveil.study.plain import NONE, Row, Table, interval

HOLDS, NOT, OPEN = "holds", "does not hold", "cannot be told"


def claims_table(results: Results) -> Table:
    """One row a claim: the paper's numbers, ours, and the verdict by intervals."""
    remarks = (
        "A claim about a difference holds or does not hold where the interval of the difference leaves out 0, or where "
        "two intervals do not meet; otherwise this study is too small to tell.",
    )
    heads = ("the paper says", "its numbers", "here", "verdict")
    asks, rows = "Do the paper's findings hold on these notes?", tuple(_rows(results))
    return Table("claims", "What holds here", asks, heads, rows, remarks)


def _rows(results: Results) -> Iterator[Row]:
    first, last = (label_of(dropout) for dropout in (results.settings.dropout[0], results.settings.dropout[-1]))
    best = _lowest_perplexity(results)
    perplexities = [results.of("utility.perplexity", label, of="valid", by="the model") for label in (best, "unigram")]
    yield _row("the LSTM predicts far better than the unigram", "12.5 / 702.4", perplexities, _below(*perplexities), 1)
    for mode, name in (("compat", "its code"), ("exact", "all else fixed")):
        fall = results.of("attack.pdtp_fall", last, mode=mode, of="score")
        claim = f"dropout lowers the privacy score ({name})"
        yield _row(claim, "11.7 to 9.6 at 0.5 (11.8 at 0.3)", [fall], _positive(fall), 2)
    excess = results.of("attack.pdtp_fall", last, mode="exact", of="excess")
    yield _row("and so it does where the floor is taken off", "not measured", [excess], _positive(excess), 2)
    lists = sorted({str(f.detail["list"]) for f in results.findings if f.measure == "utility.similarity"})
    for name in lists:
        pair = [results.of("utility.similarity", label, list=name) for label in (first, last)]
        theirs = ".125 / .160" if "rel" in name else ".227 / .259"
        yield _row(f"{name} is best at dropout 0.5, not 0", theirs, pair, _below(*pair), 3)
    pair = [results.of("utility.nli", label, series="vectors") for label in (first, last)]
    yield _row("inference rises with dropout", ".678 / .692", pair, _below(*pair), 3)
    pair = [results.of("utility.casing", label, series="model") for label in ("unigram", first)]
    yield _row("the unigram is the least useful (letter case)", ".488 / .895", pair, _below(*pair), 3)
    pair = [results.of("attack.pdtp", "unigram"), _score(results, last)]
    yield _row("the unigram is the safest", "0.9 / 6.6", pair, _below(*pair), 2)
    pair = [results.of("attack.pdtp_excess", "unigram"), _score(results, last, "pdtp_excess")]
    yield _row("and so it is where the floor is taken off", "not measured", pair, _below(*pair), 2)
    pair = [results.of("utility.casing", label, series="model") for label in (first, "real notes")]
    yield _row("real notes are more useful (letter case)", ".895 / .910", pair, _below(*pair), 3)


def _score(results: Results, label: str, measure: str = "pdtp") -> Finding | None:
    return results.of(f"attack.{measure}", label, mode="exact", **{"from": "the model"})


def _lowest_perplexity(results: Results) -> str:
    labels = [label_of(dropout) for dropout in results.settings.dropout]
    found = {label: results.of("utility.perplexity", label, of="valid", by="the model") for label in labels}
    values = {label: f.value for label, f in found.items() if f is not None and f.value is not None}
    return min(values, key=lambda label: values[label]) if values else labels[0]


def _row(claim: str, theirs: str, ours: list[Finding | None], verdict: str, digits: int) -> Row:
    shown = [NONE if f is None else interval(f.value, f.low, f.high, digits) for f in ours]
    return (claim, theirs, " / ".join(shown), verdict)


def _below(one: Finding | None, other: Finding | None) -> str:
    """Whether the first is below the second, by intervals that do not meet."""
    ends = [None if f is None or f.low is None or f.high is None else (f.low, f.high) for f in (one, other)]
    if ends[0] is None or ends[1] is None:
        return "not measured"
    if ends[0][1] < ends[1][0]:
        return HOLDS
    return NOT if ends[0][0] > ends[1][1] else OPEN


def _positive(finding: Finding | None) -> str:
    if finding is None or finding.low is None or finding.high is None:
        return "not measured"
    if finding.low > 0:
        return HOLDS
    return NOT if finding.high < 0 else OPEN
