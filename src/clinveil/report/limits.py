"""Limits of a release: what each risk may at most be, for each audience.

The limits are those of `limits.toml`; the officer replaces some or all of them with a file of the
same form.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from clinveil.core import UsageError

Audience = Literal["agreement", "public"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
UNLIMITED = "none"
_TEXTS = ("unit", "above", "reason", "covers")
_HINT = "clinveil init-config limits prints the file with all limits"


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of one risk for one audience.

    Attributes:
        most: the largest value that is allowed, in `unit`; None: not limited.
        above: what the limit is added to, or "".
        reason: why this limit. covers: what an agreement must say where there is none.
        default: the limit of the package; `most` differs where the officer changed it.
        exact: only 0 can be the limit, because the risk is counted or tested, not a share.
    """

    risk: str
    audience: Audience
    most: float | None
    unit: str
    reason: str
    covers: str
    above: str = ""
    default: float | None = None
    exact: bool = False

    @property
    def changed(self) -> bool:
        """Whether the officer changed the limit."""
        return self.most != self.default


@dataclass(frozen=True)
class Limits:
    """The limits of all risks for all audiences."""

    _by_risk: Mapping[tuple[str, Audience], Limit] = field(repr=False)

    @classmethod
    def read(cls, path: Path | None = None) -> Limits:
        """Return the limits of the package, replaced by those of an officer's file.

        Raises:
            UsageError: the file cannot be read, or has an unknown risk, an unknown key, or a value
                out of range.
        """
        defaults = _defaults()
        if path is None:
            return cls(defaults)
        return cls({**defaults, **dict(_changes(path, defaults))})

    def rules(self, audience: Audience) -> Mapping[str, Limit]:
        """Return the limit of each risk for an audience."""
        return {risk: limit for (risk, one), limit in self._by_risk.items() if one == audience}


def limits_file() -> str:
    """Return the text of the package's limits file."""
    return files("clinveil.report").joinpath("limits.toml").read_text(encoding="utf-8")


@cache
def _defaults() -> Mapping[tuple[str, Audience], Limit]:
    limits = dict[tuple[str, Audience], Limit]()
    for risk, entry in tomllib.loads(limits_file()).items():
        for audience in AUDIENCES:
            value = entry[audience]
            most = None if value == UNLIMITED else value
            texts = {name: entry.get(name, "") for name in _TEXTS}
            limits[risk, audience] = Limit(
                risk=risk,
                audience=audience,
                most=most,
                unit=texts["unit"],
                reason=texts["reason"],
                covers=texts["covers"],
                above=texts["above"],
                default=most,
                exact=not texts["unit"].startswith(("share of", "AUC")),
            )
    return limits


def _changes(
    path: Path, defaults: Mapping[tuple[str, Audience], Limit]
) -> Iterator[tuple[tuple[str, Audience], Limit]]:
    """Yield risk, audience and limit of an officer's file."""
    known = {risk for risk, _ in defaults}
    for risk, entry in _loaded(path).items():
        if risk not in known:
            hint = f"risks are {', '.join(sorted(known))}; {_HINT}"
            raise UsageError(f"unknown risk {risk}", where=path.name, hint=hint)
        if not isinstance(entry, dict):
            hint = f"write [{risk}] on one line and agreement = … below; {_HINT}"
            raise UsageError(f"{risk} is not a table", where=path.name, hint=hint)
        if unknown := sorted(entry.keys() - {*AUDIENCES, *_TEXTS}):
            hint = f"keys are {', '.join(AUDIENCES)} and reason"
            raise UsageError(f"unknown key {unknown[0]} of {risk}", where=path.name, hint=hint)
        for audience in AUDIENCES:
            default = defaults[risk, audience]
            most = default.most
            if audience in entry:
                most = _value(path, risk, audience, entry[audience], default)
            reason = str(entry.get("reason", default.reason))
            yield (risk, audience), replace(default, most=most, reason=reason)


def _loaded(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError("the file does not exist", where=path.name, hint=_HINT) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"is not TOML: {error}", where=path.name, hint=_HINT) from None


def _value(path: Path, risk: str, audience: str, value: Any, default: Limit) -> float | None:
    """Return a limit of an officer's file; None for "none"."""
    if value == UNLIMITED:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    most = 0.0 if default.exact else 1.0
    if not is_number or not 0 <= value <= most:
        allowed = "0" if default.exact else "a share between 0 and 1"
        hint = f'write {allowed}, or "{UNLIMITED}" to measure without a limit'
        raise UsageError(f"{risk}: {audience} = {value!r}", where=path.name, hint=hint)
    return float(value)
