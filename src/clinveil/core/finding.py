"""`Finding`, one measured number, and the file that findings are written to.

A privacy attack and a utility test have the same shape: they take what was released, what is secret and an explicit
random generator, and return findings. They differ only in which direction is good.
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

from clinveil.core.errors import InputError
from clinveil.core.files import private_text

SCHEMA = "clinveil.findings/1"
Better = Literal["lower", "higher"]
ControlKind = Literal["negative", "positive"]
Detail = Mapping[str, float | int | str | bool | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured number, with its interval, chance and control.

    Attributes:
        measure: `room.name`, for example `attack.names`.
        value: the number; None where it could not be had, with `detail["why"]`.
        low, high: a 95 % interval unless `method` says otherwise.
        n: how many things were counted, in `unit`s (tokens, notes, patients, pairs).
        chance: what guessing scores on this case, computed for it; `chance_is` says what was guessed.
        control: what the same measure scores on a case whose answer is known; `control_is` says which.
        control_kind: "negative" where nothing is to be found, "positive" where all is: the attack must find it.
        better: the direction that is good.
        source: the paper and its table or equation, or the section of the documentation.
        count: how many of the n were hits, where the value is a share.
        p: a P value; `p_is` says of which test.
        method: how low and high were made, and their level.
        question: what was asked, in words, where the measure's own text does not say it.
        detail: numbers and labels of this measure alone; never note text, a word of a note, a path or an id.

    Raises:
        ValueError: NaN or infinity anywhere, a P outside 0 to 1, a null number without `detail["why"]`, an interval
            upside down, a negative n, a count outside 0 to n, a field of the wrong type, or a detail that has a field
            of its own.
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
        self._refuse_other_types()
        if "." not in self.measure:
            raise ValueError(f"a measure is named room.name, not {self.measure!r}")
        object.__setattr__(self, "detail", MappingProxyType({k: _plain(v) for k, v in self.detail.items()}))
        if told := sorted(_LIFT.keys() & self.detail.keys()):
            raise ValueError(f"{self.measure}: {', '.join(told)} is a field of a finding, no detail")
        for name, kind in _NUMBERS.items():  # NumPy scalars too become Python's own
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _number(number, kind, f"{self.measure}: {name}"))
        numbers = [self.value, self.low, self.high, self.chance, self.control, self.p]
        numbers += [v for v in self.detail.values() if isinstance(v, float)]
        if any(v is not None and not math.isfinite(v) for v in numbers):
            raise ValueError(f"{self.measure}: a finding holds no NaN or infinity; use null and say why")
        if not 0 <= (self.count or 0) <= self.n:
            raise ValueError(f"{self.measure}: n is 0 or more, and a count lies between 0 and n")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"{self.measure}: a P value lies between 0 and 1")
        if self.value is None and "why" not in self.detail:
            raise ValueError(f"{self.measure}: a null value needs detail['why']")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"{self.measure}: the interval is upside down")

    def _refuse_other_types(self) -> None:
        """Raise ValueError for labels that are no strings or not among the known ones, and for n without a number."""
        fits = all(isinstance(getattr(self, name), str) for name in _LABELS)
        fits &= self.better in (None, "lower", "higher") and self.control_kind in (None, "negative", "positive")
        if not fits or self.n is None or not isinstance(self.detail, Mapping):
            raise ValueError("a finding has a field of the wrong type")

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {**{k: getattr(self, k) for k in (*_ORDER, *_TYPED)}, "detail": dict(self.detail)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """The finding of a dictionary made by `as_dict`, or by a version that kept the typed fields in its detail.

        Raises TypeError for unknown keys, and for what is no dictionary; ValueError for values that do not fit.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("detail", {}), Mapping):
            raise TypeError("a finding and its detail are dictionaries")
        detail = data.get("detail", {})
        rest = {k: v for k, v in detail.items() if k not in _LIFT}
        given = {k: v for k, v in data.items() if k not in _TYPED or v not in (None, "")}
        return cls(**{**_lifted(detail), **given, "detail": rest})


_ORDER = ("measure", "value", "low", "high", "n", "chance", "control", "better", "source")
_TYPED = ("unit", "count", "p", "p_is", "method", "chance_is", "control_is", "control_kind", "question")
_LABELS = ("measure", "source", "unit", "p_is", "method", "chance_is", "control_is", "question")
_NUMBERS: Mapping[str, type[float] | type[int]] = {
    **dict.fromkeys(("value", "low", "high", "chance", "control", "p"), float),
    **dict.fromkeys(("n", "count"), int),
}
_LIFT: Mapping[str, tuple[str, Any]] = {
    **{"count": ("count", int), "p": ("p", float | int)},
    **{"interval": ("method", str), "chance": ("chance_is", str), "control": ("control_is", str)},
    **{name: (name, str) for name in ("unit", "p_is", "chance_is", "control_is", "question")},
}


def _lifted(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The typed fields that a finding of an older file has in its detail."""
    return {name: detail[key] for key, (name, kind) in _LIFT.items() if isinstance(detail.get(key), kind)}


def _number(value: Any, kind: type[float] | type[int], name: str) -> float | int:
    """A NumPy scalar or a number as Python's own; ValueError for what would change by that."""
    try:
        plain = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is no number, or none of its kind") from None
    if plain != value and not math.isnan(plain):
        raise ValueError(f"{name} is no number, or none of its kind")
    return plain


def _plain(value: Any) -> float | int | str | bool | None:
    """NumPy scalars to Python's own; anything that is not a scalar is refused."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a finding's detail holds numbers and labels only")


def document(command: str, findings: Iterable[Finding], *, seed: int | None) -> dict[str, Any]:
    """The whole findings document (`clinveil.findings/1`) as a dictionary."""
    return {
        "schema": SCHEMA,
        "version": version("clinveil"),
        "command": command,
        "seed": seed,
        "findings": [f.as_dict() for f in findings],
    }


def write_findings(target: str | Path, command: str, findings: Iterable[Finding], *, seed: int | None) -> None:
    """Write the findings document to a file (0600, whole or not at all), or to stdout for `-`."""
    text = json.dumps(document(command, findings, seed=seed), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
        return
    private_text(Path(target), text)


def read_findings(path: str | Path) -> list[Finding]:
    """The findings of a file. Raises InputError if the file is not a findings document."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        known = data["schema"] == SCHEMA
        findings = [Finding.from_dict(item) for item in data["findings"]] if known else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError("not a findings file", where=path.name, hint="make it with --json") from None
    if not known:
        raise InputError(f"its schema is not {SCHEMA}", where=path.name)
    return findings
