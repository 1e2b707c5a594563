"""Create findings from the counts of an attack: shares with interval, chance and control."""

from __future__ import annotations

from dataclasses import dataclass

from clinveil.core import NO_NUMBERS, Better, ControlKind, Finding, Ints, Numbers
from clinveil.stats.intervals import clopper_pearson, share_by_patient, share_method

NO_EVIDENCE = "no evidence"
"""How the reason for a missing value begins where cases are too few, or the score is not above
chance.
"""


def is_no_evidence(finding: Finding) -> bool:
    """Return whether a finding has no value because its cases are too few or its score is not above
    chance.
    """
    return finding.value is None and finding.why.startswith(NO_EVIDENCE)


@dataclass(frozen=True, kw_only=True, slots=True)
class HitCounts:
    """The counts of an attack, from which its finding is made.

    Attributes:
        hits, tries: successes and cases. clusters: (n_clusters, 2) hits and tries of each patient
            or other cluster; None if the cases are independent.
        chance: share of hits by chance. control: share of hits on the control.
    """

    hits: int
    tries: int
    clusters: Ints | None = None
    chance: float | None = None
    control: float | None = None

    @classmethod
    def of_clusters(
        cls, clusters: Ints, *, chance: float | None = None, control: float | None = None
    ) -> HitCounts:
        """Return the counts of clustered cases, (n_clusters, 2) hits and tries."""
        hits, tries = clusters.sum(axis=0).tolist()
        return cls(hits=hits, tries=tries, clusters=clusters, chance=chance, control=control)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureSpec:
    """The name of a measure and the texts that its findings share.

    Attributes:
        over: name of the cases or clusters that the interval is computed over. unit: name of the
            cases, if another. method: method of the interval, if not the usual one. The others are
            fields of `Finding`.
    """

    measure: str
    series: str = ""
    over: str = ""
    unit: str = ""
    better: Better | None = "lower"
    source: str = ""
    method: str = ""
    question: str = ""
    chance_is: str = ""
    control_is: str = ""
    control_kind: ControlKind | None = None
    p_is: str = ""

    def share(
        self,
        counts: HitCounts,
        *,
        p: float | None = None,
        labels: tuple[str, ...] = (),
        numbers: Numbers = NO_NUMBERS,
    ) -> Finding:
        """Return hits / tries with its 95 % interval: exact, or that of `share_by_patient` for
        clusters. Texts on a missing chance level, control or P are left out.
        """
        clusters = counts.clusters
        if clusters is None:
            ends = clopper_pearson(counts.hits, counts.tries)
            method = f"exact over {self.over} (Clopper-Pearson), 95 %"
        else:
            ends = share_by_patient(clusters)
            method = share_method(clusters, self.over)
        has_control = counts.control is not None
        return Finding(
            self.measure,
            counts.hits / counts.tries,
            counts.tries,
            better=self.better,
            low=ends.low,
            high=ends.high,
            chance=counts.chance,
            control=counts.control,
            source=self.source,
            unit=self.unit or (self.over if clusters is None else ""),
            count=counts.hits,
            p=p,
            p_is="" if p is None else self.p_is,
            method=self.method or method,
            chance_is="" if counts.chance is None else self.chance_is,
            control_is=self.control_is if has_control else "",
            control_kind=self.control_kind if has_control else None,
            question=self.question,
            series=self.series,
            labels=labels,
            numbers=numbers,
        )

    def missing(
        self,
        why: str,
        n: int = 0,
        *,
        chance: float | None = None,
        labels: tuple[str, ...] = (),
        numbers: Numbers = NO_NUMBERS,
    ) -> Finding:
        """Return a finding without value, with the reason for it."""
        return Finding(
            self.measure,
            None,
            n,
            better=self.better,
            chance=chance,
            source=self.source,
            unit=self.unit or self.over,
            chance_is="" if chance is None else self.chance_is,
            question=self.question,
            series=self.series,
            labels=labels,
            numbers=numbers,
            why=why,
        )
