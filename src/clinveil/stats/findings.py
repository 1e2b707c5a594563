"""Create common findings: a share with its interval, and a value that could not be measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clinveil.core.finding import Finding
from clinveil.core.types import Ints
from clinveil.stats.intervals import clopper_pearson, share_by_patient, share_method

NO_EVIDENCE = "no evidence"
"""How the reason for a missing value begins where cases are too few, or the score is not above
chance.
"""


def is_no_evidence(finding: Finding) -> bool:
    """Return whether a finding has no value because its cases are too few or its score is not above
    chance.
    """
    return finding.value is None and str(finding.detail["why"]).startswith(NO_EVIDENCE)


def proportion(measure: str, count: int, n: int, *, over: str, **more: Any) -> Finding:
    """Return the share `count / n` of independent cases with its exact 95 % interval; lower is
    better.

    Args:
        over: name of the cases. more: other fields of the finding; the default unit is `over`.
    """
    method = f"exact over {over} (Clopper-Pearson), 95 %"
    own = {"better": "lower", "unit": over, "method": method, **more}
    low, high = clopper_pearson(count, n)
    return Finding(measure, count / n, n, low=low, high=high, count=count, **own)


def clustered_share(measure: str, counts: Ints, *, over: str, **more: Any) -> Finding:
    """Return a share of clustered cases, with the 95 % interval of `share_by_patient`; lower is
    better.

    Args:
        counts: (n_clusters, 2) hits and cases of each cluster. over: name of the clusters
            ("patients").
        more: other fields of the finding.
    """
    count, n = counts.sum(axis=0).tolist()
    low, high = share_by_patient(counts)
    own = {"better": "lower", "count": count, "method": share_method(counts, over), **more}
    return Finding(measure, count / n, n, low=low, high=high, **own)


def unmeasured(
    measure: str, why: str, n: int = 0, *, detail: Mapping[str, Any] | None = None, **more: Any
) -> Finding:
    """Return a finding without value and the reason for it; lower would be better."""
    return Finding(
        measure, None, n, **{"better": "lower", "detail": {**(detail or {}), "why": why}, **more}
    )
