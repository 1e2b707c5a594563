"""The `Detector` protocol, and the detector that most kinds of identifier need: a list of rules.

To add a kind of identifier, write one file of `detectors/` that registers a detector; other distributions name theirs
in the entry point group `clinveil.detectors`. The order of detectors means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from clinveil.core.registry import Registry
from clinveil.core.spans import LABELS, Span
from clinveil.phi.matcher import Matcher, candidates, matcher
from clinveil.phi.note import NoteView


class Detector(Protocol):
    """Finds one kind of identifier. It has no state: the same note gives the same spans."""

    @property
    def name(self) -> str:
        """The name that its spans carry."""
        ...

    @property
    def labels(self) -> frozenset[str]:
        """The labels that its spans may carry."""
        ...

    @property
    def examples(self) -> tuple[str, ...]:
        """Notes in which all that it finds is marked, `Dr. {NAME:Foley} came.`: its documentation and its tests."""
        ...

    def find(self, note: NoteView) -> Iterable[Span]:
        """Spans in code points of `note.text`, in any order; they may overlap."""
        ...


detectors: Registry[Detector] = Registry("detector", "clinveil.phi.detectors")


def all_detectors() -> tuple[Detector, ...]:
    """All detectors that are registered."""
    return tuple(detector for _, detector in detectors)


def covered() -> frozenset[str]:
    """The labels that some detector can find, from the detectors themselves."""
    return frozenset[str]().union(*(detector.labels for detector in all_detectors()))


Check = Callable[[re.Match[str], NoteView], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern on the plain copy, and when it counts.

    Attributes:
        label: the label of what it finds.
        pattern: its group `phi`, or where it has none the whole match, is the identifier.
        example: a note with all that this rule finds in braces: `Seen on {3/4/2019}.`
        score: what it claims, in (0, 1].
        check: a last look at a match; False drops it.
    """

    label: str
    pattern: re.Pattern[str]
    example: str
    score: float = 0.9
    check: Check | None = None

    @classmethod
    def any_case(cls, label: str, pattern: str, example: str, **options: Any) -> Rule:
        """A rule that takes capitals and small letters for the same."""
        return cls(label, re.compile(pattern, re.IGNORECASE), example, **options)

    @property
    def why(self) -> str:
        """What this rule looks for, from its own example: `Seen on {3/4/2019}.` is `Seen on 9/9/9999`."""
        return _shape(self.example)

    def found(self, note: NoteView) -> Iterator[tuple[int, int]]:
        """The places in the plain copy that the rule names."""
        yield from self.among(matcher(self.pattern), note)

    def among(self, where: Matcher, note: NoteView) -> Iterator[tuple[int, int]]:
        """The same, of one who has looked up where its pattern can match."""
        group = "phi" if "phi" in self.pattern.groupindex else 0
        for match in where.matches(note):
            if match.end(group) > match.start(group) and (self.check is None or self.check(match, note)):
                yield match.span(group)


@dataclass(frozen=True, slots=True)
class RuleDetector:
    """A detector made of rules, each of which is tried only where it can match.

    Raises ValueError for a label that `core.spans.LABELS` does not hold: no mode would know what to do with it.
    """

    name: str
    rules: tuple[Rule, ...]

    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _sought: frozenset[int | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unknown := sorted(self.labels.difference(LABELS)):
            raise ValueError(f"detector {self.name}: there is no label {unknown[0]}")
        # At once: each pattern that is new later would have all words looked through again.
        object.__setattr__(self, "_matchers", tuple(matcher(rule.pattern) for rule in self.rules))
        object.__setattr__(self, "_sought", frozenset(place.number for place in self._matchers))

    def __reduce__(self) -> tuple[Any, ...]:
        return RuleDetector, (self.name, self.rules)  # so that a worker's copy knows its places too

    @property
    def labels(self) -> frozenset[str]:
        """The labels of its rules."""
        return frozenset(rule.label for rule in self.rules)

    @property
    def examples(self) -> tuple[str, ...]:
        """One a rule."""
        return tuple(rule.example.replace("{", f"{{{rule.label}:") for rule in self.rules)

    def find(self, note: NoteView) -> Iterator[Span]:
        """What each rule finds, rule by rule."""
        there = candidates(note)
        if self._sought.isdisjoint(there) and None not in self._sought:
            return
        for rule, place in zip(self.rules, self._matchers, strict=True):
            if place.number is None or place.number in there:
                for start, end in rule.among(place, note):
                    yield note.span(start, end, rule.label, self.name, rule.score, rule.why)


_FIRST_MARK = re.compile(r"(?P<before>[^{}]*)\{(?P<phi>[^{}]*)\}")
_SHAPE = str.maketrans(
    "0123456789" + "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "9" * 10 + "x" * 26 + "X" * 26
)
_FIGURES = str.maketrans("0123456789", "9" * 10)


@cache
def _shape(example: str) -> str:
    """The first identifier of an example with 9 for its digits and x for its letters, after the words before it."""
    match = _FIRST_MARK.match(example)
    before, phi = (match["before"], match["phi"]) if match else ("", "")
    return " ".join((before[-40:].translate(_FIGURES) + phi.translate(_SHAPE)).split())


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def before(match: re.Match[str], note: NoteView, width: int) -> str:
    """The lower-cased text of up to `width` characters before the identifier of a match."""
    start = match.start("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[max(0, start - width) : start].lower()


def after(match: re.Match[str], note: NoteView, width: int) -> str:
    """The lower-cased text of up to `width` characters after the identifier of a match."""
    end = match.end("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[end : end + width].lower()
