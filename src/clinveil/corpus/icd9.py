"""Label tables over ICD-9-CM diagnosis codes: ranges of the first level, and single codes (leaves).

The task of paper A's MIMIC experiment, after the code that it cites (reference 28). Its table of ranges has two holes,
which `published` keeps: 280-289 (blood) is counted with 290-319, and 740-759 (congenital anomalies) with 760-779;
codes with V or E have no label. `corrected` has a class for each of these.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

# First-level ranges, as published; the last code of each bounds it.
PUBLISHED = (
    "001-139", "140-239", "240-279", "290-319", "320-389", "390-459", "460-519", "520-579", "580-629", "630-679",
    "680-709", "710-739", "760-779", "780-789", "790-796", "797", "798", "799", "800-999",
)  # fmt: skip
HOLES = ("280-289", "740-759")
EXTERNAL, FACTORS = "E000-E999", "V01-V91"
# The 20 leaves, most frequent first: by patients of MIMIC-III, codes with V left out.
LEAVES = (
    "4019", "41401", "42731", "4280", "5849", "2724", "25000", "51881", "5990", "2720",
    "53081", "2859", "486", "2851", "2762", "2449", "496", "99592", "0389", "5070",
)  # fmt: skip
_CODE = re.compile(r"(?:[0-9]{3}|V[0-9]{2})(?:\.?[0-9]{1,2})?|E[0-9]{3}(?:\.?[0-9])?")


@dataclass(frozen=True)
class LabelTable:
    """What label a diagnosis code has.

    Attributes:
        classes: the labels, in the order of the table.
        class_of: the row of `classes` of a plain code; None for a code without a label.
    """

    classes: tuple[str, ...]
    class_of: Callable[[str], int | None] = field(repr=False)

    def label(self, code: str) -> str | None:
        """The label of a plain code, or None."""
        row = self.class_of(code)
        return None if row is None else self.classes[row]


def plain_code(written: str) -> str | None:
    """An ICD-9-CM diagnosis code without its dot, in upper case: `038.9` is `0389`; None for anything else."""
    code = written.strip().upper()
    return code.replace(".", "") if _CODE.fullmatch(code) else None


def first_level(table: Literal["corrected", "published"] = "corrected") -> LabelTable:
    """Ranges by the first three characters: the first range whose end is not before them (facts of reference 28).

    Both tables keep 790-796, 797, 798 and 799 apart, as the published one does.
    """
    ranges = PUBLISHED if table == "published" else tuple(sorted(PUBLISHED + HOLES))
    ends = [name[-3:] for name in ranges]
    classes = ranges if table == "published" else (*ranges, EXTERNAL, FACTORS)
    supplements = {"E": EXTERNAL, "V": FACTORS}

    def class_of(code: str) -> int | None:
        if code[0] in supplements:
            return None if table == "published" else classes.index(supplements[code[0]])
        return bisect_left(ends, code[:3])

    return LabelTable(classes, class_of)


def leaves(codes: Sequence[str] = LEAVES) -> LabelTable:
    """Single codes, each its own label; all others have none."""
    rows = {code: row for row, code in enumerate(codes)}
    return LabelTable(tuple(codes), rows.get)
