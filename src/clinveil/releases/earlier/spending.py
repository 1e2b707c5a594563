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
from math import sqrt

from clinveil.lm.private.gaussian import composed, epsilon_of
from clinveil.lm.private.sgd import Noise, epsilon_of_all
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.ledger import Ledger, entry


@dataclass(frozen=True)
class Spending:
    """Noise of all private releases of these notes, this one included, and the delta of this
    one.
    """

    releases: tuple[Noise, ...]
    delta: float

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all of them together, for this delta. Raises MissingExtra for trainings
        without dp-accounting.
        """
        if any(one.rate < 1 for one in self.releases):
            return epsilon_of_all(self.releases, self.delta)
        return epsilon_of(
            composed(one.sigma / sqrt(one.steps) for one in self.releases), self.delta
        )


def spend(job: ReleaseContext, noise: Noise, delta: float, question: str) -> Spending:
    """Enter a private release in the ledger, once, and return the total; a test seed is not
    entered.

    Raises UsageError if the same notes were released under another key, without `--again`.
    """
    if job.key.test_seed is not None:
        return Spending((noise,), delta)
    ledger = Ledger.at(job.settings.ledger, job.folder.run.root)
    notes = job.found.hashes
    commitment = job.key.commitment
    with ledger.alone():
        others = ledger.earlier(notes.letters, commitment)
        if not job.settings.again:
            ledger.refuse(others)
        run = f"{datetime.now(UTC):%Y-%m-%d}-{commitment[:8]}"
        own = ledger.of(commitment) or entry(
            notes, run, commitment, job.folder.vault, job.settings.kind
        )
        name = f"{job.key.digest('private release', question):016x}"
        if name not in own.spent:
            own = replace(own, spent={**own.spent, name: noise})
            ledger.enter(own, job.folder.vault)
    before = [value for one in others for value in one.entry.spent.values()]
    return Spending((*before, *own.spent.values()), delta)
