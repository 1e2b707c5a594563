"""Natural language inference with frozen word vectors (paper C, section 3.3), beside random ones and the majority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named, need_torch, seeded
from clinveil.core.settings import Settings, flag
from clinveil.core.tokens import WordIds, lookup_form
from clinveil.core.types import Doubles, Floats, Ints, Mask
from clinveil.stats import jackknife_t, share_by_patient, share_method
from clinveil.utility.nli.pairs import NliParts, Sentence, SentencePairs, premise_groups
from clinveil.vectors.table import Vectors

SOURCE = "paper C, section 3.3 (NLI); bag-of-words model of Romanov & Shivade 2018"
SEEN = 0.1  # a share of test pairs with a sentence of training that is worth a warning
PADDING = 0
RANDOM = 0.5  # tokens without a vector share one drawn from uniform(-0.5, 0.5)


class NliSettings(Settings):
    """The bag-of-words model of Romanov & Shivade 2018 (jgc128/mednli), and how often it is trained."""

    features: Literal["paper", "difference"] = flag(
        "paper", "Both sentences side by side (paper), or also |u-v| and u*v (difference)."
    )
    seeds: int = flag(5, "Models trained, each with a seed of its own; the score is their mean.", ge=1, le=100)
    hidden: int = flag(300, "Units of a sentence; the layers above have twice as many.", ge=1, le=4096)
    max_tokens: int = flag(50, "Tokens of a sentence; of a longer one the last ones count.", ge=1, le=10_000)
    dropout: float = flag(0.5, "Dropout.", ge=0, lt=1)
    batch: int = flag(512, "Pairs in a batch.", ge=2, le=65_536)
    epochs: int = flag(40, "Most passes over the training pairs.", ge=1, le=10_000)
    patience: int = flag(5, "Stop after so many passes without a lower loss on the dev pairs.", ge=1)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")


def nli(vectors: Vectors, parts: NliParts, rng: Generator, settings: NliSettings | None = None) -> list[Finding]:
    """Accuracy on the test pairs, mean over seeds: with the vectors, with random ones, and what the vectors add.

    Returns:
        `utility.nli` twice (series `vectors` and `random vectors`): chance is the majority label of training, control
        the random vectors of the same words (for those: shuffled training labels). `utility.nli_gain`: their
        difference on the same pairs. Intervals are over premises, of the mean of these seeds: a few
        cannot stand for all seeds, so their least, greatest and spread stand in the detail.

    Raises MissingExtra: no PyTorch. InputError: a test label that training has not. UsageError: an unknown device.
    """
    need_torch()
    settings = settings or NliSettings()
    truth = parts.targets(parts.test)
    task = _Task(parts, settings)
    numbers = [int(n) for n in rng.integers(2**31, size=settings.seeds)]
    own = np.stack([task.predict(vectors, seed) for seed in numbers])
    floor = np.stack([task.predict(vectors, seed, random=True) for seed in numbers])
    shuffled = np.stack([task.predict(vectors, seed, random=True, shuffled=True) for seed in numbers[:1]])
    found = [place is not None for place in vector_rows(task.words, vectors)]
    detail = {**parts.detail, "features": settings.features, "seeds": settings.seeds}
    detail |= {"epochs_mean": float(np.mean(task.epochs)), "words_with_vector": float(np.mean(found))}
    majority = int(np.bincount(parts.targets(parts.train)).argmax())
    scores = _Scores(premise_groups(parts.test), float((truth == majority).mean()), detail)
    return [
        scores.side("vectors", own == truth, floor == truth, "random vectors of the same words"),
        scores.side("random vectors", floor == truth, shuffled == truth, "training labels shuffled"),
        scores.gain(own == truth, floor == truth),
    ]


class _Task:
    """The pairs as rows of tokens, ready to be trained on."""

    def __init__(self, parts: NliParts, settings: NliSettings) -> None:
        self.parts, self.settings = parts, settings
        self.words = words_of(parts.train)
        self.epochs: list[float] = []

    def predict(self, vectors: Vectors, seed: int, *, random: bool = False, shuffled: bool = False) -> Ints:
        """(n_test,) classes by one model; `random`: with random vectors of the same words."""
        from clinveil.utility.nli.bow import BagOfWords, PairTraining, Rows, predictions

        rng, settings = np.random.default_rng(seed), self.settings
        table = random_vectors(vectors, rng) if random else vectors
        matrix = matrix_of(self.words, table, rng)
        rows = []
        for part in (self.parts.train, self.parts.dev, self.parts.test):
            sides = (rows_of(self.words, side, settings.max_tokens, rng) for side in (part.premises, part.hypotheses))
            rows.append(Rows(next(sides), next(sides), self.parts.targets(part)))
        if shuffled:
            rows[:2] = [Rows(r.premises, r.hypotheses, rng.permutation(r.targets)) for r in rows[:2]]
        device = device_named(settings.device)
        with seeded(seed):
            model = BagOfWords(matrix, len(self.parts.classes), settings)
            training = PairTraining(model, rows[0], rows[1], settings, device).fit()
            self.epochs.append(training.epochs)
            return predictions(training.finish(), rows[2], settings.batch, device)


@dataclass(frozen=True)
class _Scores:
    """Turns right and wrong answers, (n_seeds, n_test) bool, into findings; `premise`: of each test pair."""

    premise: Ints
    chance: float
    detail: dict[str, Any]

    def gain(self, own: Mask, floor: Mask) -> Finding:
        """What the vectors add to random ones, on the same pairs."""
        gain = own.astype(np.float64) - floor
        sums = self._by_premise(gain)
        enough = len(sums) > 1
        low, high = jackknife_t(sums, lambda sums: float(sums[0] / sums[1])) if enough else (None, None)
        return Finding(
            *("utility.nli_gain", float(gain.mean()), gain.shape[1], "higher", low, high, 0.0, None, SOURCE),
            detail={**self.detail, **_over_seeds(gain.mean(axis=1)), "series": "vectors less random vectors"},
            unit="test pairs",
            method="jackknife over premises, t, of the mean of these seeds, 95 %" if enough else "none, of one premise",
        )

    def side(self, series: str, right: Mask, control: Mask, what: str) -> Finding:
        """The accuracy of some vectors, beside that of a control, `what`."""
        shares = self._by_premise(right)
        detail = {**self.detail, **_over_seeds(right.mean(axis=1)), "series": series}
        seen = max(detail["test_premises_seen"], detail["test_hypotheses_seen"])
        if series == "vectors" and seen > SEEN:
            detail["warning"] = f"a sentence of {seen:.0%} of the test pairs stands in a training pair too"
        span = share_by_patient(shares)
        return Finding(
            *("utility.nli", float(right.mean()), right.shape[1], "higher", *span),
            *(self.chance, float(control.mean()), SOURCE, detail),
            unit="test pairs",
            method=share_method(shares, "premises") + ", of the mean of these seeds",
            chance_is="majority label",
            control_is=what,
            control_kind="negative",
        )

    def _by_premise(self, scores: Mask | Doubles) -> Doubles:
        """(n_premises, 2) the sum of the seeds' mean scores, (n_seeds, n_test), and the number of pairs."""
        weights = scores.mean(axis=0)
        return np.stack([np.bincount(self.premise, weights=weights), np.bincount(self.premise)], axis=1)


def _over_seeds(by_seed: Doubles) -> dict[str, float | None]:
    """The least, the greatest and the standard deviation over seeds."""
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    return {"seed_lowest": float(by_seed.min()), "seed_highest": float(by_seed.max()), "seed_sd": spread}


def words_of(pairs: SentencePairs) -> WordIds:
    """The distinct tokens of the training pairs, letter case as it stands; 0 is padding.

    Raises InputError where no training sentence holds a token.
    """
    words = WordIds.of((token for side in (pairs.premises, pairs.hypotheses) for s in side for token in s), first=1)
    if not words.ids:
        raise InputError("its sentences hold no token", where=pairs.name)
    return words


def rows_of(words: WordIds, sentences: Sequence[Sentence], length: int, rng: Generator) -> Ints:
    """(n_sentences, length) rows of tokens: the last ones of a long sentence, padding before a short one.

    Tokens that training does not hold are dropped; a sentence without any other gets one random token.
    """
    table = np.full((len(sentences), length), PADDING, dtype=np.int64)
    for place, sentence in enumerate(sentences):
        known = words.encode(sentence)[-length:] or [int(rng.integers(words.first, len(words)))]
        table[place, length - len(known) :] = known
    return table


def vector_rows(words: WordIds, vectors: Vectors) -> list[int | None]:
    """(n_tokens) the row of each token in the vectors: of itself, or of its lookup form; None where neither is."""
    return [vectors.ids.get(token, vectors.ids.get(lookup_form(token))) for token in words.ids]


def matrix_of(words: WordIds, vectors: Vectors, rng: Generator) -> Floats:
    """(n_tokens + 1, dim): padding is zero, tokens without a vector share one random vector."""
    table = np.zeros((len(words), vectors.dim), dtype=np.float32)
    shared = rng.uniform(-RANDOM, RANDOM, vectors.dim).astype(np.float32)
    for row, place in enumerate(vector_rows(words, vectors), start=words.first):
        table[row] = shared if place is None else vectors.matrix[place]
    return table


def random_vectors(vectors: Vectors, rng: Generator) -> Vectors:
    """The same words with normal random vectors of the same mean square: what the model gets from words alone."""
    scale = float(np.sqrt(np.mean(np.square(vectors.matrix, dtype=np.float64)))) if vectors.matrix.size else 0.0
    return Vectors(vectors.words, (scale * rng.standard_normal(vectors.matrix.shape)).astype(np.float32))
