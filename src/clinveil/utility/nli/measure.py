"""How well the inference model does with given vectors, beside random vectors, shuffled labels and the majority."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.finding import Finding
from clinveil.core.neural import device_named, need_torch, seeded
from clinveil.stats import jackknife_t, share_by_patient, share_method
from clinveil.utility.nli.parts import NliParts, premise_groups
from clinveil.utility.nli.settings import NliSettings
from clinveil.utility.nli.vocabulary import NliVocabulary, random_vectors
from clinveil.vectors.table import Vectors

SOURCE = "paper C, section 3.3 (NLI); bag-of-words model of Romanov & Shivade 2018"
SEEN = 0.1  # a share of test pairs with a sentence of training that is worth a warning
Guesses = NDArray[np.int64]


def nli(vectors: Vectors, parts: NliParts, rng: Generator, settings: NliSettings | None = None) -> list[Finding]:
    """Accuracy on the test pairs, mean over seeds: with the vectors, with random ones, and what the vectors add.

    Returns:
        `utility.nli` twice (series `vectors` and `random vectors`): chance is the majority label of training, control
        the random vectors of the same words (for those: shuffled training labels). `utility.nli_gain`: their
        difference on the same pairs. Intervals are over premises, of the mean of these seeds: a few
        cannot stand for all seeds, so their least, greatest and spread stand in the detail.

    Raises:
        MissingExtra: no PyTorch. InputError: a test label that training has not. UsageError: an unknown device.
    """
    need_torch()
    settings = settings or NliSettings()
    truth = parts.targets(parts.test)
    task = _Task(parts, settings)
    numbers = [int(n) for n in rng.integers(2**31, size=settings.seeds)]
    own = np.stack([task.guess(vectors, seed) for seed in numbers])
    floor = np.stack([task.guess(None, seed, of=vectors) for seed in numbers])
    shuffled = np.stack([task.guess(None, seed, of=vectors, shuffled=True) for seed in numbers[:1]])
    return _Scores(truth, task, own == truth, floor == truth, shuffled == truth).findings(vectors)


class _Task:
    """The pairs as rows of tokens, ready to be trained on."""

    def __init__(self, parts: NliParts, settings: NliSettings) -> None:
        self.parts, self.settings = parts, settings
        self.vocabulary = NliVocabulary.of(parts.train)
        self.majority = int(np.bincount(parts.targets(parts.train)).argmax())
        self.epochs: list[int] = []

    def guess(
        self, vectors: Vectors | None, seed: int, *, of: Vectors | None = None, shuffled: bool = False
    ) -> Guesses:
        """(n_test,) classes by one model; random vectors where `vectors` is None, for the words `of` others."""
        from clinveil.utility.nli.bow import BagOfWords, Rows, fit, guesses

        rng, settings = np.random.default_rng(seed), self.settings
        table = vectors if vectors is not None or of is None else random_vectors(of, rng)
        assert table is not None
        matrix = self.vocabulary.matrix(table, rng)
        rows = []
        for part in (self.parts.train, self.parts.dev, self.parts.test):
            sides = (self.vocabulary.rows(side, settings.max_tokens, rng) for side in (part.premises, part.hypotheses))
            rows.append(Rows(next(sides), next(sides), self.parts.targets(part)))
        if shuffled:
            rows[:2] = [Rows(r.premises, r.hypotheses, rng.permutation(r.targets)) for r in rows[:2]]
        device = device_named(settings.device)
        with seeded(seed):
            model = BagOfWords(matrix, len(self.parts.classes), settings)
            fitted = fit(model, rows[0], rows[1], settings, device)
            self.epochs.append(fitted.epochs)
            return guesses(fitted.model, rows[2], settings.batch, device)


class _Scores:
    """Turns right and wrong answers, (n_seeds, n_test) bool, into findings."""

    def __init__(
        self,
        truth: Guesses,
        task: _Task,
        own: NDArray[np.bool_],
        floor: NDArray[np.bool_],
        shuffled: NDArray[np.bool_],
    ) -> None:
        self.own, self.floor, self.shuffled = own, floor, shuffled
        self.chance = float((truth == task.majority).mean())
        self.premise = premise_groups(task.parts.test)
        settings = task.settings
        self.detail: dict[str, Any] = {**task.parts.detail, "features": settings.features, "seeds": len(own)}
        self.detail |= {"epochs_mean": float(np.mean(task.epochs))}
        self.task = task

    def findings(self, vectors: Vectors) -> list[Finding]:
        """Vectors, random vectors, and the difference."""
        found = [place is not None for place in self.task.vocabulary.found(vectors)]
        self.detail |= {"words_with_vector": float(np.mean(found))}
        return [
            self._side("vectors", self.own, float(self.floor.mean()), "random vectors of the same words"),
            self._side("random vectors", self.floor, float(self.shuffled.mean()), "training labels shuffled"),
            self._gain(),
        ]

    def _gain(self) -> Finding:
        """What the vectors add to random ones, on the same pairs."""
        gain = self.own.astype(np.float64) - self.floor
        sums = self._by_premise(gain)
        low, high = (None, None)
        if enough := len(sums) > 1:
            low, high = jackknife_t(sums, _ratio)
        value, by_seed = float(gain.mean()), gain.mean(axis=1)
        return Finding(
            *("utility.nli_gain", value, gain.shape[1], "higher", low, high, 0.0, None, SOURCE),
            detail={**self.detail, **_over_seeds(by_seed), "series": "vectors less random vectors"},
            unit="test pairs",
            method="jackknife over premises, t, of the mean of these seeds, 95 %" if enough else "none, of one premise",
        )

    def _side(self, series: str, right: NDArray[np.bool_], control: float, what: str) -> Finding:
        shares = self._by_premise(right)
        detail = {**self.detail, **_over_seeds(right.mean(axis=1)), "series": series}
        seen = max(detail["test_premises_seen"], detail["test_hypotheses_seen"])
        if series == "vectors" and seen > SEEN:
            detail["warning"] = f"a sentence of {seen:.0%} of the test pairs stands in a training pair too"
        low, high = share_by_patient(shares)
        return Finding(
            *("utility.nli", float(right.mean()), right.shape[1], "higher", low, high, self.chance, control, SOURCE),
            detail=detail,
            unit="test pairs",
            method=share_method(shares, "premises") + ", of the mean of these seeds",
            chance_is="majority label",
            control_is=what,
            control_kind="negative",
        )

    def _by_premise(self, scores: NDArray[np.bool_] | NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_premises, 2) the sum of the seeds' mean scores, (n_seeds, n_test), and the number of pairs."""
        return np.stack([np.bincount(self.premise, weights=scores.mean(axis=0)), np.bincount(self.premise)], axis=1)


def _ratio(sums: NDArray[np.float64]) -> float:
    return float(sums[0] / sums[1])


def _over_seeds(by_seed: NDArray[np.float64]) -> dict[str, float | None]:
    """The least, the greatest and the standard deviation over seeds."""
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    return {"seed_lowest": float(by_seed.min()), "seed_highest": float(by_seed.max()), "seed_sd": spread}
