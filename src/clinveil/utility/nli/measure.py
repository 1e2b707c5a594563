"""How well the inference model does with given vectors, beside random vectors, shuffled labels and the majority."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.finding import Finding
from clinveil.neural import device_named, need_torch, seeded
from clinveil.stats import bootstrap_weights
from clinveil.utility.nli.parts import NliParts, premise_groups
from clinveil.utility.nli.settings import NliSettings
from clinveil.utility.nli.vocabulary import NliVocabulary, random_vectors
from clinveil.vectors.table import Vectors

SOURCE = "paper C, section 3.3 (NLI); bag-of-words model of Romanov & Shivade 2018"
DRAWS = 1_000
SEEN = 0.1  # a share of test pairs with a sentence of training that is worth a warning
Guesses = NDArray[np.int64]


def nli(
    vectors: Vectors, parts: NliParts, rng: Generator, settings: NliSettings | None = None, *, draws: int = DRAWS
) -> list[Finding]:
    """Accuracy on the test pairs, mean over seeds: with the vectors, with random ones, and what the vectors add.

    Returns:
        `utility.nli` twice (series `vectors` and `random vectors`): chance is the majority label of training, control
        the random vectors of the same words (for those: shuffled training labels). `utility.nli_gain`: their
        difference on the same pairs. Intervals draw premises and seeds anew; the detail has the spread over seeds.

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
    return _Scores(truth, task, own == truth, floor == truth, shuffled == truth, draws).findings(rng, vectors)


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
        draws: int,
    ) -> None:
        self.own, self.floor, self.shuffled, self.draws = own, floor, shuffled, draws
        self.chance = float((truth == task.majority).mean())
        self.premise = premise_groups(task.parts.test)
        settings = task.settings
        self.detail: dict[str, Any] = {**task.parts.detail, "features": settings.features, "seeds": len(own)}
        self.detail |= {"epochs_mean": float(np.mean(task.epochs)), "unit": "test pairs"}
        self.detail |= {"interval": "bootstrap over premises and seeds, 95 %", "chance_is": "majority label"}
        self.task = task

    def findings(self, rng: Generator, vectors: Vectors) -> list[Finding]:
        """Vectors, random vectors, and the difference."""
        found = [place is not None for place in self.task.vocabulary.found(vectors)]
        self.detail |= {"words_with_vector": float(np.mean(found))}
        floor, shuffled = float(self.floor.mean()), float(self.shuffled.mean())
        gain = self.own.astype(np.float64) - self.floor
        low, high = self._interval(gain, rng)
        return [
            self._side("vectors", self.own, floor, "random vectors of the same words", rng),
            self._side("random vectors", self.floor, shuffled, "training labels shuffled", rng),
            Finding(
                *("utility.nli_gain", float(gain.mean()), gain.shape[1], "higher", low, high, 0.0, None, SOURCE),
                detail={**self.detail, "series": "vectors less random vectors"},
            ),
        ]

    def _side(self, series: str, right: NDArray[np.bool_], control: float, what: str, rng: Generator) -> Finding:
        by_seed = right.mean(axis=1)
        low, high = self._interval(right.astype(np.float64), rng)
        spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
        more = {"seed_lowest": float(by_seed.min()), "seed_highest": float(by_seed.max()), "seed_sd": spread}
        detail = {**self.detail, **more, "series": series, "control_is": what}
        seen = max(detail["test_premises_seen"], detail["test_hypotheses_seen"])
        if series == "vectors" and seen > SEEN:
            detail["warning"] = f"a sentence of {seen:.0%} of the test pairs stands in a training pair too"
        value, n = float(right.mean()), right.shape[1]
        return Finding("utility.nli", value, n, "higher", low, high, self.chance, control, SOURCE, detail)

    def _interval(self, scores: NDArray[np.float64], rng: Generator) -> tuple[float, float]:
        """Of the mean of (n_seeds, n_test) scores, premises and seeds both drawn anew."""
        seeds = len(scores)

        def mean(weights: NDArray[np.int64]) -> float:
            by_pair = weights[self.premise]
            rows = scores[rng.integers(seeds, size=seeds)].mean(axis=0)
            return float(rows @ by_pair / by_pair.sum()) if by_pair.any() else float("nan")

        return bootstrap_weights(int(self.premise.max()) + 1, mean, rng, draws=self.draws)
