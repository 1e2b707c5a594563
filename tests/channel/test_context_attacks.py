"""Attackers of the mechanism `contextual`: positive and negative controls, exact likelihoods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from context_cases import LABEL, contextual, labelled_notes

from clinveil.attacks import Context, Linkage
from clinveil.attacks.adversary import ADVERSARIES
from clinveil.attacks.channel._view import adversary_views, halves
from clinveil.attacks.channel.adversary_suite import scored
from clinveil.attacks.channel.in_context import guesses
from clinveil.attacks.channel.inversion import Inversion
from clinveil.attacks.text.linkage.in_context import ContextGains
from clinveil.attacks.text.linkage.shape import _of_fragments
from clinveil.attacks.text.linkage.sides import paired
from clinveil.channel import Channel, WordObfuscator
from clinveil.core import Key
from clinveil.corpus import Columns, MemoryCorpus
from clinveil.vectors import count_words

COLUMNS = Columns(
    text="text", note_id="note_id", patient_id="patient_id", keep=(LABEL,), labels=(LABEL,)
)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    """The channel of the small language."""
    return contextual(tmp_path_factory.mktemp("attacked"))


def context_of(channel: Channel, background: float, strength: float) -> Context:
    here = channel.under(layout="sentences", background=background, context_strength=strength)
    notes = replace(labelled_notes(), columns=COLUMNS)
    engine = WordObfuscator(here, Key.from_seed(2))
    released = MemoryCorpus(tuple(engine(batch).batch for batch in notes.batches()), COLUMNS)
    return Context(channel=here, original=notes, entered=notes, released=released)


def shares_of(context: Context) -> dict[tuple[str, str], float]:
    findings = Linkage(most=120)(context, np.random.default_rng(1))
    return {
        (f.attack, f.labels[0]): float(f.value)
        for f in findings
        if f.measure == "attack.linkage" and f.value is not None
    }


def test_without_background_an_attacker_with_vectors_and_model_links_nearly_all(channel):
    shares = shares_of(context_of(channel, 0.0, 1.0))
    assert shares["with the channel", "whole texts"] > 0.95
    assert shares["with the channel", "10 words in a row"] > 0.9


def test_more_background_links_less(channel):
    ten = ("with the channel", "10 words in a row")
    half, most = (shares_of(context_of(channel, b, 1.0))[ten] for b in (0.5, 0.9))
    assert 0.9 >= half > most


def test_with_background_1_no_released_word_follows_the_note(channel):
    """Every score by words is the same for all candidates."""
    context = context_of(channel, 1.0, 0.0)
    sides = paired(context.released, context.original, np.random.default_rng(1), limit=60)
    sides = sides.labelled(context.released, LABEL, None)
    for view in (sides, sides.fragments(10, np.random.default_rng(2))):
        gains = ContextGains.of(view, context.channel)
        assert all(note.nnz == 0 for note in gains.gains)
        for scores in (gains.mixture((0.1, 0.5)), gains.covered(), gains.in_order()):
            assert np.ptp(scores, axis=1) == pytest.approx(0, abs=1e-9)


def test_with_background_1_attackers_by_ten_words_are_at_chance_given_the_label(channel):
    shares = shares_of(context_of(channel, 1.0, 0.0))
    for (attacker, known), share in shares.items():
        if known == "10 words in a row":
            # 120 notes of two labels; .066 is four standard errors above 1 of 60.
            assert share < 1 / 60 + 0.066, attacker


def test_length_and_sentence_ends_have_a_row_of_their_own_whatever_the_background(channel):
    rows = [
        {
            f.labels[0]: f.value
            for f in Linkage(most=60)(context_of(channel, b, 1.0), np.random.default_rng(1))
            if f.measure == "attack.linkage_shape"
        }
        for b in (0.3, 1.0)
    ]
    assert rows[0] == rows[1]
    assert rows[0]["whole texts"] > 0.9 and 1 / 60 <= rows[0]["10 words in a row"] < 0.5


def recovered(context: Context, name: str, scratch: Path) -> tuple[float, float]:
    """Share of words that an adversary recovers, and that of always naming the most frequent."""
    counted = replace(context, counts=count_words(context.entered, scratch), scratch=scratch)
    rng = np.random.default_rng(1)
    views = adversary_views(counted, halves(counted, 3_000, 100_000, rng))
    reader = ADVERSARIES.get(name)()
    scores = [scored(view.notes, list(reader.recover(view, rng))) for view in views]
    right = np.concatenate([one.is_right for one in scores])
    truth = np.concatenate([one.truth for one in scores])
    return float(right.mean()), float(np.bincount(truth).max() / truth.size)


@pytest.mark.parametrize("name", ["bigram", "own-vectors", "known-pairs"])
def test_readers_recover_words_that_follow_the_note_and_no_others(channel, name, tmp_path):
    follows, chance = recovered(context_of(channel, 0.0, 1.0), name, tmp_path)
    # The neighbours of these words are not those of any vectors, so shadow vectors cannot help.
    assert follows > {"bigram": 3 * chance, "own-vectors": 0, "known-pairs": 2 * chance}[name]
    model, chance = recovered(context_of(channel, 1.0, 0.0), name, tmp_path)
    # 3,000 words of notes that the released words do not depend on.
    assert model < chance + 0.03


def test_the_gain_is_the_exact_likelihood_ratio(channel):
    """Summed over a note it separates the source from another note as the likelihood does."""
    context = context_of(channel, 0.5, 1.0)
    sides = paired(context.released, context.original, np.random.default_rng(1), limit=40)
    sides = sides.labelled(context.released, LABEL, None)
    gains = ContextGains.of(sides, context.channel)
    for note, truth in zip(gains.gains, sides.truth.tolist(), strict=True):
        rows = [context.channel.ids.get(w, -1) for w in sides.known_words[truth]]
        own = [
            np.log1p(note[t, row] / 0.5) if row >= 0 else 0.0
            for t, row in enumerate(rows[: note.shape[0]])
        ]
        other = np.roll(rows, 3)
        wrong = [
            np.log1p(note[t, row] / 0.5) if row >= 0 else 0.0
            for t, row in enumerate(other[: note.shape[0]].tolist())
        ]
        assert sum(own) > sum(wrong)


@dataclass(frozen=True)
class Share:
    """A measured share."""

    value: float
    low: float
    high: float
    chance: float
    control: float
    n: float


def inverted(context: Context, scratch: Path) -> Share:
    """Share of all words that the inversion recovers."""
    counted = replace(context, counts=count_words(context.entered, scratch), scratch=scratch)
    found = Inversion()(counted, np.random.default_rng(1))[0]
    assert found.measure == "attack.inversion"
    fields = (found.value, found.low, found.high, found.chance, found.control, found.n)
    return Share(*(float("nan") if field is None else field for field in fields))


def test_inversion_recovers_much_without_background_and_the_chance_level_with_background_1(
    channel, tmp_path
):
    # All outputs of a word are shared by others: words before and frequencies decide.
    follows = inverted(context_of(channel, 0.0, 1.0), tmp_path)
    assert follows.value > 2 * follows.chance and follows.low > follows.control
    model = inverted(context_of(channel, 1.0, 0.0), tmp_path)
    assert model.value == pytest.approx(model.chance, abs=1e-9)
    assert model.n > 10_000


def test_inversion_names_the_word_with_the_largest_prior_times_likelihood(channel, tmp_path):
    """Compared with all words, one by one; of a band, only its words are named."""
    context = context_of(channel, 0.3, 1.0)
    counted = replace(context, counts=count_words(context.entered, tmp_path))
    rng = np.random.default_rng(1)
    view = adversary_views(counted, halves(counted, 1_000, 0, rng))[0]
    mechanism = view.mechanism
    note = view.notes[0]
    likelihood = note.likelihood(mechanism)
    assert view.counts is not None
    counts = view.counts.astype(np.float64)
    rare = np.where(counts < np.median(counts), counts, 0.0)
    named = guesses(note, mechanism, [counts, rare])
    for place in range(len(note)):
        chances = np.full(counts.size, likelihood.others[place])
        own = slice(likelihood.starts[place], likelihood.starts[place + 1])
        chances[likelihood.rows[own]] = likelihood.chances[own]
        for prior, guess in zip((counts, rare), named, strict=True):
            best = (chances * prior).max()
            assert chances[guess[place]] * prior[guess[place]] == pytest.approx(best, rel=1e-12)
    assert (rare[named[1]] > 0).all()


def test_inversion_in_context_recovers_no_fewer_words_than_without(channel, tmp_path):
    """With weights of neighbours that do not depend on the context, both attackers know the same
    neighbours, and one also the words before.
    """
    context = context_of(channel, 0.5, 0.0)
    with_words = inverted(context, tmp_path)
    alone = inverted(replace(context, released=None), tmp_path)
    assert with_words.high > alone.value
    assert with_words.value > alone.value - 0.02


def test_shares_of_fragments_are_those_of_a_comparison_place_by_place():
    rng = np.random.default_rng(5)
    sizes = (0, 4, 10, 40, 130)
    released = [rng.random(size) < 0.2 for size in sizes]
    known = [rng.random(size) < 0.2 for size in (0, 1, 3, 10, 10, 63, 64, 70)]
    scores = _of_fragments(released, known)
    for row, ends in enumerate(released):
        padded = np.append(ends, np.zeros(80, dtype=np.bool_))
        for column, pattern in enumerate(known):
            places = max(1, ends.size - pattern.size + 1)
            fits = [
                all(padded[start + k] == pattern[k] for k in range(1, pattern.size))
                for start in range(places)
            ]
            assert scores[row, column] == np.mean(fits)
