"""Notes added to an earlier release (`--add`): drawn under its key, vectors and channel, and
measured together with it.

Released notes next to their vaults map to source ids by the crosswalk, so attacks that need nothing
else cover all releases under the key. Source notes are not kept: all other measures cover the new
notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from clinveil.attacks.attack import Context, attacks
from clinveil.core.finding import Finding, write_findings
from clinveil.corpus.corpus import Corpus, MemoryCorpus
from clinveil.corpus.open import OpenedCorpus
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import CROSSWALK, VaultTable, id_maps
from clinveil.releases.earlier.parent import NewNotes, ParentRelease
from clinveil.releases.measured import Measured, attacked
from clinveil.releases.outcome import NEW_ALONE
from clinveil.releases.preflight import Preflight
from clinveil.releases.producers._channel import ChannelProducer, ChannelProduct
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.record import Fact, Gate

MOST_UNKNOWN = 0.05  # share of unknown words above which a new channel is advised


@dataclass(frozen=True)
class AddedProducer(ChannelProducer):
    """Notes that are added to the release of a vault."""

    base: ParentRelease
    learns: ClassVar[tuple[str, ...]] = ()

    def notes(self, corpus: OpenedCorpus) -> Corpus:
        """Return the notes that were not released before."""
        return NewNotes(corpus, self.base)

    def refuse_notes(self, found: Preflight, settings: ReleaseSettings, corpus: Corpus) -> None:
        """Raise UsageError if many notes were released under other ids."""
        self.base.refuse_same(found.hashes, again=settings.again)

    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the stages of a run, without training: name, description, estimated seconds."""
        yield from super().plan(found, settings, train=False)

    def make(self, job: ReleaseContext) -> AddedProduct:
        """Draw the new notes, and report how many of their words the channel does not contain."""
        product = AddedProduct(**vars(super().make(job)))
        words = (
            f"{product.tally.unknown:,} of {product.tally.words:,} words ({product.unknown:.1%})"
        )
        then = f"({self.base.unknown:.1%} in the release that trained it)"
        job.say(f"{words} are not in the channel {then}{product.advice}")
        return product


@dataclass(frozen=True, kw_only=True)
class AddedProduct(ChannelProduct):
    """Notes added to an earlier release."""

    varied: ClassVar[bool] = (
        False  # a few added notes may lack variety, and are unique by their number alone
    )

    @property
    def new(self) -> NewNotes:
        """The new notes."""
        assert isinstance(self.job.corpus, NewNotes)
        return self.job.corpus

    @property
    def nth(self) -> int:
        """Number of this release under its key."""
        return self.new.base.nth + 1

    @property
    def origin(self) -> str:
        """Origin of the word vectors."""
        return self.new.base.origin

    @property
    def unknown(self) -> float:
        """Share of words that the channel does not contain."""
        return self.tally.unknown / max(1, self.tally.words)

    @property
    def advice(self) -> str:
        """Advice if many words are unknown."""
        few = self.unknown <= max(MOST_UNKNOWN, 2 * self.new.base.unknown)
        return "" if few else ": release all notes under a new key to train a new channel (--again)"

    @cached_property
    def together(self) -> Context | None:
        """Input of the attacks on all releases; None if an earlier one is no longer next to its
        vault.
        """
        base = self.new.base
        job = self.job
        if not (earlier := base.released(self.columns.keep)):
            return None
        before = (batch.select(CROSSWALK.names) for batch in base.crosswalk())
        notes, patients = id_maps(
            chain(before, VaultTable(job.folder.vault / "crosswalk.parquet").batches())
        )
        both = chain.from_iterable
        released = MemoryCorpus(
            lambda: both(c.batches() for c in [*earlier, self.released]), self.columns
        )
        ids: dict[str, Any] = {
            "notes": notes,
            "patients": patients,
            "known": job.known,
            "keep": self.columns.keep,
        }
        where: dict[str, Any] = {
            "scratch": job.folder.work,
            "workers": job.settings.workers,
            "over": job.over_all,
        }
        return Context(released=released, channel=self.channel, **ids, **where)

    def jointly(self, findings: list[Finding]) -> tuple[list[Finding], list[Gate]]:
        """Return each measure on all releases if available, else on the new notes, which the vault
        has too.
        """
        if self.together is None:
            return findings, []
        seed = self.job.seeds["measuring"]
        shared = attacked(
            Measured(self.together, self.together), np.random.default_rng([seed, 1]), self.job.say
        )
        gates = [
            replace(gate, name=f"{gate.name}, with the earlier releases")
            for gate in self.attack_gates(shared)
        ]
        if shared:
            write_findings(self.job.folder.vault / NEW_ALONE, "release", findings, seed=seed)
        measured = {finding.measure for finding in shared}
        return [
            *shared,
            *(finding for finding in findings if finding.measure not in measured),
        ], gates

    @property
    def on_both(self) -> list[str]:
        """Names of the attacks that were measured on all releases."""
        both = self.together
        return [
            name
            for name, one in attacks
            if both is not None and one.on_release and both.has(one.needs)
        ]

    def facts(self) -> Iterator[Fact]:
        """Yield facts on outputs, vectors and the release that is added to."""
        yield from super().facts()
        known, new = self.new.patients()
        yield Fact("adds to release", self.new.base.run)
        yield Fact("patients with notes in it", known, "patients")
        yield Fact("new patients", new, "patients")
        yield Fact("notes released before with another text", self.new.changed, "notes")
        yield Fact("words not in its channel", self.tally.unknown)
        yield Fact("measured on both releases together", ", ".join(self.on_both) or "nothing")

    def manifest_entries(self) -> dict[str, Any]:
        """Return token counts, the origin of the vectors, and the release that is added to."""
        base = self.new.base
        return {**super().manifest_entries(), "adds_to": {"run": base.run, "nth": base.nth}}

    def private_entries(self) -> dict[str, Any]:
        """Return the release that is added to, with its vault."""
        base = self.new.base
        entry = {
            "run": base.run,
            "nth": base.nth,
            "vault": str(base.vault.absolute()),
            "unknown": base.unknown,
        }
        return {"adds_to": entry}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield what was measured on which notes, then the warnings of the kind."""
        measured = (
            "Attacks that need only released notes were measured on both together, the others on"
            " these notes alone."
            if self.on_both
            else "The earlier release was not available: all figures cover these notes alone."
        )
        yield (
            f"These notes were added to release {self.new.base.run}: treat both as one release."
            f" {measured}"
        )
        if self.advice:
            yield f"{self.unknown:.0%} of the words are not in the channel{self.advice}."
        if self.new.changed:
            yield (
                "Notes that were released before with another text occur again under new ids: their"
                " common text was drawn twice."
            )
        yield from super().warnings(findings)
