"""What was measured of each release of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clinveil.core import Finding


@dataclass(frozen=True)
class AudienceVerdict:
    """Whether a release may leave to an audience, with the sentence of its report."""

    may_leave: bool
    sentence: str


@dataclass(frozen=True)
class MeasuredRelease:
    """What was measured of one release.

    Attributes:
        name, kind: of the release. findings: all of its findings. seconds: wall time.
        distinct: different words in the released notes.
        verdicts: audience -> verdict, without the gate on a public seed.
        phrase: some words of a released note, the same note in all releases that have it.
        why: the reason where the release could not be made; then without findings.
    """

    name: str
    kind: str
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    distinct: int = 0
    verdicts: Mapping[str, AudienceVerdict] = field(default_factory=dict)
    phrase: str = field(default="", repr=False)
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **vars(self),
            "findings": [finding.as_dict() for finding in self.findings],
            "verdicts": {name: asdict(verdict) for name, verdict in self.verdicts.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredRelease:
        """The result of `as_dict`. Raises TypeError, ValueError or KeyError for anything else."""
        return cls(
            name=data["name"],
            kind=data["kind"],
            findings=tuple(Finding.from_dict(item) for item in data["findings"]),
            seconds=data["seconds"],
            distinct=data["distinct"],
            verdicts={
                name: AudienceVerdict(bool(verdict["may_leave"]), str(verdict["sentence"]))
                for name, verdict in data["verdicts"].items()
            },
            phrase=data["phrase"],
            why=data["why"],
        )


@dataclass(frozen=True)
class Comparison:
    """The result of `clinveil compare`.

    Attributes:
        label: column to classify by. models: classifiers. seed: of the comparison; None where each
            release has a key of its own.
        with_patients, with_known, with_pairs: whether a patient list, public texts and word pairs
            were given.
        n_notes, n_patients: of the notes. releases: one for each row of the table.
        folder: where table, page and findings are; all of it is secret.
    """

    label: str
    models: tuple[str, ...]
    n_notes: int
    n_patients: int
    releases: tuple[MeasuredRelease, ...]
    folder: Path
    seed: int | None = 1
    with_patients: bool = False
    with_known: bool = False
    with_pairs: bool = False
