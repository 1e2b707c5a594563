"""The interface of an attack: a class of settings that takes a `Context` and returns findings.

An attack is one file of `attacks/{channel,vectors,text,models}` or a class that another
distribution registers. The report texts of its measures are in a TOML file next to it, or in its
class. `docs/extending.md` has a complete example. Other distributions list their class in the entry
point group `clinveil.attacks`.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import getdoc
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clinveil.core import (
    Finding,
    InputError,
    Ints,
    MeasureText,
    Registry,
    Say,
    Settings,
    first_paragraph,
    read_words,
)
from clinveil.scale import Map, serial

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.channel import Channel
    from clinveil.corpus import Corpus, Patient
    from clinveil.lm import LanguageModel
    from clinveil.vectors import Vectors, WordCounts


@dataclass(frozen=True)
class Context:
    """The release and the secret data that an attack may use; a field is None where the data is not
    available.

    Attributes:
        channel: mechanism of the release. counts: word frequencies of the source.
        original, released: notes before and after protection. entered: notes as they entered the
            channel.
        others: plain-text notes of other patients that the attacker has.
        public: public texts about the same patients that the attacker has.
        notes, patients: released id -> source id. known: patients of the feed, by id.
        vectors: word vector models to be released. names: full names, first name first.
        codes: code -> words of its description.
        model: a language model. training, held_out: notes it was and was not trained on; reference:
            of other patients.
        test_patients: patients of `original` that utility is tested on. unread: whether it is known
            that no model of the release has read their notes.
        keep: columns released unchanged. scratch: private folder for temporary text, such as the
            vault; None: the system's temporary folder. workers: threads. executor: map for attacks
            that read all notes. No finding depends on them. say: receives progress lines.
    """

    channel: Channel | None = None
    counts: WordCounts | None = None
    original: Corpus | None = None
    released: Corpus | None = None
    entered: Corpus | None = None
    others: Corpus | None = None
    public: Corpus | None = None
    notes: Mapping[str, str] | None = field(default=None, repr=False)
    patients: Mapping[str, str] | None = field(default=None, repr=False)
    known: Mapping[str, Patient] | None = field(default=None, repr=False)
    vectors: Sequence[Vectors] | None = None
    names: Sequence[Sequence[str]] | None = field(default=None, repr=False)
    codes: Mapping[str, str] | None = field(default=None, repr=False)
    model: LanguageModel | None = None
    test_patients: frozenset[str] | None = field(default=None, repr=False)
    unread: bool = False
    training: Any = field(default=None, repr=False)
    held_out: Any = field(default=None, repr=False)
    reference: Any = field(default=None, repr=False)
    keep: tuple[str, ...] = ()
    scratch: Path | None = field(default=None, repr=False)
    workers: int = 2
    executor: Map = field(default=serial, repr=False)
    say: Say = lambda line: None

    @cached_property
    def occurrences(self) -> Mapping[str, int] | None:
        """Return the number of occurrences of each source word; None without `counts`."""
        counts = self.counts
        return (
            None if counts is None else dict(zip(counts.words, counts.counts.tolist(), strict=True))
        )

    @property
    def full_names(self) -> list[str]:
        """Return the full names of the known patients; empty without a feed."""
        return [" ".join(patient.name) for patient in (self.known or {}).values()]

    def has(self, needs: frozenset[str]) -> bool:
        """Return whether all fields that an attack needs are available. Raises ValueError for an
        unknown field.
        """
        if unknown := needs - {field.name for field in fields(self)}:
            raise ValueError(f"Context has no field {', '.join(sorted(unknown))}")
        values = (getattr(self, need) for need in needs)
        return all(
            v is not None and not (isinstance(v, Mapping | tuple | list) and not v) for v in values
        )


def source_id(released: str, crosswalk: Mapping[str, str] | None) -> str:
    """Return the source id of a released note or patient; the same id without a crosswalk.

    Raises InputError if the crosswalk does not contain it.
    """
    if crosswalk is None:
        return released
    if released not in crosswalk:
        raise not_in_crosswalk()
    return crosswalk[released]


def not_in_crosswalk() -> InputError:
    """Return the error for a released id without a source id."""
    return InputError(
        "a released id is not in the crosswalk", hint="pass the vault of this release"
    )


def channel_and_counts(context: Context) -> tuple[Channel, Ints, dict[str, int]]:
    """Return the channel, the source frequencies of its words, (n_words,), and those of
    out-of-vocabulary words.

    Raises ValueError for a context without them.
    """
    channel = context.channel
    counts = context.counts
    if channel is None or counts is None:
        raise ValueError("an attack on a channel needs a channel and counts")
    known = np.zeros(len(channel.words), dtype=np.int64)
    unknown = {}
    for word, count in zip(counts.words, counts.counts.tolist(), strict=True):
        row = channel.ids.get(word)
        if row is None:
            unknown[word] = count
        else:
            known[row] = count
    return channel, known, unknown


class Attack(Settings):
    """One attack: an immutable object with its settings as fields and its command-line flags.

    The first line of a subclass's docstring is its help text.

    Attributes:
        needs: fields of `Context` that the attack requires. optional: others that its command
            offers.
        words: report texts of its measures, by dotted name; of a built-in attack: the TOML file
            next to it.
        on_release: whether every release runs it, with default settings.
        sees_all: whether it must read every note of a release, even where other attacks use a
            sample of patients.
        order: its position among the attacks of a release, which run in sequence and share one
            generator (inversion 100, linkage 450, identifiers 600, uniqueness 900).
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[Mapping[str, MeasureText]] = MappingProxyType({})
    on_release: ClassVar[bool] = False
    sees_all: ClassVar[bool] = False
    order: ClassVar[int] = 1000

    def __init_subclass__(cls, **options: Any) -> None:
        """Read the report texts of a built-in attack from the TOML file next to it."""
        super().__init_subclass__(**options)
        file = (
            sys.modules[cls.__module__].__file__
            if cls.__module__.startswith("clinveil.attacks.")
            else None
        )
        if file is not None and "words" not in vars(cls):
            cls.words = read_words(Path(file.removesuffix("/__init__.py")).with_suffix(".toml"))

    @abstractmethod
    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack. `context.has(needs)` is true; other fields may be used where they are
        available.
        """

    @classmethod
    def help(cls) -> str:
        """Return the first line of the docstring."""
        return first_paragraph(getdoc(cls))


attacks: Registry[type[Attack]] = Registry(
    "attack",
    {
        "adversary-suite": "clinveil.attacks.channel.adversary_suite:AdversarySuite",
        "association": "clinveil.attacks.vectors.association:Association",
        "canaries": "clinveil.attacks.models.canaries:Canaries",
        "copies": "clinveil.attacks.text.copies:Copies",
        "identifiers": "clinveil.attacks.text.identifiers:Identifiers",
        "inference": "clinveil.attacks.text.inference:Inference",
        "inversion": "clinveil.attacks.channel.inversion:Inversion",
        "leaveout": "clinveil.attacks.models.leaveout:LeaveOneOut",
        "linkage": "clinveil.attacks.text.linkage:Linkage",
        "membership": "clinveil.attacks.models.membership:Membership",
        "names": "clinveil.attacks.vectors.names:Names",
        "uniqueness": "clinveil.attacks.text.uniqueness:Uniqueness",
    },
)
"""All attacks, by the name used on the command line and in the report."""


def of_release() -> list[type[Attack]]:
    """Return the attacks that every release runs, in the order of the report."""
    return sorted(
        (attack for _, attack in attacks if attack.on_release), key=lambda attack: attack.order
    )
