"""Attackers without the model: n-gram models of released notes, and a bag-of-words classifier.

With only released notes, an attacker can build n-gram models (paper C, footnote 6); `written` generates notes for
audits.

The blind attacker has a bag of words and labelled notes of both sides. If it can distinguish members from non-members,
the two sides differ by themselves, and membership figures are meaningless. It is a ridge regression on word counts in
dual form: inner products of notes are computed once, so membership can be permuted hundreds of times, which gives the
interval. A bootstrap over patients with fixed folds missed 0.5 in one of six random splits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import rankdata

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.corpus.medtext import dictionary
from clinveil.lm.model import LanguageModel
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.notes import EncodedNotes, PlainNotes, encode, joined
from clinveil.lm.sampling import SamplingConfig, generate
from clinveil.lm.vocabulary import END, Vocabulary, WordVocabulary

FOLDS = 5
PERMUTATIONS = 499
RIDGE = 0.1  # for word counts normalized to length 1
SOURCE = "blind baseline: Meeus et al. 2024; Das et al. 2024"


def model_of_text(notes: PlainNotes, vocabulary: Vocabulary | None = None) -> Ngram:
    """Return an n-gram model of notes; by default its vocabulary contains all their words, including rare ones."""
    if vocabulary is None:
        vocabulary = WordVocabulary(words_of(notes.texts))
    return Ngram(encode(notes.texts, vocabulary), vocabulary)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return all words of notes, in the order of first appearance."""
    return dictionary(texts, [""] * len(texts), min_count=1).words


def written(model: LanguageModel, tokens: int, seed: int, how: SamplingConfig, *, threads: int = 1) -> EncodedNotes:
    """Generate synthetic notes of about `tokens` tokens under a public seed: for audits, never for release."""
    end = np.array([END], dtype=np.int32)
    notes, made = [], 0
    with model.ready(threads=threads):
        for note in generate(model, Key.from_seed(seed), how):
            notes.append(np.concatenate([note.ids, end]))
            made += notes[-1].size  # includes the end token, so that empty notes also make progress
            if made >= tokens:
                break
    characters = [len(model.vocabulary.decode(note.tolist())) + 1 for note in notes]
    return joined(notes, np.array(characters, dtype=np.int64))


def blind_membership(texts: Sequence[str], patients: Sequence[str], members: Mask, rng: Generator) -> Finding:
    """Return the AUC of a bag-of-words attacker with labelled notes of both sides; its interval should include 0.5.

    Each patient is scored by a model fitted to other patients' notes: with notes of the same patient on both sides it
    would recognize the patient (AUC 0.97 without any signal). A patient's score is the mean rank of their notes within
    the fold.

    Args:
        texts, patients, members: of each note. All pairs of notes are held: 130 MB for 4,000.

    Returns:
        `attack.membership_blind`; its interval has the width of the AUC under random membership, and its P is
        two-sided.

    Raises:
        InputError: fewer patients than folds on one side.
    """
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
    member = np.bincount(patient, weights=members) > 0
    n_members = int(member.sum())
    if min(n_members, member.size - n_members) < FOLDS:
        raise InputError(f"the blind attacker needs {FOLDS} patients on each side", hint="provide more notes")
    # Column 0 is the truth; the others are random members.
    drawn = rng.permuted(np.repeat(member[:, None], PERMUTATIONS, axis=1), axis=0)
    sides = np.concatenate([member[:, None], drawn], axis=1)
    areas = _areas(_scores(texts, patient, sides, rng), patient, sides)
    return _finding(float(areas[0]), areas[1:], n_members, member.size)


def _finding(value: float, null: Doubles, members: int, patients: int) -> Finding:
    """Return the finding on the area, compared with those of random members, (n_draws,)."""
    below, above = np.quantile(null, [0.025, 0.975])
    low, high = max(0.0, value - max(0.0, above - 0.5)), min(1.0, value + max(0.0, 0.5 - below))
    p = (1 + int((np.abs(null - 0.5) >= abs(value - 0.5) - 1e-12).sum())) / (1 + null.size)
    detail = {"members": members, "non_members": patients - members, "folds": FOLDS}
    detail |= {"permutations": null.size, "covers_chance": bool(low <= 0.5 <= high)}
    return Finding(
        *("attack.membership_blind", value, patients, "lower", low, high, 0.5, None, SOURCE, detail),
        unit="patients",
        p=p,
        p_is="random members, two-sided",
        method="quantiles under random membership, 95 %",
        chance_is="an attacker who ranks patients at random",
    )


def _scores(texts: Sequence[str], patient: Ints, sides: Mask, rng: Generator) -> Doubles:
    """Return ranks within the fold, (n_notes, n_draws), in (0, 1)."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        counts = HashingVectorizer(analyzer=words, n_features=2**18, alternate_sign=False).transform(texts)
        products = (counts @ counts.T).toarray()
        labels = sides[patient].astype(np.float64)
        scores = np.empty(labels.shape)
        # Each fold is a random fifth of the patients, of either side.
        fold = rng.permutation(np.arange(patient.max() + 1) % FOLDS)[patient]
        for one in range(FOLDS):
            test, train = fold == one, np.flatnonzero(fold != one)
            factor = cho_factor(products[np.ix_(train, train)] + RIDGE * np.eye(train.size))
            known = labels[train] - labels[train].mean(axis=0)
            # Folds differ in intercept by their shares of the two sides, so only the rank within a fold is used.
            odds = products[np.ix_(test, train)] @ cho_solve(factor, known)
            scores[test] = (rankdata(odds, axis=0) - 0.5) / test.sum()
    return scores


def _areas(scores: Doubles, patient: Ints, sides: Mask) -> Doubles:
    """Return areas under the curve of patients' mean scores, (n_draws,)."""
    total = np.zeros(sides.shape)
    np.add.at(total, patient, scores)
    ranks = rankdata(total / np.bincount(patient)[:, None], axis=0)
    n = sides.sum(axis=0)
    found: Doubles = ((ranks * sides).sum(axis=0) - n * (n + 1) / 2) / (n * (len(sides) - n))
    return found
