"""Results of a comparison of releases, and the names of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinveil.comparison.settings import CompareSettings
from clinveil.core import Finding

TABLE = "table.md"
FINDINGS = "findings.json"
PAGE = "compare.html"


@dataclass(frozen=True)
class MeasuredRelease:
    """What was measured of one release.

    Attributes:
        name, kind: of the release. findings: all of its findings. seconds: wall time.
        distinct: different words in the released notes.
        gates: how many gates had each outcome. failed: names of failed gates, without the test
            seed's.
        why: the reason where the release could not be made; then there are no findings.
    """

    name: str
    kind: str
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    distinct: int = 0
    gates: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "findings": [finding.as_dict() for finding in self.findings]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredRelease:
        """The result of `as_dict`. Raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            name=data["name"],
            kind=data["kind"],
            findings=tuple(Finding.from_dict(item) for item in data["findings"]),
            seconds=data["seconds"],
            distinct=data["distinct"],
            gates=data["gates"],
            failed=tuple(data["failed"]),
            why=data["why"],
        )


@dataclass(frozen=True)
class Comparison:
    """The result of `clinveil compare`.

    Attributes:
        settings: what was compared how. n_notes, n_patients: of the notes. releases: one for each
            row of the table.
        folder: where table, page and findings are; all of it is secret.
    """

    settings: CompareSettings
    n_notes: int
    n_patients: int
    releases: tuple[MeasuredRelease, ...]
    folder: Path
