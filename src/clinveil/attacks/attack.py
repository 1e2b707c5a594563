"""The shape of an attack: a value with settings that looks at what there is, and returns findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

from clinveil.core.finding import Finding
from clinveil.core.registry import Registry
from clinveil.core.words import MeasureText

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.channel.channel import Channel
    from clinveil.corpus.corpus import Corpus
    from clinveil.corpus.people import Patient
    from clinveil.lm.model import LanguageModel
    from clinveil.vectors.count import WordCounts
    from clinveil.vectors.table import Vectors


@dataclass(frozen=True)
class Context:
    """What was released, and what is secret of it, as far as it is at hand; what is not is None.

    Attributes:
        channel: the mechanism of the release. counts: word frequencies of the source. memo: scope of repeated draws.
        original, released: the notes of both sides. entered: the notes as they entered the channel.
        notes, patients: released id -> source id. known: the patients of the feed, by id.
        vectors: word vectors that are to be released. names: full names. codes: code -> words of its description.
        model: a language model. training, held_out: notes that it learnt from, and did not.
        keep: columns of the release that stand as they were. workers: threads.
    """

    channel: Channel | None = None
    counts: WordCounts | None = None
    memo: str | None = None
    original: Corpus | None = None
    released: Corpus | None = None
    entered: Corpus | None = None
    notes: Mapping[str, str] | None = None
    patients: Mapping[str, str] | None = None
    known: Mapping[str, Patient] | None = None
    vectors: Vectors | None = None
    names: list[tuple[str, ...]] | None = None
    codes: Mapping[str, tuple[str, ...]] | None = None
    model: LanguageModel | None = None
    training: Any = None
    held_out: Any = None
    keep: tuple[str, ...] = ()
    workers: int = 1

    def has(self, needs: frozenset[str]) -> bool:
        """Whether all that an attack needs is at hand. Raises ValueError for a need that no context knows."""
        if unknown := needs - {field.name for field in fields(self)}:
            raise ValueError(f"no context holds {', '.join(sorted(unknown))}")
        return all(getattr(self, need) not in (None, {}) for need in needs)


class Attack(Protocol):
    """One attack. Its fields are its settings, and its flags on the command line.

    Attributes:
        needs: fields of the `Context` without which it cannot be tried.
        words: what the report says of each of its measures, by dotted name.
    """

    needs: frozenset[str]
    words: Mapping[str, MeasureText]

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Try it. `context.has(needs)` holds."""
        ...


attacks: Registry[type[Attack]] = Registry(
    "attack", *(f"clinveil.attacks.{held}" for held in ("vectors", "channel", "text", "models"))
)
"""All attacks by the name that the command line and the report know them by."""
