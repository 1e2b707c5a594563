"""Membership inference against a language model, or against synthetic notes through n-grams of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.models.blind import blind_membership
from clinveil.attacks.models.membership import Scored, membership
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.lm.model import LanguageModel
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.notes import PlainNotes, encode


def infer_membership(
    model: LanguageModel,
    training: PlainNotes,
    held_out: PlainNotes,
    rng: Generator,
    *,
    reference: PlainNotes | None = None,
    detail: Mapping[str, Any] | None = None,
    blind: Finding | None = None,
    most: int = 2_000,
) -> list[Finding]:
    """The blind attacker, then loss threshold and (with a reference) calibrated, by patient.

    Args:
        training, held_out: notes of the patients that the model saw, and of others like them, split at random before.
        reference: notes of third patients; n-grams of them are the reference model.
        blind: what the blind attacker found on the same notes, not to measure it twice.
        most: notes of each side at most, a random sample of patients.

    Raises:
        InputError: a patient on two sides (sampled or not), or too few patients.
    """
    _refuse_shared(training, held_out, reference)
    training, held_out = (_sample(side, most, rng) for side in (training, held_out))
    scored = score_notes(model, training, held_out, reference)
    if blind is None:
        blind = blind_membership(training.texts + held_out.texts, scored.patients, scored.members, rng)
    return [blind, *membership(scored, blind=blind, detail={**(detail or {}), "model": model.kind})]


def score_notes(
    model: LanguageModel, training: PlainNotes, held_out: PlainNotes, reference: PlainNotes | None = None
) -> Scored:
    """What a model gives the notes of both sides, and n-grams of the reference beside it.

    The areas of two models on the same notes are compared by `roc.difference_of_areas`.

    Raises InputError for a note without tokens, or a patient on both sides.
    """
    texts = training.texts + held_out.texts
    encoded = encode(texts, model.vocabulary)
    other = None
    if reference is not None:
        of_others = Ngram(encode(reference.texts, model.vocabulary), model.vocabulary)
        other = _totals(of_others, encoded.ids, encoded.offsets)
    members = np.arange(len(texts)) < len(training)
    totals = _totals(model, encoded.ids, encoded.offsets)
    return Scored(training.patients + held_out.patients, members, totals, encoded.lengths, other)


def _refuse_shared(training: PlainNotes, held_out: PlainNotes, reference: PlainNotes | None) -> None:
    seen, kept = set(training.patients), set(held_out.patients)
    if both := len(seen & kept):
        raise InputError(f"{both} patients stand on both sides", remedy="split by patient before training")
    if reference is not None and (both := len((seen | kept) & set(reference.patients))):
        remedy = "notes of third patients"
        raise InputError(f"{both} patients of the reference stand on one of the sides too", remedy=remedy)


def _totals(model: LanguageModel, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    notes = [ids[start:end] for start, end in pairwise(offsets)]
    with model.ready():
        return np.array([logs.sum() for logs in model.score(notes)])


def _sample(notes: PlainNotes, most: int, rng: Generator) -> PlainNotes:
    """Whole patients in a random order until there are enough notes."""
    if len(notes) <= most:
        return notes
    order = sorted(set(notes.patients))
    rank = {order[row]: place for place, row in enumerate(rng.permutation(len(order)))}
    rows = sorted(range(len(notes)), key=lambda row: (rank[notes.patients[row]], row))[:most]
    return notes.rows(sorted(rows))
