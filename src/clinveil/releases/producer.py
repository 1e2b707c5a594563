"""A kind of release: its defaults, the settings that only it uses, and how it makes notes that may leave.

Each kind is one file of `releases/producers`, which registers a `Producer` under its name. The pipeline does what all
kinds share (preflight, run folder, ledger, attacks, gates, manifest, report) and asks the producer for a `Product`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clinveil.core.errors import UsageError
from clinveil.core.registry import Registry

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.attacks.attack import Context
    from clinveil.channel.channel import Channel
    from clinveil.core.finding import Finding
    from clinveil.corpus.corpus import Accounting, Columns, Corpus
    from clinveil.releases.check import OutputCheck
    from clinveil.releases.measured import Measured
    from clinveil.releases.settings import ReleaseSettings
    from clinveil.releases.stages import Making, Preflight, ReleaseContext
    from clinveil.report.record import AlignedNote, Fact, Gate, TokenRow

TABLES = ("lm", "synthetic")
OF_KINDS = ("channel", "vectors", "identifiers", *TABLES)
"""Groups and tables of settings that not every kind uses."""


class Producer(ABC):
    """One kind of release.

    Attributes:
        uses: settings, and groups of them, that not every kind has and this one has.
        defaults: settings that differ from those of `clinveil obfuscate`. profiles: the same by `--profile`.
        adds: whether notes can be added to an earlier release of this kind (`--add`).
        learns: what an interrupted run leaves in its vault for the next try.
    """

    uses: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    adds: ClassVar[bool] = False
    learns: ClassVar[tuple[str, ...]] = ()

    def presets(self, profile: str) -> dict[str, Any]:
        """The settings of this kind under a profile, as far as nothing else is given."""
        return {**self.defaults, **self.profiles.get(profile, {})}

    def floor(self, patients: int) -> int:
        """The patient floor (`--min-patients auto`) of notes of this many patients."""
        return 5

    def refuse_early(self, settings: ReleaseSettings) -> None:  # noqa: B027
        """Raise MissingExtra, UsageError or InputError for what can be known before the notes are read."""

    def refuse_notes(self, found: Preflight, settings: ReleaseSettings) -> None:  # noqa: B027
        """Raise InputError for notes that cannot be released as this kind."""

    @abstractmethod
    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """The stages of a run: name, what is done, estimated seconds."""

    @abstractmethod
    def make(self, making: Making) -> Product:
        """Write the notes into staging, and read them back."""


@dataclass(frozen=True)
class Product(ABC):
    """Notes in staging that may leave if all gates pass, and what is known of them.

    Attributes:
        path: of the notes. columns: the roles of their columns.
        rows: rows read, written and skipped. check: what reading the notes back shows.
        tokens, types: words of the notes, and different ones, that the release was made from.
        patients: whose notes these are. found: identifiers found by label; None where nothing looked for them.
        digests: SHA-256 of what the vault keeps, by name.
    """

    job: ReleaseContext
    path: Path
    columns: Columns
    rows: Accounting
    check: OutputCheck
    released: Corpus = field(repr=False)
    tokens: int
    types: int
    patients: int
    found: Counter[str] | None = None
    digests: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def context(self) -> Context:
        """What the attacks get."""

    @abstractmethod
    def measured(self, whole: Context) -> Measured:
        """All of that, or patients drawn by the key where the release is large."""

    def findings(self, seen: Measured, rng: Generator) -> list[Finding]:
        """What is measured of this kind in addition to the attacks of every release."""
        return []

    def cost_of_keeping(self, context: Context, rng: Generator) -> list[Finding]:
        """The figures without the words that are kept on request."""
        return []

    @abstractmethod
    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """The gates of this kind."""

    def accounting(self) -> tuple[TokenRow, ...]:
        """What became of the tokens of the source, by class; empty where they have no counterpart."""
        return ()

    def facts(self) -> Iterator[Fact]:
        """What the report says of the data."""
        yield from ()

    def more_facts(self) -> Iterator[Fact]:
        """What it says after that: what was kept, what the release adds to."""
        yield from ()

    def told(self) -> dict[str, Any]:
        """What both manifests say of this kind."""
        return {}

    def told_inside(self) -> dict[str, Any]:
        """What the manifest of the vault says of it."""
        return {}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """What whoever reads the report must know."""
        yield from ()

    def sampled(self, rng: Generator) -> list[AlignedNote]:
        """Sampled notes of the source next to their released ones, for the report in the vault."""
        return []

    @property
    def channel(self) -> Channel | None:
        """The mechanism, where words went through one."""
        return None

    def for_utility(self, seen: Context) -> Context:
        """What the measures of utility get."""
        return seen

    def accounted(self) -> list[Gate]:
        """The gates that every note read is written once, or skipped for a reason."""
        from clinveil.releases.gates import accounting_gates

        return accounting_gates(self.rows, self.check)

    def public_seeds(self) -> tuple[str, ...]:
        """What comes from a public seed, in words."""
        return () if self.job.key.test_seed is None else ("notes",)


producers: Registry[Producer] = Registry(
    "release kind", "clinveil.releases.producers", first=("obfuscated", "coded", "deidentified", "synthetic")
)
"""All kinds of release by name."""


def kinds_with(names: Collection[str], kind: str) -> list[str]:
    """The kinds that alone use one of these settings or groups; empty where `kind` uses it, or every kind does."""
    using = [name for name, producer in producers if producer.uses & set(names)]
    return [] if kind in using else using


def other_kind(written: str, kinds: Sequence[str], kind: str) -> UsageError:
    """The error for a setting that does not apply to a kind of release."""
    *most, last = kinds
    named = f"{', '.join(most)} or {last}" if most else last
    return UsageError(f"{written} applies to --as {named}, not to --as {kind}")


def refuse_adding(kind: str) -> None:
    """Raise UsageError for a kind of release to which no notes can be added."""
    if not producers.get(kind).adds:
        raise other_kind("--add", [name for name, producer in producers if producer.adds], kind)
