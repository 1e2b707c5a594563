"""Decide whether a risk is above the officer's threshold, below it, or measured on too few cases."""

from __future__ import annotations

from typing import Literal

from clinveil.core.finding import Finding

Verdict = Literal["above the threshold", "below the threshold", "too few cases to tell"]
ONE_SIDED = 1.645  # normal quantile of 95 %


def verdict(finding: Finding, threshold: float) -> Verdict:
    """Compare a share with the threshold; its interval decides.

    Above: the interval lies above the threshold, or the estimate does and there are enough cases. Below: the interval
    lies below it. A number without an interval is taken as exact.

    Raises:
        ValueError: the finding has no value.
    """
    if finding.value is None:
        raise ValueError("a finding without a value has no verdict")
    low = finding.value if finding.low is None else finding.low
    high = finding.value if finding.high is None else finding.high
    if low > threshold or (finding.value > threshold and _cases(finding) >= enough(threshold)):
        return "above the threshold"
    return "below the threshold" if high <= threshold else "too few cases to tell"


def enough(threshold: float) -> float:
    """Return the number of cases with which half the threshold is rarely (5 %) estimated above the threshold."""
    half = threshold / 2
    return (ONE_SIDED / half) ** 2 * half * (1 - half) if threshold > 0 else 0.0


def _cases(finding: Finding) -> float:
    """Independent cases that give an interval of this width (normal approximation); `n` at most."""
    value, low, high = finding.value or 0.0, finding.low, finding.high
    if low is None or high is None or high <= low:
        return float(finding.n)
    return min(float(finding.n), (2 * 1.96) ** 2 * value * (1 - value) / (high - low) ** 2)
