"""`TokenTally`: counts of tokens by outcome, for the report and the accounting gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from clinveil.channel import kernel


@dataclass
class TokenTally:
    """Counts of tokens by outcome; additive, and balanced.

    Attributes:
        notes: notes written; skipped: notes not written, by reason.
        words: WORD tokens read = known + unknown = replaced + kept_words + dropped.
        known, unknown: words with a row in the channel, and the others.
        numbers, punct, other: NUMBER, PUNCT and OTHER tokens read.
        replaced: words drawn from the channel, including self-replacements.
        dropped: words not written, because their row is empty.
        self_replaced: words that were replaced by themselves, kept words excluded.
        kept_words: words left unchanged on request.
        masked: numbers written as `#` shapes; the others are dropped.
        copied: PUNCT tokens written: all ASCII ones (layout "keep"), or sentence ends as `.`
            (layout "sentences"); the others are dropped.
        released: tokens written = replaced + kept_words + masked.
    """

    notes: int = 0
    words: int = 0
    known: int = 0
    unknown: int = 0
    numbers: int = 0
    punct: int = 0
    other: int = 0
    replaced: int = 0
    dropped: int = 0
    self_replaced: int = 0
    kept_words: int = 0
    masked: int = 0
    copied: int = 0
    released: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def read(self) -> int:
        """Notes read."""
        return self.notes + sum(self.skipped.values())

    @property
    def balanced(self) -> bool:
        """Whether every token is accounted for exactly once."""
        read = self.words == self.known + self.unknown
        written = self.words == self.replaced + self.kept_words + self.dropped
        released = self.released == self.replaced + self.kept_words + self.masked
        parts = (
            self.masked <= self.numbers
            and self.copied <= self.punct
            and self.self_replaced <= self.replaced
        )
        return read and written and released and parts

    def __add__(self, other: TokenTally) -> TokenTally:
        return TokenTally(
            notes=self.notes + other.notes,
            words=self.words + other.words,
            known=self.known + other.known,
            unknown=self.unknown + other.unknown,
            numbers=self.numbers + other.numbers,
            punct=self.punct + other.punct,
            other=self.other + other.other,
            replaced=self.replaced + other.replaced,
            dropped=self.dropped + other.dropped,
            self_replaced=self.self_replaced + other.self_replaced,
            kept_words=self.kept_words + other.kept_words,
            masked=self.masked + other.masked,
            copied=self.copied + other.copied,
            released=self.released + other.released,
            skipped=self.skipped + other.skipped,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "skipped"} | {
            "skipped": dict(self.skipped)
        }


def tally_of(counts: list[int], notes: int, skipped: Counter[str]) -> TokenTally:
    """Return the tally of one batch from the counts of the token loop."""
    return TokenTally(
        notes=notes,
        words=counts[kernel.WORDS],
        known=counts[kernel.KNOWN],
        unknown=counts[kernel.UNKNOWN],
        numbers=counts[kernel.NUMBERS],
        punct=counts[kernel.PUNCT],
        other=counts[kernel.OTHER],
        replaced=counts[kernel.REPLACED],
        dropped=counts[kernel.DROPPED],
        self_replaced=counts[kernel.SELF],
        kept_words=counts[kernel.KEPT],
        masked=counts[kernel.MASKED],
        copied=counts[kernel.COPIED],
        released=counts[kernel.RELEASED],
        skipped=skipped,
    )


def tally_from(counts: Mapping[str, Any]) -> TokenTally:
    """Return the tally of a dictionary from `as_dict`."""
    return TokenTally(
        notes=counts["notes"],
        words=counts["words"],
        known=counts["known"],
        unknown=counts["unknown"],
        numbers=counts["numbers"],
        punct=counts["punct"],
        other=counts["other"],
        replaced=counts["replaced"],
        dropped=counts["dropped"],
        self_replaced=counts["self_replaced"],
        kept_words=counts["kept_words"],
        masked=counts["masked"],
        copied=counts["copied"],
        released=counts["released"],
        skipped=Counter(counts["skipped"]),
    )
