"""The privacy budget: what all differentially private releases of the same notes have spent together.

Spending is entered in the ledger before the noise is drawn. The same key with the same notes and settings has the same
noise, so a resumed run spends nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from clinveil.lm.private.gaussian import composed, epsilon_of, pld_epsilon
from clinveil.lm.private.sgd import Noise, epsilon_of_all
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.ledger import Ledger, entry


@dataclass(frozen=True)
class Spending:
    """Noise of all private releases of these notes, this one included, and the delta of this one.

    sigmas: deviations of tables. trainings: noise of trainings.
    """

    sigmas: tuple[float, ...]
    delta: float
    trainings: tuple[Noise, ...] = ()

    @classmethod
    def of(cls, spent: Iterable[float | tuple[float, ...]], delta: float) -> Spending:
        """Return the spending of ledger entries."""
        values = list(spent)
        trainings = [Noise(one[0], one[1], int(one[2])) for one in values if isinstance(one, tuple)]
        return cls(tuple(one for one in values if not isinstance(one, tuple)), delta, tuple(trainings))

    @property
    def releases(self) -> int:
        """Number of private releases."""
        return len(self.sigmas) + len(self.trainings)

    @property
    def epsilon(self) -> float:
        """Epsilon of all of them together, for this delta. Raises MissingExtra for trainings without dp-accounting."""
        if self.trainings:
            return epsilon_of_all([*(Noise(sigma, 1.0, 1) for sigma in self.sigmas), *self.trainings], self.delta)
        return epsilon_of(composed(self.sigmas), self.delta)

    @property
    def second_epsilon(self) -> float | None:
        """The same by `dp-accounting`; None if it is not installed, or was used already."""
        return None if self.trainings else pld_epsilon(self.sigmas, self.delta)


def spend(job: ReleaseContext, noise: float | Noise, delta: float, question: str) -> Spending:
    """Enter a private release in the ledger, once, and return the total; a test seed is not entered.

    noise: deviation of a table, or noise of a training.

    Raises UsageError if the same notes were released under another key, without `--again`.
    """
    if job.key.test_seed is not None:
        return Spending.of([noise], delta)
    ledger = Ledger.at(job.settings.ledger, job.folder.run.root)
    hashes, commitment = job.found.hashes, job.key.commitment
    others = ledger.earlier(hashes, commitment)
    if not job.settings.again:
        ledger.refuse(others)
    run = f"{datetime.now(UTC):%Y-%m-%d}-{commitment[:8]}"
    own = ledger.of(commitment) or entry(hashes, run, commitment, job.folder.vault)
    name = f"{job.key.digest('private release', question):016x}"
    if name not in own.spent:
        own = replace(own, spent={**own.spent, name: noise})
        ledger.enter(own, job.folder.vault)
    before = [value for one in others for value in one.entry.spent.values()]
    return Spending.of([*before, *own.spent.values()], delta)
