"""Look up the text of each measure, and sort the keys of a finding's detail.

Some keys distinguish rows of one measure (`VARIANTS`), some are printed next to the value
(`COMPANIONS`), some are remarks (`REMARKS`). All other keys are only in `findings.json`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from clinveil.attacks import attacks
from clinveil.core import Finding, MeasureText, read_words

UNKNOWN = MeasureText(
    title="A measure without a description",
    short="Other",
    asked="This version of clinveil has no description of this measure.",
    means="The number is printed as it was measured. Do not base a decision on it alone.",
)


@cache
def _files() -> tuple[Mapping[str, MeasureText], frozenset[str]]:
    """Texts in TOML files next to attacks and utility measures and in `measures.toml`; names of
    these files.
    """
    package = Path(str(files("clinveil")))
    merged = dict[str, MeasureText]()
    names = set[str]()
    found = (
        path
        for folder in ("attacks", "utility")
        for path in sorted((package / folder).rglob("*.toml"))
    )
    for path in (*found, package / "report" / "measures.toml"):
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
        if entries and all(
            isinstance(entry, dict) and "asked" in entry for entry in entries.values()
        ):
            merged |= read_words(path)
            names.add(path.stem)
    return MappingProxyType(merged), frozenset(names)


def catalogue() -> Mapping[str, MeasureText]:
    """Return all texts by the dotted name of their measure, those that an attack class defines
    included.
    """
    return MappingProxyType({**texts_of_classes(), **_files()[0]})


def texts_of_classes() -> dict[str, MeasureText]:
    """Return the texts that attack classes define, mostly of other distributions, by measure."""
    _, names = _files()
    classes = [attacks.get(name) for name in attacks.names() if name.replace("-", "_") not in names]
    return {measure: text for attack in classes for measure, text in attack.words.items()}


def find(measure: str) -> tuple[str, MeasureText]:
    """Return name and text of the entry with the longest name that the measure begins with, or
    `UNKNOWN`.
    """
    fits = [
        name
        for name in catalogue()
        if measure == name or measure.startswith((name + ".", name + "_"))
    ]
    name = max(fits, key=len, default=measure)
    return name, catalogue().get(name, UNKNOWN)


# Numbers that belong to the value.
COMPANIONS = ("expected", "median", "most", "chance_most")
# Keys that distinguish rows of one measure, in the order in which the row's label lists them.
VARIANTS = (
    *("adversary", "target"),
    *(
        "list",
        "setting",
        "mode",
        "side",
        "against",
        "stratum",
        "repeats",
        "label",
        "model",
        "from",
        "first_weights",
    ),
    *("attacker", "reader", "family", "metric", "step", "series", "scale", "range"),
    *("k", "span", "false_alarms", "unknown_share", "at_ceiling"),
)
PARTS = ("vocabulary", "size")  # printed together with unknown_share
REMARKS = ("warning", "why", "not_checked", "code", "measured_on", "tested_on")
# Further keys that may leave: the report prints them.
PRINTED = (
    *("gated", "task", "score", "floor", "ceiling", "chance_score"),
    *("of_ceiling", "of_ceiling_low", "of_ceiling_high"),
)


_STRATA = {
    "all": "all words",
    "rare": "rare words",
    "content": "content words",
    "function": "function words",
}
_STRATA |= {"canaries": "planted names"}
_PHRASES = {
    "side": "{} notes",
    "k": "K {}",
    "span": "{} words or more",
    "at_ceiling": "{} of {n} at the ceiling",
    "false_alarms": "{:.1%} false alarms",
}


def variants(finding: Finding) -> list[str]:
    """What tells this finding from others of its measure, each in a few words."""
    return [_variant(key, finding) for key in VARIANTS if finding.detail.get(key)]


def _variant(key: str, finding: Finding) -> str:
    detail = finding.detail
    value = finding.detail[key]
    if key == "repeats":
        return "1 time" if value == 1 else f"{value} times"
    if key == "stratum":
        return (
            f"words seen {value} times"
            if str(value).startswith("below")
            else _STRATA.get(str(value), str(value))
        )
    if key == "unknown_share":  # perplexities compare at one vocabulary only
        pieces = "words" if detail["vocabulary"] == "words" else "byte pairs"
        return f"{detail['size']:,} {pieces}, {value:.1%} unknown"
    return _PHRASES.get(key, "{}").format(value, n=finding.n)


def explanations(findings: Iterable[Finding]) -> dict[str, dict[str, object]]:
    """Return the description of each measure of some findings, for `findings.json`."""
    described = dict(find(finding.measure) for finding in findings)
    return {
        name: {
            "title": text.title,
            "question": text.asked,
            "meaning": text.means,
            "chance": text.chance,
            "control": text.control,
            "rows": dict(text.rows),
        }
        for name, text in described.items()
    }
