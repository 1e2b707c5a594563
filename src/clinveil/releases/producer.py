"""A kind of release: its defaults, its settings, and how it produces the released notes.

Each kind is one file of `releases/producers`, which registers a `Producer` under its name. The
pipeline does what all kinds share (preflight, run folder, ledger, attacks, gates, manifest, report)
and asks the producer for a `Product`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from clinveil.core import Settings
from clinveil.releases.kinds import PRODUCERS
from clinveil.report import AUDIENCES, Audience

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.attacks import Context
    from clinveil.core import Finding
    from clinveil.corpus import Accounting, Columns, Corpus
    from clinveil.releases.check import OutputCheck
    from clinveil.releases.context import ReleaseContext
    from clinveil.releases.earlier.note_hashes import NoteHashes
    from clinveil.releases.measured import AttackSample
    from clinveil.releases.prepared_input import Preflight
    from clinveil.releases.settings import ReleaseSettings
    from clinveil.report import AlignedNote, Fact, Gate, TokenRow

# Seconds of a release on two cores, November 2026: in any case, per million words, and per million
# words of the measured sample.
FIXED = 60.0
PER_MILLION = 35.0
PER_MILLION_MEASURED = 65.0
MEASURE = ("measure", "attack the release, measure utility")
"""The last stage of every plan."""


class Producer(ABC):
    """One kind of release.

    Attributes:
        settings: classes of settings of this kind that not all kinds have.
        learns: vault contents that a resumed run reuses. keeps_markup: whether tags of HTML and XML
            are released. audiences: whom releases of this kind can be for.
    """

    settings: ClassVar[frozenset[type[Settings]]] = frozenset()
    learns: ClassVar[tuple[str, ...]] = ()
    keeps_markup: ClassVar[bool] = False
    audiences: ClassVar[tuple[Audience, ...]] = AUDIENCES

    def floor(self, patients: int) -> int:
        """Return the patient floor of `--min-patients auto` for this many patients."""
        return 5

    def label_floor(self, settings: ReleaseSettings) -> int:
        """Return how many patients of a label must be left for training, where it has as many."""
        return 0

    def refuse_early(self, settings: ReleaseSettings) -> None:  # noqa: B027
        """Raise MissingExtra, UsageError or InputError for errors detectable before reading the
        notes.
        """

    def refuse_notes(  # noqa: B027
        self, totals: Preflight, settings: ReleaseSettings, corpus: Corpus, *, reused: bool = False
    ) -> None:
        """Raise InputError for notes that cannot be released as this kind.

        reused: the run reuses what an earlier one learned.
        """

    @abstractmethod
    def plan(
        self, totals: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yield name and description of the stages of a run."""

    def seconds(self, totals: Preflight, settings: ReleaseSettings) -> float | None:
        """Return a rough duration on two cores; None if it cannot be told."""
        millions = totals.tokens / 1e6
        measured = min(millions, settings.measure_words / 1e6 or millions)
        return FIXED + PER_MILLION * millions + PER_MILLION_MEASURED * measured

    @abstractmethod
    def make(self, job: ReleaseContext) -> Product:
        """Write the notes into staging and read them back."""


@dataclass(frozen=True)
class Product(ABC):
    """Staged notes, which may leave if all gates pass, and their statistics.

    Attributes:
        path: of the notes. columns: their column roles.
        rows: rows read, written and skipped. check: result of reading the notes back.
        tokens, types: words and different words of the source.
        patients: number of patients. identifiers: number detected, by label; None if detection
            did not run.
        digests: SHA-256 of vault contents, by name.
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
    identifiers: Counter[str] | None = None
    digests: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def context(self) -> Context:
        """Return the input of the attacks."""

    @abstractmethod
    def sample_case(self, whole: Context) -> AttackSample:
        """Return that input, or a keyed sample of patients for a large release."""

    def findings(self, seen: AttackSample, rng: Generator) -> list[Finding]:
        """Return findings of this kind in addition to the common attacks."""
        return []

    @abstractmethod
    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates of this kind."""

    def accounting(self) -> tuple[TokenRow, ...]:
        """Return source tokens by class and outcome; empty if released tokens have no source."""
        return ()

    def facts(self) -> Iterator[Fact]:
        """Yield facts on the data for the report."""
        yield from ()

    def manifest_entries(self) -> dict[str, Any]:
        """Return entries of both manifests."""
        return {}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield warnings for the report."""
        yield from ()

    def sampled(self, seen: Context, rng: Generator) -> list[AlignedNote]:
        """Return some of the measured source notes aligned with their released versions, for the
        vault's `sample.html`.
        """
        return []

    @property
    def about(self) -> str:
        """What the notes are, for the first page; "" for the usual text of the kind."""
        return ""

    def for_utility(self, seen: Context) -> Context:
        """Return the input of the utility measures."""
        return seen

    def accounted(self) -> list[Gate]:
        """Return the gates that every note read is written once or skipped for a reason."""
        from clinveil.releases.gates import accounting_gates

        return accounting_gates(self.rows, self.check)

    @property
    def hashes(self) -> NoteHashes:
        """Hashes of the notes, for the ledger."""
        return self.job.totals.hashes

    def public_seeds(self) -> tuple[str, ...]:
        """Return what was derived from a public seed."""
        return () if self.job.key.test_seed is None else ("notes",)


def producer_of(kind: str) -> Producer:
    """Return the producer of a kind of release. Raises UsageError for an unknown kind."""
    producer = PRODUCERS.get(kind)
    assert isinstance(producer, Producer)
    return producer
