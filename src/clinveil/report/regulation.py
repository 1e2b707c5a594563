"""The regulatory map (`regulation.toml`): what a rule asks, the evidence in this report, what needs a person."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from clinveil.report.record import ReleaseRecord


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the map; `measured` is False where none of the findings that it rests on were made in this run."""

    rule: str
    asks: str
    evidence: str
    human: str
    measured: bool


def rules(record: ReleaseRecord) -> list[Rule]:
    """The map for this record."""
    text = files("clinveil.report").joinpath("regulation.toml").read_text(encoding="utf-8")
    return [
        Rule(entry["rule"], entry["asks"], entry["evidence"], entry["human"], _measured(entry["needs"], record))
        for entry in tomllib.loads(text)["rule"]
    ]


def _measured(needs: list[str], record: ReleaseRecord) -> bool:
    names = [f"{finding.measure}." for finding in record.findings if finding.value is not None] + ["phi.counts"] * (
        record.phi is not None
    )
    return all(any(name.startswith((need + ".", need + "_")) for name in names) for need in needs)
