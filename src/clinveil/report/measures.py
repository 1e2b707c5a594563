"""The catalogue of measures (`measures.toml`): for each its question, its meaning and the next step, in words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from clinveil.attacks.attack import attacks
from clinveil.core.words import MeasureText, read_words
from clinveil.report.record import ReleaseRecord

UNKNOWN = MeasureText(
    title="A measure without a text of its own",
    short="Other",
    asked="This version has no question on file for this measure; its name and source are all that is known here.",
    means="The number is printed as it was measured. Nothing is claimed about what it means.",
    next="Ask who ran the release what was measured, and do not rest a decision on this number alone.",
)


@cache
def _files() -> Mapping[str, MeasureText]:
    """The texts on file: those beside the attacks, and those of all other measures."""
    package = Path(str(files("clinveil")))
    merged: dict[str, MeasureText] = {}
    for path in (*sorted((package / "attacks").rglob("*.toml")), package / "report" / "measures.toml"):
        merged |= read_words(path)
    return MappingProxyType(merged)


def catalogue() -> Mapping[str, MeasureText]:
    """All entries by dotted name: those on file, then those that attacks of other distributions carry."""
    more = (attacks.get(name) for name in attacks.names() if name not in attacks.ours())
    return MappingProxyType({**{k: v for attack in more for k, v in attack.words.items()}, **_files()})


def find(measure: str) -> tuple[str, MeasureText]:
    """The name and text of the entry that a measure belongs to (the longest that it begins with), or `UNKNOWN`."""
    fits = [name for name in catalogue() if measure == name or measure.startswith((name + ".", name + "_"))]
    name = max(fits, key=len, default=measure)
    return name, catalogue().get(name, UNKNOWN)


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
