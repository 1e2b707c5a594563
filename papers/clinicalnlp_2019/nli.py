"""Measure natural language inference with frozen word vectors (paper C).

Section 3.3 of the paper; compared with random vectors of the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from pydantic import Field

from clinveil import Finding, InputError, Vectors
from clinveil.core import (
    Doubles,
    Floats,
    Ints,
    Mask,
    Numbers,
    Settings,
    WordIds,
    device_named,
    lookup_form,
    need_torch,
    seeded,
)
from clinveil.stats import jackknife_t, share_by_patient, share_method
from papers.clinicalnlp_2019.sentence_pairs import (
    NliParts,
    Sentence,
    SentencePairs,
    premise_groups,
)

SOURCE = "paper C, section 3.3 (NLI); bag-of-words model of Romanov & Shivade 2018"
SEEN = 0.1  # larger shares of test pairs with a training sentence give a warning
PADDING = 0
RANDOM = 0.5  # tokens without a vector share one from uniform(-0.5, 0.5)


class InferenceSettings(Settings):
    """Settings of the bag-of-words model of Romanov & Shivade 2018 (jgc128/mednli) and its
    training.

    Attributes:
        seeds: models with different seeds, whose scores are averaged. hidden: units of a sentence;
            the following layers have twice as many. max_tokens: of a sentence; longer ones keep
            their last tokens. batch: pairs in a batch. epochs: most passes over the training pairs.
        patience: epochs without a lower loss on the dev pairs, after which training stops.
    """

    seeds: int = Field(default=5, ge=1, le=100)
    hidden: int = Field(default=300, ge=1, le=4096)
    max_tokens: int = Field(default=50, ge=1, le=10_000)
    dropout: float = Field(default=0.5, ge=0, lt=1)
    batch: int = Field(default=512, ge=2, le=65_536)
    epochs: int = Field(default=40, ge=1, le=10_000)
    patience: int = Field(default=5, ge=1)
    device: str = "cpu"


def nli(
    vectors: Vectors, parts: NliParts, rng: Generator, settings: InferenceSettings | None = None
) -> list[Finding]:
    """Return the accuracy on test pairs, averaged over seeds, with the vectors, with random ones,
    and the difference.

    Returns:
        `utility.nli` twice (series `vectors` and `random vectors`): chance is the majority label of
        training, and the control is random vectors of the same words (for these: shuffled training
        labels). `utility.nli_gain`: the difference on the same pairs. Intervals are over premises,
        for the mean of these seeds; the numbers have the lowest and highest value and the standard
        deviation over seeds.

    Raises MissingExtra: no PyTorch. InputError: a test label that is not in training. UsageError:
    an unknown device.
    """
    need_torch()
    settings = settings or InferenceSettings()
    truth = parts.targets(parts.test)
    task = InferenceTask(parts, settings)
    seeds = [int(n) for n in rng.integers(2**31, size=settings.seeds)]
    with_vectors = np.stack([task.predict(vectors, seed) for seed in seeds])
    floor = np.stack([task.predict(vectors, seed, random=True) for seed in seeds])
    shuffled = np.stack(
        [task.predict(vectors, seed, random=True, shuffled=True) for seed in seeds[:1]]
    )
    known = [row is not None for row in vector_rows(task.words, vectors)]
    majority = int(np.bincount(parts.targets(parts.train)).argmax())
    scores = PairScores(
        chance=float((truth == majority).mean()),
        premises=premise_groups(parts.test),
        grouping=parts.grouping,
        numbers={
            **parts.numbers,
            "seeds": settings.seeds,
            "epochs_mean": float(np.mean(task.epochs)),
            "words_with_vector": float(np.mean(known)),
        },
    )
    right = with_vectors == truth
    right_at_random = floor == truth
    return [
        scores.accuracy("vectors", right, right_at_random, "random vectors of the same words"),
        scores.accuracy(
            "random vectors", right_at_random, shuffled == truth, "training labels shuffled"
        ),
        scores.gain(right.astype(np.float64) - right_at_random),
    ]


class InferenceTask:
    """The pairs as rows of tokens, for training."""

    def __init__(self, parts: NliParts, settings: InferenceSettings) -> None:
        self.parts = parts
        self.settings = settings
        self.words = words_of(parts.train)
        self.epochs: list[float] = []

    def predict(
        self, vectors: Vectors, seed: int, *, random: bool = False, shuffled: bool = False
    ) -> Ints:
        """Return the predictions of one model, (n_test,); `random`: with random vectors of the same
        words.
        """
        from papers.clinicalnlp_2019.pairs_model import (
            BagOfWords,
            PairRows,
            PairTraining,
            predictions,
        )

        rng = np.random.default_rng(seed)
        settings = self.settings
        table = random_vectors(vectors, rng) if random else vectors
        matrix = matrix_of(self.words, table, rng)
        rows = []
        for part in (self.parts.train, self.parts.dev, self.parts.test):
            sides = (
                rows_of(self.words, side, settings.max_tokens, rng)
                for side in (part.premises, part.hypotheses)
            )
            rows.append(PairRows(next(sides), next(sides), self.parts.targets(part)))
        if shuffled:
            rows[:2] = [
                PairRows(r.premises, r.hypotheses, rng.permutation(r.targets)) for r in rows[:2]
            ]
        device = device_named(settings.device)
        with seeded(seed):
            model = BagOfWords(matrix, len(self.parts.classes), settings)
            training = PairTraining(model, rows[0], rows[1], settings, device).fit()
            self.epochs.append(training.epochs)
            return predictions(training.finish(), rows[2], settings.batch, device)


@dataclass(frozen=True)
class PairScores:
    """What all findings on the test pairs share: the score of the majority label, the number of the
    premise of each pair, (n_test,), the rule of grouping, and numbers.
    """

    chance: float
    premises: Ints
    grouping: str = ""
    numbers: Numbers = field(default_factory=dict)

    def accuracy(self, series: str, right: Mask, control: Mask, control_is: str) -> Finding:
        """Return the accuracy of some vectors, from correct answers, (n_seeds, n_test), and those
        of a control.
        """
        shares = _by_premise(right, self.premises)
        low, high = share_by_patient(shares)
        seen = max(
            float(self.numbers["test_premises_seen"] or 0),
            float(self.numbers["test_hypotheses_seen"] or 0),
        )
        warning = f"{seen:.0%} of the test pairs have a sentence that is also in a training pair"
        return Finding(
            "utility.nli",
            float(right.mean()),
            right.shape[1],
            "higher",
            low,
            high,
            self.chance,
            float(control.mean()),
            SOURCE,
            series=series,
            numbers={**self.numbers, **_over_seeds(right.mean(axis=1))},
            remarks=self._remarks,
            warning=warning if series == "vectors" and seen > SEEN else "",
            unit="test pairs",
            method=share_method(shares, "premises") + ", of the mean of these seeds",
            chance_is="majority label",
            control_is=control_is,
            control_kind="negative",
        )

    @property
    def _remarks(self) -> tuple[str, ...]:
        return (f"pairs split by {self.grouping}",) if self.grouping else ()

    def gain(self, gains: Doubles) -> Finding:
        """Return the mean of the differences between the vectors and random ones on the same pairs,
        (n_seeds, n_test).
        """
        sums = _by_premise(gains, self.premises)
        low = high = None
        method = "none, of one premise"
        if len(sums) > 1:
            low, high = jackknife_t(sums, lambda total: float(total[0] / total[1]))
            method = "jackknife over premises, t, of the mean of these seeds, 95 %"
        return Finding(
            "utility.nli_gain",
            float(gains.mean()),
            gains.shape[1],
            "higher",
            low,
            high,
            0.0,
            None,
            SOURCE,
            series="vectors minus random vectors",
            numbers={**self.numbers, **_over_seeds(gains.mean(axis=1))},
            remarks=self._remarks,
            unit="test pairs",
            method=method,
        )


def _by_premise(scores: Mask | Doubles, premise: Ints) -> Doubles:
    """Return the summed mean scores and the number of pairs of each premise, (n_premises, 2)."""
    return np.stack(
        [np.bincount(premise, weights=scores.mean(axis=0)), np.bincount(premise)], axis=1
    )


def _over_seeds(by_seed: Doubles) -> dict[str, float | None]:
    """Return minimum, maximum and standard deviation over seeds."""
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    return {
        "seed_lowest": float(by_seed.min()),
        "seed_highest": float(by_seed.max()),
        "seed_sd": spread,
    }


def words_of(pairs: SentencePairs) -> WordIds:
    """Return the distinct tokens of the training pairs, with letter case; 0 is padding.

    Raises InputError if no training sentence has a token.
    """
    words = WordIds.of(
        (token for side in (pairs.premises, pairs.hypotheses) for s in side for token in s), first=1
    )
    if not words.ids:
        raise InputError("its sentences have no token", where=pairs.name)
    return words


def rows_of(words: WordIds, sentences: Sequence[Sentence], length: int, rng: Generator) -> Ints:
    """Return rows of tokens, (n_sentences, length): the last tokens of a sentence, after padding.

    Tokens that are not in training are dropped; a sentence without other tokens gets one random
    token.
    """
    table = np.full((len(sentences), length), PADDING, dtype=np.int64)
    for row, sentence in enumerate(sentences):
        known = words.encode(sentence)[-length:] or [int(rng.integers(words.first, len(words)))]
        table[row, length - len(known) :] = known
    return table


def vector_rows(words: WordIds, vectors: Vectors) -> list[int | None]:
    """Return the row of each token, or of its lookup form, in the vectors; None if there is
    neither.
    """
    return [vectors.ids.get(token, vectors.ids.get(lookup_form(token))) for token in words.ids]


def matrix_of(words: WordIds, vectors: Vectors, rng: Generator) -> Floats:
    """Return vectors of tokens, (n_tokens + 1, dim): zeros for padding, one shared random vector
    for unknown tokens.
    """
    table = np.zeros((len(words), vectors.dim), dtype=np.float32)
    shared = rng.uniform(-RANDOM, RANDOM, vectors.dim).astype(np.float32)
    for row, source in enumerate(vector_rows(words, vectors), start=words.first):
        table[row] = shared if source is None else vectors.matrix[source]
    return table


def random_vectors(vectors: Vectors, rng: Generator) -> Vectors:
    """Return normal random vectors of the same words with the same mean square (control)."""
    scale = (
        float(np.sqrt(np.mean(np.square(vectors.matrix, dtype=np.float64))))
        if vectors.matrix.size
        else 0.0
    )
    return Vectors(
        vectors.words, (scale * rng.standard_normal(vectors.matrix.shape)).astype(np.float32)
    )
