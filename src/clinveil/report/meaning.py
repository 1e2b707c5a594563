"""What a number means in words: held against chance, against zero, and beside a positive control."""

from __future__ import annotations

from clinveil.core.finding import Finding
from clinveil.core.words import Kind, MeasureText
from clinveil.report.numerals import share, text


def direction(finding: Finding) -> str:
    """Which way is good, in words."""
    if finding.better is None:
        return "a description: no direction is good"
    if finding.measure.startswith("utility"):
        return f"{finding.better} is more useful" if finding.better == "higher" else "lower is more useful"
    return f"{finding.better} is safer"


def sentences(finding: Finding, measure: MeasureText, kind: Kind) -> list[str]:
    """What one finding means: the comparison, what zero of n can show, the power of the attack."""
    if finding.value is None:
        return [f"It was not measured: {finding.detail['why']}. Nothing is shown either way."]
    parts = [_against_zero(finding) if kind == "difference" else _against_chance(finding, measure, kind)]
    if finding.value == 0 and kind == "share" and measure.sampled and finding.n:
        parts.append(_none_found(finding))
    parts += [_uncounted(finding, kind), _power(finding, kind)]
    return [part for part in parts if part]


def _none_found(finding: Finding) -> str:
    """What none of n can show: the interval where there is one (it knows about clusters), else 1 - 0.05^(1/n)."""
    if finding.high is not None:
        return f"None was found; up to {share(finding.high)} cannot be ruled out."
    return f"0 of {finding.n:,} only shows that the rate is below {share(1 - 0.05 ** (1 / finding.n))} (95 % bound)."


def _against_chance(finding: Finding, measure: MeasureText, kind: Kind) -> str:
    value, chance = finding.value, finding.chance
    if value == 0 and finding.better == "lower" and not measure.sampled:
        return measure.good
    if value is None or chance is None or finding.better is None:
        plain = value is not None and finding.better == "lower" and measure.bad
        return "" if not plain else measure.bad if value else measure.good
    low = value if finding.low is None else finding.low
    high = value if finding.high is None else finding.high
    beside = f"{text(value, kind)} against {text(chance, kind)} for {finding.chance_is or measure.chance}"
    higher_is_good = finding.better == "higher"
    if low > chance:
        return f"{measure.good if higher_is_good else measure.bad} ({beside}.)"
    if high < chance or (low == high and value <= chance):
        return f"{measure.bad if higher_is_good else measure.good} ({beside}.)"
    return f"No difference from chance is shown: the interval includes it ({beside}). That is not proof of none."


def _against_zero(finding: Finding) -> str:
    value, low, high = finding.value, finding.low, finding.high
    if value is None or low is None or high is None:
        return "Without an interval, nobody can say whether this difference is more than noise."
    if low <= 0 <= high:
        return "The interval includes zero: no difference is shown with this many. That is not proof of none."
    worse = (value > 0) == (finding.better == "lower")
    return f"The interval lies wholly on one side of zero: the release {'loses' if worse else 'gains'} by this measure."


def _uncounted(finding: Finding, kind: Kind) -> str:
    """What the same attacker reads who does not count."""
    one_draw = finding.detail.get("one_draw")
    return f"Without counting it is {text(one_draw, kind)}." if isinstance(one_draw, float) else ""


def _power(finding: Finding, kind: Kind) -> str:
    """Whether the attack succeeds where it must: what a positive control says of a number beside it."""
    if finding.control_kind != "positive" or finding.control is None:
        return ""
    where = finding.control_is or "where there is something to find"
    found = f"Positive control ({where}): {text(finding.control, kind)}"
    if finding.control <= (finding.chance or 0.0):
        return f"{found}, no more than chance: the attack had no power here, so finding nothing shows nothing."
    return f"{found}, so the attack works where there is something to find."
