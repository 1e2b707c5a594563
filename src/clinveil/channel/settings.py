"""Settings of word replacement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_serializer,
    model_validator,
)

from clinveil.channel.policy import Layout, Numbers, WritingPolicy
from clinveil.core import Affects, Settings, setting


class NeighbourRange(BaseModel):
    """Number of neighbours to draw from: a fixed N (low = high) or N drawn from low..high (paper A:
    3-14).
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)
    low: int = Field(ge=1, le=1000)
    high: int = Field(ge=1, le=1000)

    @classmethod
    def parse(cls, value: Any) -> Any:
        """Parse `5`, `3-14` or, in Python, (3, 14)."""
        if isinstance(value, tuple | list) and len(value) == 2:
            return {"low": value[0], "high": value[1]}
        if isinstance(value, str | int):
            match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", str(value))
            if not match:
                raise ValueError("write N as 5 or 3-14")
            return {"low": int(match[1]), "high": int(match[2] or match[1])}
        return value

    @model_validator(mode="after")
    def _upwards(self) -> Self:
        if self.high < self.low:
            raise ValueError("the range must not end before its start")
        return self

    @model_serializer
    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


N = Annotated[NeighbourRange, BeforeValidator(NeighbourRange.parse)]


class ChannelSettings(Settings):
    """Settings of word replacement (paper A, Algorithm 1, and extensions)."""

    AFFECTS: ClassVar[Affects] = "treatment"
    n: N = setting(
        "3-14", "Neighbours to draw from: 5, or a range 3-14 from which N is drawn.", short="-n"
    )
    layout: Layout = setting(
        "plain", "Words only, words and sentence ends, or keep ASCII punctuation and lines."
    )
    numbers: Numbers = setting(
        "drop", "Drop numbers, or write one # per digit; they are never kept."
    )
    drop_words: Path | None = setting(None, "File of words to drop, one per line.", secret="path")
    drop_stop_words: bool = setting(False, "Drop English function words, except negations.")
    mechanism: Literal["neighbours", "contextual"] = setting(
        "neighbours", "Draw each word by itself, or in the context of the words written before."
    )
    background: float = setting(
        0.0,
        "Share of words that do not follow the note: common words, or words of the language model.",
        ge=0,
        le=1,
    )
    context_strength: float = setting(
        1.0, "Weight of the context among the neighbours of a word (contextual).", ge=0, le=2
    )
    ngram_patients: int = setting(
        5, "Patients that must share a word sequence of the language model (contextual).", ge=2
    )
    unknown: Literal["pool", "drop"] = setting(
        "pool", "Replace a word without a vector by a common word, or drop it."
    )
    min_patients: int = setting(5, "Never release a word used by fewer patients.", ge=1)
    keep_words: Path | None = setting(
        None,
        "File of words to leave unchanged, one per line; the report shows the cost.",
        secret="path",
    )
    allow_small: bool = setting(
        False,
        "Allow fewer than 50 patients (paper A: not for small data sets).",
        affects="notes",
    )

    @property
    def uses_model(self) -> bool:
        """Whether words are drawn with a language model. With `background` and `context_strength` 0
        the mechanism `contextual` is `neighbours`.
        """
        is_paper_a = self.background == 0 and self.context_strength == 0
        return self.mechanism == "contextual" and not is_paper_a

    @property
    def policy(self) -> WritingPolicy:
        """How to write notes with the channel."""
        return WritingPolicy(
            layout=self.layout,
            numbers=self.numbers,
            background=self.background,
            context_strength=self.context_strength if self.uses_model else 0.0,
        )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.background and self.unknown == "drop":
            raise ValueError("background requires unknown=pool")
        return self

    @field_validator("n")
    @classmethod
    def _at_least_two(cls, value: NeighbourRange) -> NeighbourRange:
        if value.low < 2:
            raise ValueError(
                "N must be at least 2: with one neighbour the replacement is a fixed code"
            )
        return value
