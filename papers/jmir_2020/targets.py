"""The diagnoses that an attacker of paper B names for a patient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinveil.core import words

TOPS = (1, 5)  # number of diagnoses guessed: A@1 and A@5
PAPER_TARGETS = (
    "constipation",
    "diarrhea",
    "vaginitis",
    "sexual dysfunction",
    "urinary infection",
    "herpes genitalis",
    "dementia",
    "anorexia",
    "alcoholism",
    "threatened abortion",
    "AIDS",
)


@dataclass(frozen=True)
class TargetColumns:
    """Target diagnoses with a vector: `columns`, their sorted indices among these codes.

    Attributes:
        wanted: number of targets named. unknown: targets without a code. without_vector: codes of
            targets without a vector.
    """

    columns: list[int]
    wanted: int
    unknown: int
    without_vector: int

    @property
    def numbers(self) -> dict[str, int]:
        """Return the counts for a finding."""
        return {
            "targets_wanted": self.wanted,
            "targets_unknown": self.unknown,
            "targets_without_vector": self.without_vector,
        }


def target_columns(
    targets: Sequence[str], codes_with_vector: Sequence[str], codes: Mapping[str, str]
) -> TargetColumns:
    """Return the codes that are a target, or have a target's words as their description.

    Args:
        targets: descriptions or codes. codes: code -> description.
    """
    forms = {tuple(words(target)) for target in targets if words(target)}
    exact = {target.strip() for target in targets}
    matching = [
        code
        for code, description in codes.items()
        if code in exact or tuple(words(description)) in forms
    ]
    descriptions = {tuple(words(codes[code])) for code in matching}
    unknown = sum(
        target.strip() not in matching and tuple(words(target)) not in descriptions
        for target in dict.fromkeys(targets)
    )
    index = {code: column for column, code in enumerate(codes_with_vector)}
    columns = sorted(index[code] for code in matching if code in index)
    return TargetColumns(columns, len(set(targets)), unknown, len(matching) - len(columns))
