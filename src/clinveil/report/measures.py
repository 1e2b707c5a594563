"""The catalogue of measures (`measures.toml`), in words; and what a finding's detail holds.

Of a detail some keys tell rows apart, some stand beside the value, some are remarks; all else is "more".
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from clinveil.attacks.attack import attacks
from clinveil.core.finding import Detail, Finding
from clinveil.core.words import Kind, MeasureText, read_words
from clinveil.report.numerals import Number, number
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


@cache
def _beside() -> frozenset[str]:
    """The attacks whose words stand in a file beside them."""
    return frozenset(path.stem for path in Path(str(files("clinveil"))).joinpath("attacks").rglob("*.toml"))


def catalogue() -> Mapping[str, MeasureText]:
    """All entries by dotted name: those on file, and those that an attack carries in itself."""
    more = (attacks.get(name) for name in attacks.names() if name.replace("-", "_") not in _beside())
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


@dataclass(frozen=True, slots=True)
class Clause:
    """One row of the index of a standard: its clause, where this report answers it, and what it does not answer."""

    clause: str
    where: str
    href: str
    human: str


def clauses() -> list[Clause]:
    """The index of ISO/IEC 27559."""
    text = files("clinveil.report").joinpath("regulation.toml").read_text(encoding="utf-8")
    return [Clause(**entry) for entry in tomllib.loads(text)["clause"]]


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


# Numbers beside the value: head of the column, and how they are written (None: like the value).
COMPANIONS: dict[str, tuple[str, Kind | None]] = {
    "one_draw": ("Without counting", None),
    "alone": ("This release alone", None),
    "count": ("Count", "count"),
    "expected": ("Expected by chance", "number"),
    "p": ("P", "p"),
    "median": ("Median", "number"),
    "most": ("Highest", "count"),
    "chance_most": ("Highest by chance", None),
}
# What tells rows of one measure apart, in the order in which it is said.
VARIANTS = (
    *("list", "setting", "mode", "side", "against", "stratum", "repeats", "label", "model", "from", "first_weights"),
    *("attacker", "reader", "family", "metric", "step", "memo", "series", "scale", "range"),
    *("k", "span", "false_alarms", "unknown_share", "at_ceiling"),
)
PARTS = ("vocabulary", "size")  # said together with unknown_share
REMARKS = ("warning", "why", "not_checked", "read", "code", "measured_on")


def variants(finding: Finding) -> list[str]:
    """What tells this finding from others of its measure, each in a few words."""
    return [_variant(key, finding) for key in VARIANTS if finding.detail.get(key)]


def _variant(key: str, finding: Finding) -> str:
    value = finding.detail[key]
    if key == "repeats":
        things = "times" if finding.measure.startswith("attack.canary") else "places"
        things = str(finding.detail.get("draws_stand_in", things))
        return f"{value} {things.removesuffix('s') if value == 1 else things}"
    if key == "stratum":
        return f"words seen {value} times" if str(value).startswith("below") else _STRATA.get(str(value), str(value))
    if key == "unknown_share":
        return _vocabulary(finding.detail)
    if key == "false_alarms":
        return f"{value:.1%} false alarms"
    return _PHRASES.get(key, "{}").format(value, n=finding.n)


_STRATA = {"all": "all words", "rare": "rare words", "content": "content words", "function": "function words"}
_STRATA |= {"canaries": "planted names"}
_PHRASES = {
    "side": "{} notes",
    "memo": "memo {}",
    "k": "K {}",
    "span": "{} words or more",
    "at_ceiling": "{} of {n} at the ceiling",
}


def _vocabulary(detail: Detail) -> str:
    """Its size, and how much of the notes it does not know: perplexities compare at one vocabulary only."""
    pieces = "words" if detail["vocabulary"] == "words" else "byte pairs"
    return f"{detail['size']:,} {pieces}, {detail['unknown_share']:.1%} unknown"


def beside(finding: Finding, kind: Kind) -> dict[str, Number]:
    """The companions of the value by the keys of `COMPANIONS`; count and P are fields of the finding."""
    found: Mapping[str, object] = {**finding.detail, "count": finding.count, "p": finding.p}
    made = {key: found.get(key) for key in COMPANIONS}
    return {k: number(v, COMPANIONS[k][1] or kind) for k, v in made.items() if isinstance(v, float | int)}


def more(finding: Finding) -> dict[str, Number]:
    """All other figures and labels of the detail by the words of their keys: so everything has a reader."""
    rest = {k: v for k, v in finding.detail.items() if k not in {*COMPANIONS, *VARIANTS, *REMARKS}}
    return {key.replace("_", " "): _plain(value) for key, value in rest.items()}


def _plain(value: float | int | str | bool | None) -> Number:
    if isinstance(value, bool):
        return Number("yes" if value else "no")
    if isinstance(value, str):
        return Number(value)
    return number(value, "count" if isinstance(value, int) else "number")


def distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Each sentence once, in order, without empty ones."""
    return tuple(dict.fromkeys(word for word in words if word))
