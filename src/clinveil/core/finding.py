"""`Finding`, one measured number, and the file format of findings.

Privacy attacks and utility measures have the same interface: they take the release, the secret data
and an explicit random generator, and return findings. They differ only in which direction is
better.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from clinveil.core.atomic_files import atomic
from clinveil.core.errors import InputError

SCHEMA = "clinveil.findings/2"
Better = Literal["lower", "higher"]
ControlKind = Literal["negative", "positive"]
Number = float | int | None
Numbers = Mapping[str, Number]
NO_NUMBERS: Numbers = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the adversary table: what the attacker holds, and what the attack aims at."""

    holding: str
    target: str


@dataclass(frozen=True, slots=True)
class GapScores:
    """Scores of a utility task, on the scale of `metric`; None if not measured.

    Attributes:
        score: of the release. floor, ceiling: of the floor and of real notes. chance: of permuted
            labels.
        of_ceiling: score divided by the ceiling, with its interval of 95 %.
    """

    metric: str
    score: float | None = None
    floor: float | None = None
    ceiling: float | None = None
    chance: float | None = None
    of_ceiling: float | None = None
    of_ceiling_low: float | None = None
    of_ceiling_high: float | None = None


@dataclass(frozen=True, slots=True)
class KnownList:
    """How the known-patient list matches a release.

    Attributes:
        in_feed: patients on the list. in_release: those of them with a released note.
        alone: own names detected that the notes of fewer than two other patients contain.
    """

    in_feed: int
    in_release: int
    alone: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured number, with its interval, chance level and control.

    Attributes:
        measure: `group.name`, for example `attack.names`.
        value: the number; None if it could not be measured, with the reason in `why`.
        low, high: a 95 % interval unless `method` says otherwise.
        n: the number of cases, in `unit`s (tokens, notes, patients, pairs).
        chance: the score of guessing, computed for this case; `chance_is` describes the guess.
        control: the score of the same measure on a case with a known answer; `control_is` describes
            it.
        control_kind: "negative" if the control has no signal, "positive" if the attack must succeed
            on it.
        better: the better direction.
        source: the paper and its table or equation, or the section of the documentation.
        count: the number of hits among the n, if the value is a share.
        p: a P value; `p_is` names the test.
        method: how low and high were computed, and their level.
        question: the question that this finding answers, if the measure's description does not
            state it.
        cell: the cell of the adversary table; None for other findings. gated: whether a gate judges
            the finding.
        attack: the name of the attack, where a measure has several. knowledge: what its attacker
            knows.
        series: the test or curve within the measure. labels: what else distinguishes the findings
            of one measure, as words to print.
        numbers: further numbers to print; nothing depends on their names.
        scores: floor, ceiling and score of a utility task. tested_on: the notes it was tested on.
        known_list: how the known-patient list matches the release, if the finding depends on it.
        why: the reason for a missing value, interval or control. warning: why the value may
            mislead.
        remarks: further sentences to read with the value.
        sample: the sample of the release that was measured; "" for all of it.

    No text of a finding may contain note text, a word of a note, a path or an id.

    Raises:
        ValueError: NaN or infinity, a P value outside 0 to 1, a null value without `why`, low above
            high, a negative n, a count outside 0 to n, a field of the wrong type, or a further
            number with the name of a field.
    """

    measure: str
    value: float | None
    n: int
    better: Better | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    control: float | None = None
    source: str = ""
    _: KW_ONLY
    unit: str = ""
    count: int | None = None
    p: float | None = None
    p_is: str = ""
    method: str = ""
    chance_is: str = ""
    control_is: str = ""
    control_kind: ControlKind | None = None
    question: str = ""
    cell: Cell | None = None
    gated: bool = False
    attack: str = ""
    knowledge: str = ""
    series: str = ""
    labels: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=dict)
    scores: GapScores | None = None
    tested_on: str = ""
    known_list: KnownList | None = None
    why: str = ""
    warning: str = ""
    remarks: tuple[str, ...] = ()
    sample: str = ""

    def __post_init__(self) -> None:
        self._check_types()
        if "." not in self.measure:
            raise ValueError(f"a measure must be named group.name, got {self.measure!r}")
        self._convert_numbers()
        if duplicates := sorted({entry.name for entry in fields(self)} & self.numbers.keys()):
            raise ValueError(
                f"{self.measure}: pass {', '.join(duplicates)} as a field, not in numbers"
            )
        numbers = [self.value, self.low, self.high, self.chance, self.control, self.p]
        numbers += [v for v in self.numbers.values() if isinstance(v, float)]
        if any(v is not None and not math.isfinite(v) for v in numbers):
            raise ValueError(f"{self.measure}: NaN or infinity in a finding; use None and give why")
        if not 0 <= (self.count or 0) <= self.n:
            raise ValueError(f"{self.measure}: n must be at least 0, and count between 0 and n")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"{self.measure}: a P value must be between 0 and 1")
        if self.value is None and not self.why:
            raise ValueError(f"{self.measure}: a null value needs a reason (why)")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"{self.measure}: low must not exceed high")

    def _check_types(self) -> None:
        """Raise ValueError for a field of the wrong type."""
        texts = [getattr(self, name) for name in _TEXTS]
        texts += [*self.labels, *self.remarks]
        fits = all(isinstance(text, str) for text in texts)
        fits &= isinstance(self.labels, tuple) and isinstance(self.remarks, tuple)
        fits &= self.better in (None, "lower", "higher")
        fits &= self.control_kind in (None, "negative", "positive")
        fits &= isinstance(self.numbers, Mapping) and isinstance(self.gated, bool)
        for name, kind in _PARTS.items():
            fits &= isinstance(getattr(self, name), kind | None)
        if not fits or self.n is None:
            raise ValueError("a finding has a field of the wrong type")

    def _convert_numbers(self) -> None:
        """Convert NumPy scalars to Python's types. Raises ValueError for other values."""
        numbers = {name: _plain(number) for name, number in self.numbers.items()}
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        for name, kind in _NUMBERS.items():
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _number(number, kind, f"{self.measure}: {name}"))

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable dictionary."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values |= {name: list(values[name]) for name in _TUPLES}
        values |= {name: asdict(values[name]) for name in _PARTS if values[name] is not None}
        return {**values, "numbers": dict(self.numbers)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Create a finding from a dictionary of `as_dict`.

        Raises TypeError for unknown keys or a value that is not a dictionary, ValueError for
        invalid values.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("numbers", {}), Mapping):
            raise TypeError("a finding and its numbers must be dictionaries")
        values = dict(data)
        values |= {name: tuple(data[name]) for name in _TUPLES if name in data}
        for name, kind in _PARTS.items():
            if data.get(name) is not None:
                values[name] = kind(**data[name])
        return cls(**values)


_TUPLES = ("labels", "remarks")
_PARTS: Mapping[str, type[Cell] | type[GapScores] | type[KnownList]] = {
    "cell": Cell,
    "scores": GapScores,
    "known_list": KnownList,
}
_TEXTS = tuple(entry.name for entry in fields(Finding) if entry.type == "str")
_NUMBERS: Mapping[str, type[float] | type[int]] = {
    **dict.fromkeys(("value", "low", "high", "chance", "control", "p"), float),
    **dict.fromkeys(("n", "count"), int),
}


def _number(value: Any, kind: type[float] | type[int], name: str) -> float | int:
    """Convert a number or NumPy scalar to Python's type. Raises ValueError if its value would
    change.
    """
    try:
        plain = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be of type {kind.__name__}") from None
    if plain != value and not math.isnan(plain):
        raise ValueError(f"{name} must be of type {kind.__name__}")
    return plain


def _plain(value: Any) -> Number:
    """Convert NumPy scalars to Python's types. Raises ValueError for anything but a number."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError("the further numbers of a finding must be numbers")


def document(
    command: str,
    findings: Iterable[Finding],
    *,
    seed: int | None,
    measures: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, Any]:
    """Return the findings document (`clinveil.findings/2`) as a dictionary.

    Args:
        measures: descriptions of the measures, by name.
    """
    return {
        "schema": SCHEMA,
        "version": version("clinveil"),
        "command": command,
        "seed": seed,
        "findings": [f.as_dict() for f in findings],
        **({} if measures is None else {"measures": measures}),
    }


def write_findings(
    target: str | Path,
    command: str,
    findings: Iterable[Finding],
    *,
    seed: int | None,
    measures: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Write the findings document atomically to a file (0600), or to stdout for `-`."""
    whole = document(command, findings, seed=seed, measures=measures)
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
        return
    with atomic(Path(target), force=True) as part:
        part.write_text(text, encoding="utf-8")


def read_findings(path: str | Path) -> list[Finding]:
    """Read the findings of a file. Raises InputError if it is not a findings document."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError
        return [Finding.from_dict(item) for item in data["findings"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        hint = "create it with --json of this version"
        raise InputError(f"not a findings file ({SCHEMA})", where=path.name, hint=hint) from None
