"""The three criteria of the Article 29 Working Party, and legal rules with their evidence, from `rules.toml`.

Source: Article 29 Working Party, Opinion 05/2014 (WP216); EMA/90915/2016 (Policy 0070), chapter 3.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from clinveil.report.adversaries import NAMES, RECIPIENTS, TARGETS, strongest
from clinveil.report.cells import Row, row
from clinveil.report.record import ReleaseRecord
from clinveil.report.verdicts import Verdict, verdict


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: its question and the figure furthest above chance among recipients; no row: not measured."""

    name: str
    asks: str
    target: str = ""
    adversary: str = ""
    row: Row | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `measured` is false where none of the targets that its evidence needs was measured."""

    rule: str
    evidence: str
    human: str
    measured: bool


@cache
def _text() -> Mapping[str, Any]:
    return tomllib.loads(files("clinveil.report").joinpath("rules.toml").read_text(encoding="utf-8"))


def criteria(record: ReleaseRecord) -> list[Criterion]:
    """Return the three criteria for this record. The upper bound of stolen vectors does not count."""
    return [_criterion(entry, record) for entry in _text()["criterion"]]


def _criterion(entry: Mapping[str, Any], record: ReleaseRecord) -> Criterion:
    top = strongest(record.findings, entry["targets"], RECIPIENTS)
    if top is None or top.value is None:
        return Criterion(entry["name"], entry["asks"])
    return Criterion(
        entry["name"],
        entry["asks"],
        TARGETS[str(top.detail["target"])],
        NAMES[str(top.detail["adversary"])],
        row(top, record.edition, kind="share"),
        verdict(top, record.risk_threshold),
    )


def rules(record: ReleaseRecord) -> list[Rule]:
    """Return the map of rules for this record."""
    measured = {f.detail.get("target") for f in record.findings if f.value is not None}
    return [
        Rule(e["rule"], e["evidence"], e["human"], not e["targets"] or bool(measured & set(e["targets"])))
        for e in _text()["rule"]
    ]
