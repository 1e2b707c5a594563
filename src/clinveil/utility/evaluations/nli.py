"""Measure natural language inference with frozen word vectors (paper C).

Section 3.3 of the paper; compared with random vectors of the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, default_rng

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named, need_torch, seeded
from clinveil.core.settings import SEED, Settings, flag, group
from clinveil.core.tokens import WordIds, lookup_form
from clinveil.core.types import Doubles, Floats, Ints, Mask, Say
from clinveil.stats.intervals import jackknife_t, share_by_patient, share_method
from clinveil.utility.evaluations import (
    VECTORS,
    Evaluated,
    Evaluation,
    Input,
    as_vectors,
    evaluations,
    name_of,
)
from clinveil.utility.evaluations._sentence_pairs import (
    NliParts,
    Sentence,
    SentencePairs,
    nli_parts,
    premise_groups,
    read_sentence_pairs,
)
from clinveil.vectors.table import Vectors

SOURCE = "paper C, section 3.3 (NLI); bag-of-words model of Romanov & Shivade 2018"
SEEN = 0.1  # larger shares of test pairs with a training sentence give a warning
PADDING = 0
RANDOM = 0.5  # tokens without a vector share one from uniform(-0.5, 0.5)


class NliSettings(Settings):
    """Settings of the bag-of-words model of Romanov & Shivade 2018 (jgc128/mednli) and its
    training.
    """

    seeds: int = flag(5, "Models with different seeds, whose scores are averaged.", ge=1, le=100)
    hidden: int = flag(
        300, "Units of a sentence; the following layers have twice as many.", ge=1, le=4096
    )
    max_tokens: int = flag(
        50, "Tokens of a sentence; longer ones keep their last tokens.", ge=1, le=10_000
    )
    dropout: float = flag(0.5, "Dropout.", ge=0, lt=1)
    batch: int = flag(512, "Pairs in a batch.", ge=2, le=65_536)
    epochs: int = flag(40, "Maximum passes over the training pairs.", ge=1, le=10_000)
    patience: int = flag(5, "Stop after this many epochs without a lower dev loss.", ge=1)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")


def nli(
    vectors: Vectors, parts: NliParts, rng: Generator, settings: NliSettings | None = None
) -> list[Finding]:
    """Return the accuracy on test pairs, averaged over seeds, with the vectors, with random ones,
    and the difference.

    Returns:
        `utility.nli` twice (series `vectors` and `random vectors`): chance is the majority label of
        training, and the control is random vectors of the same words (for these: shuffled training
        labels). `utility.nli_gain`: the difference on the same pairs. Intervals are over premises,
        for the mean of these seeds; the detail has the lowest and highest value and the standard
        deviation over seeds.

    Raises MissingExtra: no PyTorch. InputError: a test label that is not in training. UsageError:
    an unknown device.
    """
    need_torch()
    settings = settings or NliSettings()
    truth = parts.targets(parts.test)
    task = _Task(parts, settings)
    numbers = [int(n) for n in rng.integers(2**31, size=settings.seeds)]
    own = np.stack([task.predict(vectors, seed) for seed in numbers])
    floor = np.stack([task.predict(vectors, seed, random=True) for seed in numbers])
    shuffled = np.stack(
        [task.predict(vectors, seed, random=True, shuffled=True) for seed in numbers[:1]]
    )
    known = [row is not None for row in vector_rows(task.words, vectors)]
    detail = {**parts.detail, "seeds": settings.seeds}
    detail |= {
        "epochs_mean": float(np.mean(task.epochs)),
        "words_with_vector": float(np.mean(known)),
    }
    majority = int(np.bincount(parts.targets(parts.train)).argmax())
    of = (float((truth == majority).mean()), premise_groups(parts.test), detail)
    return [
        _side("vectors", own == truth, (floor == truth, "random vectors of the same words"), *of),
        _side(
            "random vectors", floor == truth, (shuffled == truth, "training labels shuffled"), *of
        ),
        _gain((own == truth).astype(np.float64) - (floor == truth), *of[1:]),
    ]


class _Task:
    """The pairs as rows of tokens, for training."""

    def __init__(self, parts: NliParts, settings: NliSettings) -> None:
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
        from clinveil.utility.evaluations._pairs_model import (
            BagOfWords,
            PairTraining,
            Rows,
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
            rows.append(Rows(next(sides), next(sides), self.parts.targets(part)))
        if shuffled:
            rows[:2] = [
                Rows(r.premises, r.hypotheses, rng.permutation(r.targets)) for r in rows[:2]
            ]
        device = device_named(settings.device)
        with seeded(seed):
            model = BagOfWords(matrix, len(self.parts.classes), settings)
            training = PairTraining(model, rows[0], rows[1], settings, device).fit()
            self.epochs.append(training.epochs)
            return predictions(training.finish(), rows[2], settings.batch, device)


def _gain(gain: Doubles, premise: Ints, detail: dict[str, Any]) -> Finding:
    """Return the mean of the differences between the vectors and random ones on the same pairs,
    (n_seeds, n_test).
    """
    sums = _by_premise(gain, premise)
    enough = len(sums) > 1
    low, high = jackknife_t(sums, lambda sums: float(sums[0] / sums[1])) if enough else (None, None)
    return Finding(
        *(
            "utility.nli_gain",
            float(gain.mean()),
            gain.shape[1],
            "higher",
            low,
            high,
            0.0,
            None,
            SOURCE,
        ),
        detail={
            **detail,
            **_over_seeds(gain.mean(axis=1)),
            "series": "vectors minus random vectors",
        },
        unit="test pairs",
        method="jackknife over premises, t, of the mean of these seeds, 95 %"
        if enough
        else "none, of one premise",
    )


def _side(
    series: str,
    right: Mask,
    control: tuple[Mask, str],
    chance: float,
    premise: Ints,
    detail: dict[str, Any],
) -> Finding:
    """Return the accuracy of some vectors, from correct answers, (n_seeds, n_test), and those of a
    control.
    """
    shares = _by_premise(right, premise)
    detail = {**detail, **_over_seeds(right.mean(axis=1)), "series": series}
    seen = max(detail["test_premises_seen"], detail["test_hypotheses_seen"])
    if series == "vectors" and seen > SEEN:
        detail["warning"] = (
            f"{seen:.0%} of the test pairs have a sentence that is also in a training pair"
        )
    return Finding(
        *("utility.nli", float(right.mean()), right.shape[1], "higher", *share_by_patient(shares)),
        *(chance, float(control[0].mean()), SOURCE, detail),
        unit="test pairs",
        method=share_method(shares, "premises") + ", of the mean of these seeds",
        chance_is="majority label",
        control_is=control[1],
        control_kind="negative",
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


@evaluations.register("nli")
class Nli(Evaluation):
    """Train a bag-of-words model on frozen vectors; compare accuracy with random vectors and the
    majority.
    """

    inputs: ClassVar[Mapping[str, Input]] = {
        "vectors": VECTORS,
        "train": Input(
            "Labelled sentence pairs: MedNLI, SICK, RQE, or sentence1,sentence2,label.",
            "--train",
            required=True,
        ),
        "dev": Input("Validation pairs (default: split off --train).", "--dev"),
        "test": Input("Test pairs (default: split off --train).", "--test"),
    }
    model: NliSettings = group(NliSettings)
    seed: int | None = SEED
    encoding: str = flag("utf-8", "Character encoding of the pairs.")

    def __call__(
        self, given: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return accuracy with the vectors, with random vectors, and the difference."""
        device_named(self.model.device)  # before what imports PyTorch

        rng = default_rng(seed)
        how = self.model
        pairs = read_sentence_pairs(given["train"], encoding=self.encoding)
        others = (given.get(name) for name in ("dev", "test"))
        dev, test = (
            read_sentence_pairs(path, encoding=self.encoding) if path else None for path in others
        )
        findings = nli(as_vectors(given["vectors"]), nli_parts(pairs, dev, test, rng), rng, how)
        title = f"{name_of(given['vectors'], 'vectors')}, {how.seeds} seeds (seed {seed})"
        return Evaluated(findings, title)
