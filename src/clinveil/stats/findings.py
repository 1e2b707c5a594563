"""Create common findings: a share with its interval, and a value that could not be measured."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from clinveil.core import Better, ControlKind, Finding, Ints
from clinveil.stats.intervals import clopper_pearson, share_by_patient, share_method

NO_DETAIL: Mapping[str, Any] = MappingProxyType({})
NO_EVIDENCE = "no evidence"
"""How the reason for a missing value begins where cases are too few, or the score is not above
chance.
"""


def is_no_evidence(finding: Finding) -> bool:
    """Return whether a finding has no value because its cases are too few or its score is not above
    chance.
    """
    return finding.value is None and str(finding.detail["why"]).startswith(NO_EVIDENCE)


def proportion(
    measure: str,
    count: int,
    n: int,
    *,
    over: str,
    unit: str | None = None,
    better: Better | None = "lower",
    method: str | None = None,
    chance: float | None = None,
    chance_is: str = "",
    control: float | None = None,
    control_is: str = "",
    control_kind: ControlKind | None = None,
    p: float | None = None,
    p_is: str = "",
    question: str = "",
    source: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> Finding:
    """Return the share `count / n` of independent cases with its exact 95 % interval.

    Args:
        over: name of the cases, and the unit unless one is given. The others are fields of the
            finding.
    """
    low, high = clopper_pearson(count, n)
    return Finding(
        measure,
        count / n,
        n,
        better=better,
        low=low,
        high=high,
        chance=chance,
        control=control,
        source=source,
        detail=detail,
        unit=over if unit is None else unit,
        count=count,
        p=p,
        p_is=p_is,
        method=f"exact over {over} (Clopper-Pearson), 95 %" if method is None else method,
        chance_is=chance_is,
        control_is=control_is,
        control_kind=control_kind,
        question=question,
    )


def clustered_share(
    measure: str,
    counts: Ints,
    *,
    over: str,
    unit: str = "",
    better: Better | None = "lower",
    chance: float | None = None,
    chance_is: str = "",
    control: float | None = None,
    control_is: str = "",
    control_kind: ControlKind | None = None,
    p: float | None = None,
    p_is: str = "",
    source: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> Finding:
    """Return a share of clustered cases, with the 95 % interval of `share_by_patient`.

    Args:
        counts: (n_clusters, 2) hits and cases of each cluster. over: name of the clusters
            ("patients"). The others are fields of the finding.
    """
    count, n = counts.sum(axis=0).tolist()
    low, high = share_by_patient(counts)
    return Finding(
        measure,
        count / n,
        n,
        better=better,
        low=low,
        high=high,
        chance=chance,
        control=control,
        source=source,
        detail=detail,
        unit=unit,
        count=count,
        p=p,
        p_is=p_is,
        method=share_method(counts, over),
        chance_is=chance_is,
        control_is=control_is,
        control_kind=control_kind,
    )


def unmeasured(
    measure: str,
    why: str,
    n: int = 0,
    *,
    unit: str = "",
    better: Better | None = "lower",
    chance: float | None = None,
    chance_is: str = "",
    control: float | None = None,
    control_is: str = "",
    control_kind: ControlKind | None = None,
    p: float | None = None,
    p_is: str = "",
    question: str = "",
    source: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> Finding:
    """Return a finding without value and the reason for it; the others are its fields."""
    return Finding(
        measure,
        None,
        n,
        better=better,
        chance=chance,
        control=control,
        source=source,
        detail={**detail, "why": why},
        unit=unit,
        p=p,
        p_is=p_is,
        chance_is=chance_is,
        control_is=control_is,
        control_kind=control_kind,
        question=question,
    )
