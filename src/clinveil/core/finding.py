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
from dataclasses import KW_ONLY, dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from clinveil.core.atomic_files import atomic
from clinveil.core.errors import InputError

SCHEMA = "clinveil.findings/1"
Better = Literal["lower", "higher"]
ControlKind = Literal["negative", "positive"]
Detail = Mapping[str, float | int | str | bool | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured number, with its interval, chance level and control.

    Attributes:
        measure: `group.name`, for example `attack.names`.
        value: the number; None if it could not be measured, with the reason in `detail["why"]`.
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
        detail: additional numbers and labels of this measure; never note text, a word of a note, a
            path or an id.

    Raises:
        ValueError: NaN or infinity, a P value outside 0 to 1, a null value without `detail["why"]`,
            low above high, a negative n, a count outside 0 to n, a field of the wrong type, or a
            detail that duplicates a field.
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
    detail: Detail = field(default_factory=dict)
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

    def __post_init__(self) -> None:
        fits = all(isinstance(getattr(self, name), str) for name in _LABELS)
        fits &= self.better in (None, "lower", "higher") and self.control_kind in (
            None,
            "negative",
            "positive",
        )
        if not fits or self.n is None or not isinstance(self.detail, Mapping):
            raise ValueError("a finding has a field of the wrong type")
        if "." not in self.measure:
            raise ValueError(f"a measure must be named group.name, got {self.measure!r}")
        object.__setattr__(
            self, "detail", MappingProxyType({k: _plain(v) for k, v in self.detail.items()})
        )
        if duplicates := sorted(_FIELDS & self.detail.keys()):
            raise ValueError(
                f"{self.measure}: pass {', '.join(duplicates)} as a field, not in detail"
            )
        for name, kind in _NUMBERS.items():  # convert NumPy scalars too
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _number(number, kind, f"{self.measure}: {name}"))
        numbers = [self.value, self.low, self.high, self.chance, self.control, self.p]
        numbers += [v for v in self.detail.values() if isinstance(v, float)]
        if any(v is not None and not math.isfinite(v) for v in numbers):
            raise ValueError(
                f"{self.measure}: NaN or infinity in a finding; use None and give detail['why']"
            )
        if not 0 <= (self.count or 0) <= self.n:
            raise ValueError(f"{self.measure}: n must be at least 0, and count between 0 and n")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"{self.measure}: a P value must be between 0 and 1")
        if self.value is None and "why" not in self.detail:
            raise ValueError(f"{self.measure}: a null value needs detail['why']")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"{self.measure}: low must not exceed high")

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable dictionary."""
        return {**{k: getattr(self, k) for k in (*_ORDER, *_TYPED)}, "detail": dict(self.detail)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Create a finding from a dictionary of `as_dict`.

        Raises TypeError for unknown keys or a value that is not a dictionary, ValueError for
        invalid values.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("detail", {}), Mapping):
            raise TypeError("a finding and its detail must be dictionaries")
        return cls(**data)


_ORDER = ("measure", "value", "low", "high", "n", "chance", "control", "better", "source")
_TYPED = (
    "unit",
    "count",
    "p",
    "p_is",
    "method",
    "chance_is",
    "control_is",
    "control_kind",
    "question",
)
_LABELS = ("measure", "source", "unit", "p_is", "method", "chance_is", "control_is", "question")
_NUMBERS: Mapping[str, type[float] | type[int]] = {
    **dict.fromkeys(("value", "low", "high", "chance", "control", "p"), float),
    **dict.fromkeys(("n", "count"), int),
}
# Names that a detail may not have, because they are fields.
_FIELDS = frozenset(
    {
        "count",
        "p",
        "p_is",
        "interval",
        "chance",
        "chance_is",
        "control",
        "control_is",
        "unit",
        "question",
    }
)


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


def _plain(value: Any) -> float | int | str | bool | None:
    """Convert NumPy scalars to Python's types. Raises ValueError for anything but a scalar."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a finding's detail must contain only numbers and labels")


def document(
    command: str,
    findings: Iterable[Finding],
    *,
    seed: int | None,
    measures: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, Any]:
    """Return the findings document (`clinveil.findings/1`) as a dictionary.

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
