"""What of a finding's detail tells rows apart, what stands beside the value, what is a remark; all else is "more"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clinveil.core.finding import Detail, Finding
from clinveil.core.words import Kind
from clinveil.report.numerals import Number, number

# Numbers beside the value: head of the column, and how they are written (None: like the value).
COMPANIONS: dict[str, tuple[str, Kind | None]] = {
    "one_draw": ("Without counting", None),
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
    *("attacker", "family", "metric", "step", "memo", "series", "scale", "range"),
    *("k", "span", "false_alarms", "unknown_share", "at_ceiling"),
)
PARTS = ("vocabulary", "size")  # said together with unknown_share
REMARKS = ("warning", "why", "not_checked", "read", "code")


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
        return "all words" if value == "all" else f"words seen {value} times"
    if key == "unknown_share":
        return _vocabulary(finding.detail)
    if key == "false_alarms":
        return f"{value:.1%} false alarms"
    return _PHRASES.get(key, "{}").format(value, n=finding.n)


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
