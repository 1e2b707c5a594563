"""`Detector` protocol, and `RuleDetector`, a detector made of regular expressions.

To add a kind of identifier, write a file in `detectors/` and add its detector to `DETECTORS` of
`detectors/__init__.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from clinveil.core import LABELS, Span
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import Anchor, candidates, matcher

# Of an identifier that begins or ends with a digit.
BEGIN = r"(?<!\d)"
END = r"(?!\d)"
# The same, and not the fraction or the whole part of a decimal.
WHOLE_BEGIN = rf"{BEGIN}(?<!\d[.,])"
WHOLE_END = r"(?!\d|[.,]\d)"
# The same, and not one side of a ratio, a range, a version or a time.
ALONE_BEGIN = rf"{BEGIN}(?<!\d[.,/:-])"
ALONE_END = r"(?!\d|[.,/:-]\d|\s?%)"
# Of an identifier that begins or ends with a letter: not inside a word. Digits and underscores are
# borders.
WORD_BEGIN = r"(?<![A-Za-z])"
WORD_END = r"(?![A-Za-z])"
# Of a code of letters and digits: not inside another code.
CODE_BEGIN = r"(?<![A-Za-z\d])"
CODE_END = r"(?![A-Za-z\d])"
# Of text that ends with a letter or a digit.
ANY_END = rf"(?:(?<=\d){END}|(?<!\d){WORD_END})"
# Between a label and its value, or around the dash of a range.
GAP = r"[^\w\n]{0,6}"


class Detector(Protocol):
    """Detects one kind of identifier. It is stateless: the same note gives the same spans."""

    @property
    def name(self) -> str:
        """Name of the detector in its spans."""
        ...

    @property
    def labels(self) -> frozenset[str]:
        """Labels that its spans can have."""
        ...

    @property
    def examples(self) -> tuple[str, ...]:
        """Notes with all findings marked, `Dr. {NAME:Foley} came.`; they serve as documentation and
        tests.
        """
        ...

    def find(self, note: NoteView) -> Iterable[Span]:
        """Return spans in code points of `note.text`, in any order; they may overlap."""
        ...


Check = Callable[[re.Match[str], NoteView], bool]
Follow = Callable[[NoteView, int], Iterable[tuple[int, int, str]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Regular expression on the normalised copy of a note.

    Attributes:
        label: label of its spans.
        pattern: the identifier is its group `phi`, or the whole match if it has no such group.
        example: a note with all findings of this rule in braces: `Seen on {3/4/2019}.`
        score: confidence in (0, 1].
        check: predicate on a match; False rejects it.
        anchor: text that every match contains. Without one, the pattern is tried at every offset.
    """

    label: str
    pattern: re.Pattern[str]
    example: str
    score: float = 0.9
    check: Check | None = None
    anchor: Anchor | None = None

    @classmethod
    def any_case(
        cls,
        label: str,
        pattern: str,
        example: str,
        score: float = 0.9,
        check: Check | None = None,
        anchor: Anchor | None = None,
    ) -> Rule:
        """Return a rule that ignores case."""
        return cls(label, re.compile(pattern, re.IGNORECASE), example, score, check, anchor)

    @property
    def why(self) -> str:
        """Description of the rule, derived from its example: `Seen on {3/4/2019}.` gives `Seen on
        9/9/9999`.
        """
        return _shape(self.example)

    def find(self, note: NoteView) -> Iterator[tuple[int, int]]:
        """Yield the offsets of identifiers in the normalised copy."""
        group = "phi" if "phi" in self.pattern.groupindex else 0
        for match in matcher(self.pattern, self.anchor).matches(note):
            if match.end(group) > match.start(group) and (
                self.check is None or self.check(match, note)
            ):
                yield match.span(group)


@dataclass(frozen=True, slots=True)
class RuleDetector:
    """Detector made of rules; each pattern is tried only at offsets where it can match.

    Attributes:
        follow: yields the start, end and label of identifiers that follow an ADDRESS in the
            normalised copy.

    Raises ValueError for a label that is not in `core.spans.LABELS`.
    """

    name: str
    rules: tuple[Rule, ...]
    follow: Follow | None = field(default=None, repr=False, compare=False)

    _by_number: dict[int | None, list[Rule]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unknown := sorted(self.labels.difference(LABELS)):
            raise ValueError(f"detector {self.name}: unknown label {unknown[0]}")
        by_number: dict[int | None, list[Rule]] = {}
        # All anchors at once: an anchor added later invalidates the tables.
        for rule in self.rules:
            by_number.setdefault(matcher(rule.pattern, rule.anchor).number, []).append(rule)
        object.__setattr__(self, "_by_number", by_number)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker's copy builds its matchers again.
        return RuleDetector, (
            self.name,
            self.rules,
            self.follow,
        )

    @property
    def labels(self) -> frozenset[str]:
        """Labels of its rules."""
        return frozenset(rule.label for rule in self.rules)

    @property
    def examples(self) -> tuple[str, ...]:
        """Examples of its rules, in order."""
        return tuple(rule.example.replace("{", f"{{{rule.label}:") for rule in self.rules)

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield the findings of each rule, rule by rule."""
        for number in self._by_number.keys() & {None, *candidates(note)}:
            for rule in self._by_number[number]:
                for start, end in rule.find(note):
                    yield note.span(start, end, rule.label, self.name, rule.score, rule.why)
                    if self.follow is not None and rule.label == "ADDRESS":
                        for first, last, label in self.follow(note, end):
                            yield note.span(
                                first, last, label, self.name, rule.score, "after an address"
                            )


_FIRST_MARK = re.compile(r"(?P<before>[^{}]*)\{(?P<phi>[^{}]*)\}")
_SHAPE = str.maketrans(
    "0123456789" + "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "9" * 10 + "x" * 26 + "X" * 26,
)
_DIGITS_MASKED = str.maketrans("0123456789", "9" * 10)


@cache
def _shape(example: str) -> str:
    """Return the text before the first identifier of an example and its shape: 9 for digits, x for
    letters.
    """
    match = _FIRST_MARK.match(example)
    before, phi = (match["before"], match["phi"]) if match else ("", "")
    return " ".join((before[-40:].translate(_DIGITS_MASKED) + phi.translate(_SHAPE)).split())


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def before(match: re.Match[str], note: NoteView, width: int) -> str:
    """Return the lower-case text of up to `width` characters before the identifier of a match."""
    start = match.start("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[max(0, start - width) : start].lower()


def after(match: re.Match[str], note: NoteView, width: int) -> str:
    """Return the lower-case text of up to `width` characters after the identifier of a match."""
    end = match.end("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[end : end + width].lower()
