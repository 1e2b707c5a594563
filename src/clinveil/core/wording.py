"""The text of a measure in `findings.json`: its title, its question and its meaning."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

NumberKind = Literal["share", "count", "score", "difference", "number", "length", "p"]
"""How the numbers of a measure are written."""


@dataclass(frozen=True, slots=True)
class MeasureText:
    """Text of one measure.

    Attributes:
        title, asked, means: heading, question and meaning; `short` is the name in tables.
        kind: number format; `kinds` and `rows` are formats and labels by the rest of a finding's
            name.
        chance, control: what these two columns contain.
    """

    title: str
    short: str
    asked: str
    means: str
    kind: NumberKind = "number"
    chance: str = "what guessing scores on this case"
    control: str = "the same measure where there is nothing to find"
    kinds: Mapping[str, NumberKind] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)

    def kind_of(self, rest: str) -> NumberKind:
        """How the numbers of one row are written; `rest` is what is left of the finding's name."""
        return self.kinds.get(rest, self.kind)


@cache
def read_words(path: Path) -> Mapping[str, MeasureText]:
    """The texts of a TOML file, by the dotted names of their measures."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return MappingProxyType({name: MeasureText(**entry) for name, entry in entries.items()})


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((docstring or "").partition("\n\n")[0].split())
