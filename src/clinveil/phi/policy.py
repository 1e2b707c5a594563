"""From what several detectors found to spans that do not overlap, and what becomes of each kind of identifier.

Spans that share a character become one that covers them all, so that no tail of an identifier is left; its label is
that of the longest, then of the surest. A name that ends inside a word or before a hyphened part takes the rest too.

A `Policy` says of every label of `spans.LABELS` what becomes of it. Ours are files of `profiles/`; a site's own file
changes some of them. Nothing is kept because it was forgotten: a label that a file does not name is treated as the
profile that it builds on says.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from clinveil.core.errors import UsageError
from clinveil.core.spans import LABELS, Span

Mode = Literal["remove", "replace", "tag"]


def resolve(text: str, spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Sorted spans without overlaps that cover every character of the given ones.

    The order in which spans are given changes nothing. `kept` are labels that a policy leaves as they are: a span of
    another label that touches one of these wins, so that no name stays because it may be a town.
    """
    return united((_to_word_edges(text, span) if span.label == "NAME" else span for span in spans), kept)


def united(spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Sorted spans in which those that overlap have become one; the order in which they are given changes nothing."""
    return [_union(cluster, kept) for cluster in _clusters(sorted(spans))]


def _clusters(spans: list[Span]) -> Iterator[list[Span]]:
    """Runs of sorted spans in which each overlaps one before it."""
    run, reach = list[Span](), 0
    for span in spans:
        if span.start >= reach and run:
            yield run
            run = []
        run.append(span)
        reach = max(reach, span.end)
    if run:
        yield run


def _union(spans: list[Span], kept: Collection[str]) -> Span:
    if len(spans) == 1:
        return spans[0]
    winner = max(spans, key=lambda s: (s.label not in kept, s.end - s.start, s.score, s.label, s.detector))
    return winner.over(spans[0].start, max(s.end for s in spans))


def _to_word_edges(text: str, span: Span) -> Span:
    """Grow a name to the edges of its words, hyphened parts included; a possessive ending stays outside."""
    start, end = span.start, span.end
    while start > 0 and text[start - 1].isalpha() and text[start].isalpha():
        start -= 1
    while end < len(text) and _goes_on(text, end):
        end += 1
    return span if (start, end) == (span.start, span.end) else span.over(start, end)


def _goes_on(text: str, end: int) -> bool:
    """Whether the character at `end` belongs to the word before it."""
    if text[end].isalpha():
        return text[end - 1].isalpha() or text[end - 1] == "-"
    return text[end] == "-" and text[end - 1].isalpha() and text[end + 1 : end + 2].isalpha()


class Treatment(Enum):
    """What stands in the place of an identifier.

    Nothing, its typed tag, three asterisks whatever its length, an invented one, a date moved by the patient's secret
    offset, something coarser (the year, 90+, three digits of a postal code, the state), or itself.
    """

    KEEP = "keep"
    REMOVE = "remove"
    TAG = "tag"
    MASK = "mask"
    SURROGATE = "surrogate"
    SHIFT = "shift"
    GENERALISE = "generalise"


MASK = "***"
_ALWAYS = (Treatment.KEEP, Treatment.REMOVE, Treatment.TAG, Treatment.MASK)
# There is no surrogate for what only hints at a picture or a finger.
_MORE: dict[str, tuple[Treatment, ...]] = {
    "DATE": (Treatment.SHIFT, Treatment.GENERALISE),
    "AGE": (Treatment.GENERALISE,),
    "ZIP": (Treatment.SURROGATE, Treatment.GENERALISE),
    "CITY": (Treatment.SURROGATE, Treatment.GENERALISE),
    "BIOMETRIC": (),
    "PHOTO": (),
}
_MEANS = {
    Treatment.KEEP: "KEPT as they are, as the policy says",
    Treatment.REMOVE: "removed",
    Treatment.TAG: "tagged",
    Treatment.MASK: "masked",
    Treatment.SURROGATE: "replaced by a surrogate, or a tag where none can be made",
    Treatment.SHIFT: "moved by a secret offset a patient, or a tag where that cannot be done",
    Treatment.GENERALISE: "replaced by something coarser, or a tag where that cannot be done",
}


def allowed(label: str) -> tuple[Treatment, ...]:
    """The treatments that a label may have."""
    return _ALWAYS + _MORE.get(label, (Treatment.SURROGATE,))


def tag(label: str) -> str:
    """The typed tag of a label: `[NAME]`."""
    return f"[{label}]"


@dataclass(frozen=True)
class Policy:
    """What becomes of each kind of identifier.

    Attributes:
        name: of the profile, the mode or the file.
        treatments: of every label of `spans.LABELS`.
        bare_years: whether a year without day and month, which no rule of 45 CFR 164.514 forbids, moves with the dates.
        recall_first: whether it asks for a search that would rather take too much.
    """

    name: str
    treatments: Mapping[str, Treatment]
    bare_years: bool = False
    recall_first: bool = False

    @classmethod
    def of_mode(cls, mode: str) -> Policy:
        """The short forms: all is removed, all is tagged, or (`replace`) the profile research."""
        if mode == "replace":
            return cls.of_profile("research")
        if mode not in ("remove", "tag"):
            raise UsageError(f"unknown mode {mode!r}", hint="remove, replace or tag")
        return cls(mode, dict.fromkeys(LABELS, Treatment(mode)))

    @classmethod
    def of_profile(cls, name: str) -> Policy:
        """One of `profiles()`. Raises UsageError for another name."""
        if name not in profiles():
            raise UsageError(f"there is no PHI profile {name!r}", hint="one of " + ", ".join(profiles()))
        return _profile(name)

    @classmethod
    def read(cls, path: Path) -> Policy:
        """A site's own file (docs/policies.md). Raises UsageError, which names file, key and what is allowed."""
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise UsageError("is not there or is no TOML file", where=path.name) from None
        return _policy("a policy file", path.name, said)  # its name may tell whose it is

    def __getitem__(self, label: str) -> Treatment:
        """The treatment of a label. Raises UsageError for one that is not known: nothing is kept by mistake."""
        if label not in self.treatments:
            raise UsageError(f"unknown PHI label {label!r}")
        return self.treatments[label]

    @property
    def kept(self) -> frozenset[str]:
        """The labels that stay as they are."""
        return frozenset(label for label, what in self.treatments.items() if what is Treatment.KEEP)

    @property
    def warning(self) -> str:
        """What is said wherever the policy runs and something stays; empty where nothing does."""
        return f"KEPT: the policy ({self.name}) leaves {', '.join(sorted(self.kept))} as they are" if self.kept else ""

    @property
    def digest(self) -> str:
        """SHA-256 in hex of what it says; its name does not count."""
        return hashlib.sha256(json.dumps(self.record(), sort_keys=True).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """What it says, ready for JSON."""
        said = {label: what.value for label, what in self.treatments.items()}
        return {"labels": said, "bare_years": self.bare_years, "recall_first": self.recall_first}

    def describe(self, label: str) -> str:
        """What becomes of a label, in words for people."""
        return _MEANS[self[label]]


_KEYS = ("base", "labels", "bare_years", "recall_first")


@cache
def profiles() -> tuple[str, ...]:
    """The names of our profiles."""
    found = files("clinveil.phi").joinpath("profiles").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in found if file.name.endswith(".toml")))


@cache
def _profile(name: str) -> Policy:
    file = files("clinveil.phi").joinpath("profiles", f"{name}.toml")
    return _policy(name, file.name, tomllib.loads(file.read_text(encoding="utf-8")), ours=True)


def _policy(name: str, where: str, said: Mapping[str, Any], *, ours: bool = False) -> Policy:
    _refuse(where, "this file has no key", said, _KEYS)
    base = said.get("base", "safe-harbor")
    if not ours and base not in profiles():
        raise UsageError("base: no such profile", where=where, hint="one of " + ", ".join(profiles()))
    labels = said.get("labels", {})
    if not isinstance(labels, dict):
        raise UsageError("labels: a table is wanted", where=where, hint='[labels], then lines as NAME = "tag"')
    _refuse(where, "labels: there is no class", labels, LABELS)
    under = Policy(name, {}) if ours else _profile(base)
    own = {label: _treatment(where, label, what) for label, what in labels.items()}
    switches = {key: said.get(key, getattr(under, key)) for key in ("bare_years", "recall_first")}
    for key, value in switches.items():
        if not isinstance(value, bool):
            raise UsageError(f"{key}: true or false is wanted", where=where)
    return Policy(name, {**under.treatments, **own}, **switches)


def _refuse(where: str, what: str, given: Iterable[str], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{what} {key!r}", where=where, hint="one of " + ", ".join(known))


def _treatment(where: str, label: str, what: Any) -> Treatment:
    names = [one.value for one in allowed(label)]
    if what not in names:
        raise UsageError(f"labels.{label}: no treatment of this class", where=where, hint=", ".join(names))
    return Treatment(what)
