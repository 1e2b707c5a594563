"""Tasks without labels: a language model and word vectors, trained on the release and compared with
real notes.

Language model: an interpolated trigram with one discount (`lm.models.ngram`), in bits per word on
real held-out notes.
Ceiling: trained on real notes. Floor: a unigram of the real notes. All three share one closed
vocabulary: the words that occur at least twice in the real training notes; other words are one
unknown word.

Word vectors: skip-gram at its default settings, with fewer passes; correlation of cosines with
human scores of word pairs, on the pairs that both sides know. Ceiling: vectors of the real notes.
Floor: 0, as of random vectors.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Finding, GapScores, words
from clinveil.corpus import corpus_of_texts
from clinveil.lm import (
    END,
    UNKNOWN,
    EncodedNotes,
    Ids,
    LanguageModel,
    WordVocabulary,
    joined,
    train_ngram,
    train_unigram,
)
from clinveil.stats import NO_EVIDENCE, MeasureSpec
from clinveil.utility.pairs import (
    FEWEST_PAIRS,
    PairList,
    pair_vectors,
    prepared,
    products,
    read_pairs,
)
from clinveil.utility.scores import by_patient
from clinveil.utility.shares import DRAWS, SOURCE, Arms, bootstrap_arms, ratio, share_finding
from clinveil.utility.tasks.notes import Sides, Texts
from clinveil.vectors import Vectors, VectorSettings
from clinveil.vectors import train as train_vectors

ORDER = 3
LEAST_TWICE = 2
LM_FOLDS = 2
METHOD = "bootstrap over word pairs, 95 %"
LM_METHOD = (
    f"bootstrap over patients of the test notes (without test patients: {LM_FOLDS} of 5 folds),"
    " 95 %"
)

LANGUAGE_MODEL = MeasureSpec(
    measure="utility.language_model", unit="words of test notes", method=LM_METHOD
)
VECTORS = MeasureSpec(
    measure="utility.vectors", unit="word pairs", better="higher", source=SOURCE, method=METHOD
)


def language_model(release: Sides, texts: Texts, rng: Generator) -> list[Finding]:
    """Return `utility.language_model`: lower bits per word are better; the share may be negative.

    Raises InputError for fewer independent notes than folds, or for too few test patients.
    """
    real, released = ([words(text) for text in side] for side in (texts.real, texts.released))
    n_patients = int(texts.patient.max()) + 1
    sums = {arm: np.zeros((n_patients, 2)) for arm in ("released", "floor", "ceiling")}
    sizes: dict[str, float] = {}
    for train, test in texts.folds[:LM_FOLDS]:
        learn = [real[i] for i in train]
        other = [released[i] for i in texts.released_rows(train)]
        counts = Counter(word for note in learn for word in note)
        vocabulary = WordVocabulary(
            sorted(word for word, count in counts.items() if count >= LEAST_TWICE)
        )
        own, theirs, held_out = (
            _encoded(side, vocabulary) for side in (learn, other, [real[i] for i in test])
        )
        models: dict[str, LanguageModel] = {
            "floor": train_unigram(_joined(own), vocabulary),
            "ceiling": train_ngram(_joined(own), vocabulary, ORDER),
            "released": train_ngram(_joined(theirs), vocabulary, ORDER),
        }
        for arm, model in models.items():
            sums[arm] += by_patient(_bits(model, held_out), texts.patient[test], n_patients)
        sizes = {
            "train": len(learn),
            "train_released": len(other),
            "vocabulary_size": vocabulary.size,
        }
        known = [word in vocabulary.numbers.ids for note in other for word in note]
        sizes["unknown_released"] = 1 - float(np.mean(known)) if known else 0.0
    arms = bootstrap_arms(sums, ratio, rng, better="lower")
    n = int(sums["ceiling"][:, 1].sum())
    tested = texts.tested_rows(LM_FOLDS)
    finding = share_finding(
        LANGUAGE_MODEL,
        arms,
        n,
        "bits per word",
        labels=("trigram",),
        numbers=sizes,
        tested_on=release.tested_on(tested.size, len(np.unique(texts.patient[tested]))),
    )
    return [finding]


def _encoded(notes: Sequence[Sequence[str]], vocabulary: WordVocabulary) -> list[Ids]:
    """Return the numbers of the words and of the end of each note."""
    encode = vocabulary.numbers.encode
    return [np.array([*encode(forms, unknown=UNKNOWN), END], dtype=np.int32) for forms in notes]


def _joined(notes: Sequence[Ids]) -> EncodedNotes:
    return joined(list(notes), np.ones(len(notes), dtype=np.int64))


def _bits(model: LanguageModel, notes: Sequence[Ids]) -> Doubles:
    """(n_notes, 2) bits of the words of each note, without its end, and how many words there
    are.
    """
    logs = model.score(notes)
    return np.array([[-float(each[:-1].sum()) / np.log(2), each.size - 1] for each in logs])


LEAST_COUNT = 5
PASSES = 10


def vectors(release: Sides, texts: Texts, pairs: Sequence[Path], rng: Generator) -> list[Finding]:
    """Return `utility.vectors` for each list of word pairs; nothing without lists.

    Raises InputError for a file that is not a list of word pairs.
    """
    if not pairs:
        return []
    lists = [read_pairs(path) for path in pairs]
    learned = np.arange(len(texts.real)) if texts.tested is None else np.flatnonzero(~texts.tested)
    sides = {
        "released": [texts.released[i] for i in texts.released_rows(learned).tolist()],
        "real": [texts.real[i] for i in learned.tolist()],
    }
    seed = int(rng.integers(2**31))
    with tempfile.TemporaryDirectory(prefix="utility-vectors", dir=release.scratch) as scratch:
        released, real = (
            train_vectors(
                corpus_of_texts(side),
                VectorSettings(min_count=LEAST_COUNT, epochs=PASSES),
                seed=seed,
                workers=release.workers,
                scratch=Path(scratch) / name,
            )
            for name, side in sides.items()
        )
    return [_compared(released, real, each, rng) for each in lists]


def _compared(released: Vectors, real: Vectors, pairs: PairList, rng: Generator) -> Finding:
    ours, theirs = (pair_vectors(side, pairs).cosines() for side in (real, released))
    common = ~np.isnan(ours) & ~np.isnan(theirs)
    n = int(common.sum())
    labels = (pairs.name,)
    numbers = {"pairs": len(pairs), "pairs_real": int((~np.isnan(ours)).sum())}
    if n < FEWEST_PAIRS:
        held = f"vectors of both sides contain {n} of the {len(pairs)} pairs"
        why = f"{NO_EVIDENCE}: {held}; {FEWEST_PAIRS} are required"
        missing = replace(VECTORS, unit="").missing(why, n, labels=labels, numbers=numbers)
        return replace(missing, scores=GapScores("Spearman"))
    arms = _correlations(theirs[common], ours[common], pairs.scores[common], rng)
    for arm, name in (("ceiling", "of the real notes"), ("released", "of the release")):
        if not arms.exceeds(arm, "floor"):
            why = (
                f"{NO_EVIDENCE}: vectors {name} do not correlate with human scores above chance"
                f" ({n} pairs)"
            )
            scores = GapScores(
                "Spearman",
                score=arms.scores["released"],
                floor=0.0,
                ceiling=arms.scores["ceiling"],
            )
            missing = VECTORS.missing(why, n, labels=labels, numbers=numbers)
            return replace(missing, scores=scores)
    return share_finding(VECTORS, arms, n, "Spearman", labels=labels, numbers=numbers)


def _correlations(released: Doubles, real: Doubles, human: Doubles, rng: Generator) -> Arms:
    """Return the rank correlations of the cosines of both sides with human scores, and those of
    drawn pairs; the floor is 0.
    """
    chosen = rng.integers(human.size, size=(DRAWS, human.size))
    scores = {"floor": 0.0}
    draws = {"floor": np.zeros(DRAWS)}
    for arm, cosines in (("released", released), ("ceiling", real)):
        scores[arm] = float(
            products(prepared(cosines[None], "spearman"), prepared(human[None], "spearman"))[0]
        )
        draws[arm] = products(
            prepared(cosines[chosen], "spearman"), prepared(human[chosen], "spearman")
        )
    return Arms(scores, draws)
