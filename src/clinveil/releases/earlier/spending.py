"""The privacy budget: what all differentially private releases of the same notes have spent
together.

Spending is entered in the ledger before the noise is drawn. The same key with the same notes and
settings has the same noise, so a resumed run spends nothing again. Runs at the same time enter one
after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from clinveil.lm import composed, epsilon_of
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.ledger import Ledger, Withdrawal, entry


@dataclass(frozen=True)
class Spending:
    """What all private releases of these notes have spent, this one included.

    Attributes:
        releases: deviation of the noise of each release, for sensitivity 1. delta: of this release.
    """

    releases: tuple[float, ...]
    delta: float

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all of them together, for this delta."""
        return epsilon_of(composed(self.releases), self.delta)


def spend(job: ReleaseContext, sigma: float, delta: float, question: str) -> Spending:
    """Enter a private release in the ledger, once, and return the total; a test seed is not
    entered.

    Raises UsageError if the same notes were released under another key, without `--again`.
    """
    if job.key.test_seed is not None:
        return Spending((sigma,), delta)
    ledger = Ledger.at(job.settings.ledger, job.folder.run.root)
    notes = job.totals.hashes
    commitment = job.key.commitment
    with ledger.alone():
        others = ledger.overlapping(notes, commitment)
        if not job.settings.again:
            ledger.refuse([one for one in others if not one.entry.is_withdrawn])
        run = f"{datetime.now(UTC):%Y-%m-%d}-{commitment[:8]}"
        own = ledger.of(commitment) or entry(
            notes, run, commitment, job.folder.vault, job.settings.kind
        )
        name = f"{job.key.digest('private release', question):016x}"
        if name not in own.spent:
            own = replace(own, spent={**own.spent, name: sigma})
            ledger.enter(own, job.folder.vault)
    # What a withdrawn release has spent stays spent.
    before = [value for one in others for value in one.entry.spent.values()]
    return Spending((*before, *own.spent.values()), delta)


def refused(job: ReleaseContext) -> None:
    """Mark a private release that its gates refused: nothing left, but its budget stays spent."""
    ledger = Ledger.at(job.settings.ledger, job.folder.run.root)
    with ledger.alone():
        own = ledger.of(job.key.commitment)
        if own is not None and own.spent and own.vault == job.folder.vault.resolve():
            today = f"{datetime.now(UTC):%Y-%m-%d}"
            own = own.without(own.run, Withdrawal(today, "refused by its gates"))
            ledger.enter(own, job.folder.vault)
