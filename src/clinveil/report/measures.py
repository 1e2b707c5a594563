"""Look up the text of each measure."""

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
