"""The catalogue of measures (`measures.toml`): for each its question, its meaning and the next step, in words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from clinveil.report.numerals import Kind


@dataclass(frozen=True, slots=True)
class MeasureText:
    """What is said of one measure.

    Attributes:
        title, asked, means, next: the head and the lines of its block; `short` is the name in figures.
        good, bad: the sentence for a number on the safe (useful) side of chance, and on the other.
        kind: how its numbers are written; `kinds` and `rows` by what is left of a finding's name.
        chance, control: what these two stand for.
        sampled: whether the number is an estimate from a sample.
    """

    title: str
    short: str
    asked: str
    means: str
    next: str
    good: str = ""
    bad: str = ""
    kind: Kind = "number"
    chance: str = "what guessing scores on this case"
    control: str = "the same measure where there is nothing to find"
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    sampled: bool = True

    def kind_of(self, rest: str) -> Kind:
        """How the numbers of one row are written; `rest` is what is left of the finding's name."""
        return self.kinds.get(rest, self.kind)

    def label_of(self, rest: str) -> str:
        """The label of a row."""
        return self.rows.get(rest, rest.replace("_", " ").replace(".", ", "))


UNKNOWN = MeasureText(
    title="A measure without a text of its own",
    short="Other",
    asked="This version has no question on file for this measure; its name and source are all that is known here.",
    means="The number is printed as it was measured. Nothing is claimed about what it means.",
    next="Ask who ran the release what was measured, and do not rest a decision on this number alone.",
)


@cache
def catalogue() -> Mapping[str, MeasureText]:
    """All entries by dotted name."""
    text = files("clinveil.report").joinpath("measures.toml").read_text(encoding="utf-8")
    return MappingProxyType({name: MeasureText(**entry) for name, entry in tomllib.loads(text).items()})


def find(measure: str) -> tuple[str, MeasureText]:
    """The name and text of the entry that a measure belongs to (the longest that it begins with), or `UNKNOWN`."""
    fits = [name for name in catalogue() if measure == name or measure.startswith((name + ".", name + "_"))]
    name = max(fits, key=len, default=measure)
    return name, catalogue().get(name, UNKNOWN)
