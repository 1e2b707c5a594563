"""The shape of an attack: settings that look at what there is, and return findings.

An attack is one file of `attacks/{channel,vectors,text,models}`, or a class that anybody registers; the words of the
report lie in a TOML file beside it, or in the class. This is a whole one:

    from clinveil.attacks.attack import Attack, Context, attacks
    from clinveil.core.finding import Finding
    from clinveil.core.settings import flag
    from clinveil.core.words import MeasureText
    from clinveil.corpus.corpus import rows

    @attacks.register("first-words")
    class FirstWords(Attack):
        \"\"\"How many released notes begin as their source does.\"\"\"

        needs = frozenset({"original", "released", "notes"})
        on_release = True
        words = {
            "attack.first_words": MeasureText(
                title="Notes that begin as they were",
                short="First words",
                kind="share",
                asked="How many released notes begin with the words of their source?",
                means="Whoever knows how a note began finds it again.",
            )
        }
        length: int = flag(3, "Words that are compared.", ge=1)

        def __call__(self, context, rng):
            source = self._beginnings(context.original)
            released = self._beginnings(context.released)
            same = sum(source[context.notes[note]] == begin for note, begin in released.items())
            share = same / len(released)
            return [Finding("attack.first_words", share, len(released), "lower", count=same, unit="notes")]

        def _beginnings(self, corpus):
            return {note.note_id: note.text.split()[: self.length] for note in rows(corpus)}

Other distributions name their class in the entry point group `clinveil.attacks`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import getdoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.registry import Registry
from clinveil.core.settings import Settings
from clinveil.core.types import Say
from clinveil.core.words import MeasureText

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.random import Generator

    from clinveil.channel.channel import Channel
    from clinveil.corpus.corpus import Corpus
    from clinveil.corpus.people import Patient
    from clinveil.lm.model import LanguageModel
    from clinveil.vectors.count import WordCounts
    from clinveil.vectors.table import Neighbours, Vectors


@dataclass(frozen=True)
class Context:
    """What was released, and what is secret of it, as far as it is at hand; what is not is None.

    Attributes:
        channel: the mechanism of the release. counts: word frequencies of the source; prior: of other notes.
        near: the neighbour table over the channel's words. earlier: the mechanism of an earlier release of the same
            notes.
        original, released: the notes of both sides. entered: the notes as they entered the channel.
        others: notes of other people in plain text, which an attacker has.
        public: public texts about the same patients, which an attacker has. alignment: gives, of each source note, the
            places of the words behind its released ones (`channel.apply.ALIGNMENT`).
        notes, patients: released id -> source id. known: the patients of the feed, by id.
        vectors: models of word vectors that are to be released. names: full names, first name first.
        codes: code -> words of its description.
        model: a language model. training, held_out: notes that it learnt from, and did not; reference: of others.
        keep: columns of the release that stand as they were. scratch: a private folder for those who write words down
            to train on them, such as the vault; None: the system's. workers: threads; no finding depends on it.
        say: takes a line for people.
    """

    channel: Channel | None = None
    earlier: Channel | None = None
    counts: WordCounts | None = None
    original: Corpus | None = None
    released: Corpus | None = None
    entered: Corpus | None = None
    others: Corpus | None = None
    public: Corpus | None = None
    alignment: Callable[[], Iterator[pa.RecordBatch]] | None = field(default=None, repr=False)
    notes: Mapping[str, str] | None = field(default=None, repr=False)
    patients: Mapping[str, str] | None = field(default=None, repr=False)
    known: Mapping[str, Patient] | None = field(default=None, repr=False)
    vectors: Sequence[Vectors] | None = None
    names: Sequence[Sequence[str]] | None = field(default=None, repr=False)
    codes: Mapping[str, str] | None = field(default=None, repr=False)
    model: LanguageModel | None = None
    training: Any = field(default=None, repr=False)
    held_out: Any = field(default=None, repr=False)
    reference: Any = field(default=None, repr=False)
    prior: WordCounts | None = None
    near: Neighbours | None = field(default=None, repr=False)
    keep: tuple[str, ...] = ()
    scratch: Path | None = field(default=None, repr=False)
    workers: int = 2
    say: Say = lambda line: None

    @cached_property
    def occurrences(self) -> Mapping[str, int] | None:
        """How often each word of the source occurs, None without `counts`."""
        counts = self.counts
        return None if counts is None else dict(zip(counts.words, counts.counts.tolist(), strict=True))

    @property
    def full_names(self) -> list[str]:
        """Full names of the known patients; none without a feed."""
        return [" ".join(patient.name) for patient in (self.known or {}).values()]

    def has(self, needs: frozenset[str]) -> bool:
        """Whether all that an attack needs is at hand. Raises ValueError for a need that no context knows."""
        if unknown := needs - {field.name for field in fields(self)}:
            raise ValueError(f"no context holds {', '.join(sorted(unknown))}")
        return all(_is_there(getattr(self, need)) for need in needs)


def _is_there(value: object) -> bool:
    """Neither None nor an empty table or list."""
    return value is not None and not (isinstance(value, Mapping | tuple | list) and not value)


def source_id(released: str, crosswalk: Mapping[str, str] | None) -> str:
    """The source id of a released note or patient; the same id without a crosswalk.

    Raises InputError if the crosswalk does not know it.
    """
    if crosswalk is None:
        return released
    if released not in crosswalk:
        raise InputError("a released id is not in the crosswalk", hint="name the vault of this release")
    return crosswalk[released]


class Attack(Settings):
    """One attack: a frozen value whose fields are its settings, and its flags on the command line.

    The first line of a class's docstring is its help on the command line.

    Attributes:
        needs: fields of the `Context` without which it cannot be tried.
        words: what the report says of each of its measures, by dotted name.
        on_release: whether every release is measured by it, with its settings at their defaults.
        sees_all: whether it must look at every note of a release, also where others look at drawn patients only.
        order: its place among those of a release: they run one after the other, with one generator (inversion 100,
            repetition 400, memo-links 420, identifiers 600, name-outputs 700, overlap 800, uniqueness 900).
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[Mapping[str, MeasureText]] = MappingProxyType({})
    on_release: ClassVar[bool] = False
    sees_all: ClassVar[bool] = False
    order: ClassVar[int] = 1000

    @abstractmethod
    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Try it. `context.has(needs)` holds, and more of the context may be used where it is there."""

    @classmethod
    def help(cls) -> str:
        """What it does, in one line."""
        return (getdoc(cls) or "").partition("\n")[0]


attacks: Registry[type[Attack]] = Registry(
    "attack", *(f"clinveil.attacks.{held}" for held in ("vectors", "channel", "text", "models"))
)
"""All attacks by the name that the command line and the report know them by."""


def of_release() -> list[type[Attack]]:
    """The attacks that every release is measured by, in the order of the report."""
    return sorted((attack for _, attack in attacks if attack.on_release), key=lambda attack: attack.order)
