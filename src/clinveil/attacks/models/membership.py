"""Membership inference: does a model, or its synthetic notes, disclose which patients it was
trained on?

The patient is the unit: their score is the mean log-probability of all words of all their notes.
Two attackers: one takes the most probable patients for members (loss threshold); the other first
subtracts the log-probability under a model of other notes (calibrated): notes of third patients,
or, without these, of the other patients of both sides, in five folds. A blind attacker, with the
notes but no model, is the control: if it is better than chance, members and non-members differ by
themselves, and membership figures are meaningless.

The blind attacker has a bag of words and labelled notes of both sides: a ridge regression on word
counts in dual form. Inner products of notes are computed once, so membership can be permuted
hundreds of times, which gives the interval. A bootstrap over patients with fixed folds missed 0.5
in one of six random splits. With only released notes, an attacker can build n-gram models of them
(paper C, footnote 6): `model_of_text`; `written` generates notes for audits.
`membership_of_release` is what every release of synthetic notes measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import rankdata

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.threats import tagged
from clinveil.core import PLACEHOLDER, Doubles, Finding, InputError, Ints, Key, Mask, setting, words
from clinveil.corpus import dictionary, medtext
from clinveil.lm import (
    END,
    EncodedNotes,
    LanguageModel,
    Ngram,
    PlainNotes,
    SamplingConfig,
    Vocabulary,
    WordVocabulary,
    encode,
    fit_of,
    generate,
    joined,
    train_ngram,
)
from clinveil.stats import MeasureSpec, RocScores

RATES = (0.01, 0.001)
MOST = 2_000
MOST_IN_RELEASE = 1_000
HITS_METHOD = (
    "exact intervals of the members and of the threshold, combined by squares (Zou and Donner),"
    " 95 %"
)
REVERSED = "training patients score lower than others, so the attacker reverses the score"
# what is attacked, and what calibrates the attack
RELEASED = "released notes"
MODEL = "the model"
THIRD = "notes of third patients"
CROSSFITTED = "the other patients of both sides, in five folds"
COPIED = "the same attack on the training notes themselves"
SOURCE = "loss threshold: Yeom et al. 2018; calibrated: Watson et al. 2022"
FOLDS = 5
PERMUTATIONS = 499
RIDGE = 0.1  # for word counts normalized to length 1
BLIND_IS = "a blind attacker: words of the notes, without the model"
BLIND_SOURCE = "blind baseline: Meeus et al. 2024; Das et al. 2024"


class Membership(Attack):
    """Distinguish members from non-members by the model's loss; with a blind attacker as the
    control.
    """

    needs = frozenset({"model", "training", "held_out"})
    optional = frozenset({"reference"})
    most: int = setting(MOST, "Maximum notes of each side, a random sample of patients.", ge=20)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack on `PlainNotes`; calibrated if there are notes of third patients
        (`context.reference`).
        """
        assert context.model is not None
        return infer_membership(
            context.model,
            context.training,
            context.held_out,
            rng,
            reference=context.reference,
            most=self.most,
        )


def infer_membership(
    model: LanguageModel,
    training: PlainNotes,
    held_out: PlainNotes,
    rng: Generator,
    *,
    reference: PlainNotes | None = None,
    attacked: str = MODEL,
    blind: Finding | None = None,
    most: int = MOST,
) -> list[Finding]:
    """Return the finding of the blind attacker, then `membership`.

    Args:
        training, held_out: notes of the patients that the model was trained on, and of similar
            ones, split at random.
        reference: notes of third patients; n-grams of them are the reference model. None: of the
            other patients.
        attacked: what is attacked: `MODEL` or `RELEASED`.
        blind: the finding of the blind attacker on the same notes, if already measured.
        most: maximum notes of each side, a random sample of patients.

    Raises:
        InputError: a patient on two sides (sampled or not), or too few patients.
    """
    _refuse_shared(training, held_out, reference)
    training = _sample(training, most, rng)
    held_out = _sample(held_out, most, rng)
    scored = _score_notes(model, training, held_out, reference, rng)
    if blind is None:
        blind = blind_membership(
            training.texts + held_out.texts, scored.patients, scored.members, rng
        )
    calibrated_by = CROSSFITTED if reference is None else THIRD
    labels = (model.kind, attacked)
    found = membership(scored, blind=blind, labels=labels, calibrated_by=calibrated_by)
    if attacked == RELEASED:
        found = list(map(_of_recipient, found))
    return [blind, *found]


def membership_of_release(
    released: PlainNotes,
    training: PlainNotes,
    held_out: PlainNotes,
    rng: Generator,
    *,
    model: LanguageModel | None = None,
    most: int = MOST_IN_RELEASE,
) -> list[Finding]:
    """Return what synthetic notes, and their model if given, disclose about who is in the training
    notes.

    Released notes are attacked as a recipient would, through n-grams of their words; texts are
    compared in MedText's form, without the placeholders of identifiers. The control is positive:
    the same attack, if the training notes themselves were released. Seconds for 1,000 notes.

    Args:
        training, held_out: notes that the model was and was not trained on, as it read them.
        most: maximum notes of each side, a random sample of patients. All released notes are used.

    Returns:
        `attack.membership_blind`, then the findings of `membership` on the released notes and on
        the model. With fewer patients than folds on one side, one finding without a value.
    """
    fewest = min(len(set(side.patients)) for side in (training, held_out))
    if fewest < FOLDS:
        why = f"one side has {fewest} patients, and membership inference requires {FOLDS}"
        missing = MeasureSpec(measure="attack.membership", unit="patients").missing(why)
        return [tagged(missing, "recipient", "membership")]
    _refuse_shared(training, held_out, None)
    training = _sample(training, most, rng)
    held_out = _sample(held_out, most, rng)
    members = as_words(training)
    others = as_words(held_out)
    text = model_of_text(as_words(released))
    scored = _score_notes(text, members, others, None, rng)
    blind = blind_membership(members.texts + others.texts, scored.patients, scored.members, rng)
    labels = (text.kind, RELEASED)
    of_notes = membership(scored, blind=blind, labels=labels, calibrated_by=CROSSFITTED)
    copied = _totals(
        model_of_text(members, text.vocabulary), _encoded(members, others, text.vocabulary)
    )
    positive = membership(replace(scored, totals=copied))
    found = [blind, *map(_of_recipient, _with_positive(of_notes, positive))]
    if model is not None:
        found += infer_membership(model, training, held_out, rng, blind=blind, most=most)[1:]
    return found


def _of_recipient(finding: Finding) -> Finding:
    """Return a finding on released notes with its cell of the adversary table; the model stays in
    the vault, so no adversary of the table holds it.
    """
    if finding.measure != "attack.membership":
        return finding
    return tagged(finding, "recipient", "membership")


def _with_positive(findings: Sequence[Finding], positive: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings with the figure of the same attack on a release of the training notes as
    their control.
    """
    for finding, known in zip(findings, positive, strict=True):
        if finding.measure == "attack.membership":
            yield replace(finding, control=known.value, control_is=COPIED, control_kind="positive")
        else:
            yield finding


def as_words(notes: PlainNotes) -> PlainNotes:
    """Return the notes in MedText's form, without placeholders and without notes that have no
    word.
    """
    texts = [medtext(PLACEHOLDER.sub(" ", text)) for text in notes.texts]
    rows = [row for row, text in enumerate(texts) if text]
    return replace(notes.rows(rows), texts=tuple(texts[row] for row in rows))


def _score_notes(
    model: LanguageModel,
    training: PlainNotes,
    held_out: PlainNotes,
    reference: PlainNotes | None,
    rng: Generator,
) -> ScoredNotes:
    """Score the notes of both sides under the model, and under n-grams of the reference."""
    encoded = _encoded(training, held_out, model.vocabulary)
    patients = training.patients + held_out.patients
    if reference is None:
        other = _crossfitted(encoded, patients, model.vocabulary, rng)
    else:
        other = _totals(model_of_text(reference, model.vocabulary), encoded)
    members = np.arange(len(patients)) < len(training)
    return ScoredNotes(patients, members, _totals(model, encoded), encoded.lengths, other)


def _encoded(training: PlainNotes, held_out: PlainNotes, vocabulary: Vocabulary) -> EncodedNotes:
    return encode(training.texts + held_out.texts, vocabulary)


def _crossfitted(
    notes: EncodedNotes, patients: Sequence[str], vocabulary: Vocabulary, rng: Generator
) -> Doubles:
    """Return the log-probability of each note under n-grams of the patients in the other folds, of
    either side.
    """
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
    fold = rng.permutation(np.arange(patient.max() + 1) % FOLDS)[patient]
    totals = np.empty(len(notes))
    for number in range(FOLDS):
        inside = np.flatnonzero(fold == number)
        model = train_ngram(notes.rows(np.flatnonzero(fold != number)), vocabulary)
        totals[inside] = _totals(model, notes.rows(inside))
    return totals


def _refuse_shared(
    training: PlainNotes, held_out: PlainNotes, reference: PlainNotes | None
) -> None:
    trained_ids = set(training.patients)
    held_ids = set(held_out.patients)
    if shared := len(trained_ids & held_ids):
        raise InputError(
            f"{shared} patients are on both sides", hint="split by patient before training"
        )
    if reference is not None and (
        shared := len((trained_ids | held_ids) & set(reference.patients))
    ):
        hint = "provide notes of third patients"
        raise InputError(
            f"{shared} patients of the reference are also on one of the sides", hint=hint
        )


def _totals(model: LanguageModel, notes: EncodedNotes) -> Doubles:
    with model.ready():
        return fit_of(model, notes).totals


def _sample(notes: PlainNotes, most: int, rng: Generator) -> PlainNotes:
    """Sample entire patients in random order until there are enough notes."""
    if len(notes) <= most:
        return notes
    order = sorted(set(notes.patients))
    rank = {order[row]: place for place, row in enumerate(rng.permutation(len(order)))}
    rows = sorted(range(len(notes)), key=lambda row: (rank[notes.patients[row]], row))[:most]
    return notes.rows(sorted(rows))


@dataclass(frozen=True)
class ScoredNotes:
    """Log-probabilities of the notes of members and non-members, one row per note.

    Raises:
        InputError: a patient on both sides. ValueError: rows that do not agree, a note without
            tokens.
    """

    patients: Sequence[str] = field(repr=False)
    members: Mask = field(repr=False)  # whether the model was trained on that patient
    totals: Doubles = field(repr=False)  # log-probability (nats) of the whole note
    tokens: Ints = field(repr=False)  # number of scored tokens
    # `totals` under a model of other patients' notes.
    reference: Doubles | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shapes = {len(self.patients), self.members.size, self.totals.size, self.tokens.size}
        if len(shapes | ({self.reference.size} if self.reference is not None else set())) != 1:
            raise ValueError("notes, patients and scores differ in number")
        if (self.tokens <= 0).any():
            raise ValueError(f"{int((self.tokens <= 0).sum())} notes have no scored token")
        sides = {(patient, bool(m)) for patient, m in zip(self.patients, self.members, strict=True)}
        if shared := len(sides) - len(set(self.patients)):
            raise InputError(
                f"{shared} patients are members and non-members at once", hint="split by patient"
            )

    def by_patient(self, totals: Doubles) -> RocScores:
        """Return members and non-members by mean log-probability per token."""
        patient = np.unique(np.array(self.patients, dtype=object), return_inverse=True)[1]
        means = np.bincount(patient, weights=totals) / np.bincount(patient, weights=self.tokens)
        member = np.bincount(patient, weights=self.members) > 0
        return RocScores(means[member], means[~member])


def membership(
    scored: ScoredNotes,
    *,
    blind: Finding | None = None,
    labels: tuple[str, ...] = (),
    calibrated_by: str = "",
) -> list[Finding]:
    """Return AUC, and TPR at an FPR of 1 % and 0.1 %, of the loss threshold and, with a reference,
    calibrated.

    Args:
        blind: the finding of the blind attacker on the same notes: the control.
        labels: of every finding: the model, and what was attacked. calibrated_by: the notes of the
            reference.

    Returns:
        `attack.membership` (AUC, chance 0.5) and `attack.membership_hits` by attacker. A false
        positive rate that needs more non-members has no value and gives the reason. If an interval
        is below 0.5, the figures are those of the reversed score.
    """
    attackers = {"loss threshold": scored.by_patient(scored.totals)}
    if scored.reference is not None:
        attackers["calibrated"] = scored.by_patient(scored.totals - scored.reference)
    found = []
    for name, roc in attackers.items():
        warning = ""
        if (high := roc.auc_interval()[1]) < 0.5:
            warning = f"{REVERSED} (AUC {roc.auc:.2f}, interval to {high:.2f})"
            roc = RocScores(-roc.members, -roc.others)
        remarks = (f"calibrated by {calibrated_by}",) if calibrated_by else ()
        numbers = {"members": roc.members.size, "non_members": roc.others.size}
        for finding in (_area(roc, blind, warning), *(_hits(roc, rate, warning) for rate in RATES)):
            found.append(
                replace(
                    finding,
                    attack=name,
                    labels=(*labels, *finding.labels),
                    numbers={**numbers, **finding.numbers},
                    remarks=remarks,
                )
            )
    return found


def _area(roc: RocScores, blind: Finding | None, warning: str) -> Finding:
    if blind is not None and blind.low is not None and blind.low > 0.5:
        blind_warning = "the blind attacker beats chance: the two sides differ by themselves"
        warning = "; ".join(filter(None, (warning, blind_warning)))
    low, high = roc.auc_interval()
    return Finding(
        "attack.membership",
        roc.auc,
        roc.members.size + roc.others.size,
        "lower",
        low,
        high,
        chance=0.5,
        chance_is="a score without information",
        control=None if blind is None else blind.value,
        control_is="" if blind is None else BLIND_IS,
        control_kind=None if blind is None else "negative",
        source=SOURCE,
        unit="patients",
        method=roc.auc_method,
        warning=warning,
    )


def _hits(roc: RocScores, rate: float, warning: str) -> Finding:
    name = "attack.membership_hits"
    n = roc.members.size
    labels = (f"{rate:.1%} false alarms",)
    numbers = {"false_alarms": rate}
    try:
        share, (low, high) = roc.tpr_at_fpr(rate)
    except InputError as error:
        spec = MeasureSpec(measure=name, source=SOURCE, unit="patients")
        missing = spec.missing(str(error), n, labels=labels, numbers=numbers)
        return replace(missing, warning=warning)
    return Finding(
        name,
        share,
        n,
        "lower",
        low,
        high,
        chance=rate,
        chance_is="the same share of members and non-members above the threshold",
        source=SOURCE,
        labels=labels,
        numbers=numbers,
        unit="patients",
        count=round(share * n),
        method=HITS_METHOD,
        warning=warning,
    )


def model_of_text(notes: PlainNotes, vocabulary: Vocabulary | None = None) -> Ngram:
    """Return an n-gram model of notes; by default its vocabulary contains all their words,
    including rare ones.
    """
    if vocabulary is None:
        vocabulary = WordVocabulary(words_of(notes.texts))
    return train_ngram(encode(notes.texts, vocabulary), vocabulary)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return all words of notes, in the order of first appearance."""
    return dictionary(texts, [""] * len(texts), min_count=1).words


def written(
    model: LanguageModel, tokens: int, seed: int, settings: SamplingConfig, *, threads: int = 1
) -> EncodedNotes:
    """Generate synthetic notes of about `tokens` tokens under a public seed: for audits, never for
    release.
    """
    end = np.array([END], dtype=np.int32)
    notes = []
    made = 0
    with model.ready(threads=threads):
        for note in generate(model, Key.from_seed(seed), settings):
            notes.append(np.concatenate([note.ids, end]))
            made += notes[-1].size  # includes the end token, so that empty notes also make progress
            if made >= tokens:
                break
    characters = [len(model.vocabulary.decode(note.tolist())) + 1 for note in notes]
    return joined(notes, np.array(characters, dtype=np.int64))


def blind_membership(
    texts: Sequence[str], patients: Sequence[str], members: Mask, rng: Generator
) -> Finding:
    """Return the AUC of a bag-of-words attacker with labelled notes of both sides; its interval
    should include 0.5.

    Each patient is scored by a model fitted to other patients' notes: with notes of the same
    patient on both sides it would recognize the patient (AUC 0.97 without any signal). A patient's
    score is the mean rank of their notes within the fold.

    Args:
        texts, patients, members: of each note. All pairs of notes are held: 130 MB for 4,000.

    Returns:
        `attack.membership_blind`; its interval has the width of the AUC under random membership,
        and its P is two-sided.

    Raises:
        InputError: fewer patients than folds on one side.
    """
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
    member = np.bincount(patient, weights=members) > 0
    n_members = int(member.sum())
    if min(n_members, member.size - n_members) < FOLDS:
        raise InputError(
            f"the blind attacker needs {FOLDS} patients on each side", hint="provide more notes"
        )
    # Column 0 is the truth; the others are random members.
    drawn = rng.permuted(np.repeat(member[:, None], PERMUTATIONS, axis=1), axis=0)
    sides = np.concatenate([member[:, None], drawn], axis=1)
    areas = _areas(_scores(texts, patient, sides, rng), patient, sides)
    return _finding(float(areas[0]), areas[1:], n_members, member.size)


def _finding(value: float, null: Doubles, members: int, patients: int) -> Finding:
    """Return the finding on the area, compared with those of random members, (n_draws,)."""
    below, above = np.quantile(null, [0.025, 0.975])
    low = max(0.0, value - max(0.0, above - 0.5))
    high = min(1.0, value + max(0.0, 0.5 - below))
    p = (1 + int((np.abs(null - 0.5) >= abs(value - 0.5) - 1e-12).sum())) / (1 + null.size)
    numbers = {
        "members": members,
        "non_members": patients - members,
        "folds": FOLDS,
        "permutations": null.size,
        "covers_chance": bool(low <= 0.5 <= high),
    }
    return Finding(
        "attack.membership_blind",
        value,
        patients,
        "lower",
        low,
        high,
        chance=0.5,
        source=BLIND_SOURCE,
        numbers=numbers,
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
        counts = HashingVectorizer(
            analyzer=words, n_features=2**18, alternate_sign=False
        ).transform(texts)
        products = (counts @ counts.T).toarray()
        labels = sides[patient].astype(np.float64)
        scores = np.empty(labels.shape)
        # Each fold is a random fifth of the patients, of either side.
        fold = rng.permutation(np.arange(patient.max() + 1) % FOLDS)[patient]
        for one in range(FOLDS):
            test = fold == one
            train = np.flatnonzero(fold != one)
            factor = cho_factor(products[np.ix_(train, train)] + RIDGE * np.eye(train.size))
            known = labels[train] - labels[train].mean(axis=0)
            # Folds differ in intercept by their shares of the two sides, so only the rank within a
            # fold is used.
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
