"""The target diagnoses of the scenario attack, and which of the codes they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.tokens import words

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
class Targets:
    """Columns of the target diagnoses, and how many targets there are not.

    Attributes:
        columns: places in the codes that have a vector, ascending.
        wanted: how many targets were named. unknown: how many no code stands for. without_vector: how many codes that
            stand for one have no vector.
    """

    columns: tuple[int, ...]
    wanted: int
    unknown: int
    without_vector: int

    @property
    def detail(self) -> dict[str, int]:
        """For a finding."""
        return {
            "targets_wanted": self.wanted,
            "targets_unknown": self.unknown,
            "targets_without_vector": self.without_vector,
        }


def target_columns(wanted: Sequence[str], known: Sequence[str], codes: Mapping[str, str]) -> Targets:
    """The codes that are targets: whose code, or the words of whose description, are a target's.

    Args:
        wanted: descriptions or codes. known: codes that have a vector. codes: code -> description.
    """
    forms = {tuple(words(target)) for target in wanted if words(target)}
    exact = {target.strip() for target in wanted}
    meant = [code for code, said in codes.items() if code in exact or tuple(words(said)) in forms]
    said = {tuple(words(codes[code])) for code in meant}
    unknown = sum(t.strip() not in meant and tuple(words(t)) not in said for t in dict.fromkeys(wanted))
    place = {code: column for column, code in enumerate(known)}
    columns = sorted(place[code] for code in meant if code in place)
    return Targets(tuple(columns), len(set(wanted)), unknown, len(meant) - len(columns))


def read_targets(path: Path) -> list[str]:
    """Target diagnoses or codes, one a line, of a text file. Raises InputError if it is empty or not UTF-8."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError("it cannot be read as UTF-8 text", where=path.name, remedy="one diagnosis a line") from None
    wanted = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not wanted:
        raise InputError("it holds no diagnoses", where=path.name, remedy="one diagnosis a line")
    return wanted
