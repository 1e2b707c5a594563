"""Attackers without the model: n-grams of released notes, and a bag of words.

N-grams are what an attacker makes who has released notes only (paper C, footnote 6); `written` makes notes for audits.

The blind attacker has a bag of words and labelled notes of both sides. Where they tell members from non-members, the
two sides differ by themselves, and no membership figure means anything. Ridge regression on word counts in its dual
form: the notes' inner products are taken once, so that who is a member can be permuted hundreds of times, and the
interval is that of the permutations. A bootstrap over patients alone, with the folds held fast, missed 0.5 in one of
six random splits.
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
RIDGE = 0.1  # of notes whose word counts have length 1
SOURCE = "blind baseline: Meeus et al. 2024; Das et al. 2024"


def model_of_text(notes: PlainNotes, vocabulary: Vocabulary | None = None) -> Ngram:
    """An n-gram model of notes; its vocabulary is theirs, rare words too, unless one is given."""
    if vocabulary is None:
        vocabulary = WordVocabulary(words_of(notes.texts))
    return Ngram(encode(notes.texts, vocabulary), vocabulary)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """All words of notes, in the order of first appearance."""
    return dictionary(texts, [""] * len(texts), min_count=1).words


def written(model: LanguageModel, tokens: int, seed: int, how: SamplingConfig, *, threads: int = 1) -> EncodedNotes:
    """Synthetic notes of about `tokens` tokens, under the key of a public seed: for audits, never for release."""
    end = np.array([END], dtype=np.int32)
    notes, made = [], 0
    with model.ready(threads=threads):
        for note in generate(model, Key.from_seed(seed), how):
            notes.append(np.concatenate([note.ids, end]))
            made += notes[-1].size  # with its end: notes without a word come to an end too
            if made >= tokens:
                break
    characters = [len(model.vocabulary.decode(note.tolist())) + 1 for note in notes]
    return joined(notes, np.array(characters, dtype=np.int64))


def blind_membership(texts: Sequence[str], patients: Sequence[str], members: Mask, rng: Generator) -> Finding:
    """AUC of a bag-of-words attacker who has labelled notes of both sides and no model; its interval should cover 0.5.

    Each patient is scored by what was fitted to the notes of other patients (folds by patient: with a patient's notes
    on both sides it would recognise the patient, 0.97 with no signal at all). A patient's score is the mean of their
    notes' ranks within their fold.

    Args:
        texts, patients, members: of each note. All pairs of notes are held: 130 MB for 4,000.

    Returns:
        `attack.membership_blind`; its interval is as wide as the AUC strays when members are drawn at random, and its P
        is two-sided.

    Raises:
        InputError: fewer patients than folds on one side.
    """
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
    member = np.bincount(patient, weights=members) > 0
    n_members = int(member.sum())
    if min(n_members, member.size - n_members) < FOLDS:
        raise InputError(f"the blind attacker needs {FOLDS} patients on each side", hint="give more notes")
    # Column 0 is the truth, the others draw as many patients at random.
    drawn = rng.permuted(np.repeat(member[:, None], PERMUTATIONS, axis=1), axis=0)
    sides = np.concatenate([member[:, None], drawn], axis=1)
    areas = _areas(_scores(texts, patient, sides, rng), patient, sides)
    return _finding(float(areas[0]), areas[1:], n_members, member.size)


def _finding(value: float, null: Doubles, members: int, patients: int) -> Finding:
    """The area beside those of members drawn at random, (n_draws,)."""
    below, above = np.quantile(null, [0.025, 0.975])
    low, high = max(0.0, value - max(0.0, above - 0.5)), min(1.0, value + max(0.0, 0.5 - below))
    p = (1 + int((np.abs(null - 0.5) >= abs(value - 0.5) - 1e-12).sum())) / (1 + null.size)
    detail = {"members": members, "non_members": patients - members, "folds": FOLDS}
    detail |= {"permutations": null.size, "covers_chance": bool(low <= 0.5 <= high)}
    return Finding(
        *("attack.membership_blind", value, patients, "lower", low, high, 0.5, None, SOURCE, detail),
        unit="patients",
        p=p,
        p_is="members drawn at random, two-sided",
        method="as far as it strays when members are drawn at random, 95 %",
        chance_is="an attacker who orders patients at random",
    )


def _scores(texts: Sequence[str], patient: Ints, sides: Mask, rng: Generator) -> Doubles:
    """(n_notes, n_draws) ranks within the fold, in (0, 1)."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        counts = HashingVectorizer(analyzer=words, n_features=2**18, alternate_sign=False).transform(texts)
        products = (counts @ counts.T).toarray()
        labels = sides[patient].astype(np.float64)
        scores = np.empty(labels.shape)
        # A fifth of the patients at a time, at random and whatever their side.
        fold = rng.permutation(np.arange(patient.max() + 1) % FOLDS)[patient]
        for one in range(FOLDS):
            test, train = fold == one, np.flatnonzero(fold != one)
            factor = cho_factor(products[np.ix_(train, train)] + RIDGE * np.eye(train.size))
            known = labels[train] - labels[train].mean(axis=0)
            # Folds differ in their intercepts by which side they hold more of: only the order within one is evidence.
            odds = products[np.ix_(test, train)] @ cho_solve(factor, known)
            scores[test] = (rankdata(odds, axis=0) - 0.5) / test.sum()
    return scores


def _areas(scores: Doubles, patient: Ints, sides: Mask) -> Doubles:
    """(n_draws,) areas under the curve of patients' mean scores."""
    total = np.zeros(sides.shape)
    np.add.at(total, patient, scores)
    ranks = rankdata(total / np.bincount(patient)[:, None], axis=0)
    n = sides.sum(axis=0)
    found: Doubles = ((ranks * sides).sum(axis=0) - n * (n + 1) / 2) / (n * (len(sides) - n))
    return found
