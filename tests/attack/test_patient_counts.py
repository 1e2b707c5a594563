"""Outputs counted per patient under memo patient: by hand, all and nothing to find, and nothing of one's own known."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from test_inversion import channel_of, identity

from clinveil.attacks.channel import inversion as module
from clinveil.attacks.channel.inversion import CLASSES, SHRINKAGES, Habits, class_of, inversion, inversion_counts
from clinveil.corpus.corpus import memory_corpus

DIGITS = str.maketrans("0123456789", "abcdefghij")


def notes_of(patients):
    """One note a patient, from the counts of their words, in letters only: w10 is "wba"."""
    texts = [" ".join(word.translate(DIGITS) for word, n in uses.items() for _ in range(n)) for uses in patients]
    return memory_corpus([(f"n{i}", f"p{i}", text) for i, text in enumerate(texts)])


def found(channel, notes, unknown=(), **named):
    total = Counter()
    for uses in notes:
        total.update(uses)
    counts = np.array([total[word] for word in channel.words])
    outside = {word: total[word] for word in unknown}
    spelled = replace(channel, words=[word.translate(DIGITS) for word in channel.words])
    made = inversion_counts(spelled, counts, notes_of(notes), outside, rng=np.random.default_rng(1), **named)
    return {f.detail["stratum"]: f for f in made}


def random_patients(channel, n, seed):
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.6, 3.0, len(channel.words))
    return [{w: int(k) for w, k in zip(channel.words, rng.poisson(means), strict=True) if k} for _ in range(n)]


# Every word comes out as w0 or w1.
SAME = channel_of([{0: 0.5, 1: 0.5}] * 3)


def test_counts_tell_words_apart_that_one_draw_does_not():
    """w0 stands once in a patient's notes and w1 six times; nobody has both, and both come out alike."""
    patients = [{"w0": 1} if i % 7 else {"w1": 6} for i in range(700)]
    every = found(SAME, patients)["all"]
    assert every.value == 1.0 and every.detail["one_draw"] == pytest.approx(0.5, abs=0.01)
    assert every.chance == pytest.approx(0.5, abs=0.01) and every.control == pytest.approx(0.5, abs=0.01)
    assert every.n == 1200 and every.count == 1200 and every.detail["patients"] == 700
    assert (every.unit, every.control_kind) == ("tokens", "negative") and "patients" in every.method


def test_negative_control_words_of_like_habits_are_not_told_apart():
    rng = np.random.default_rng(2)
    notes = [{f"w{int(rng.integers(2))}": int(rng.integers(1, 9))} for _ in range(6000)]
    every = found(SAME, notes, patients=6000)["all"]
    assert 0.47 < every.value < 0.52 and every.detail["one_draw"] == pytest.approx(0.5, abs=0.02)


def test_positive_control_the_identity_channel_gives_all():
    channel = identity(12)
    for finding in found(channel, random_patients(channel, 40, 3)).values():
        assert finding.value == 1.0 == finding.detail["one_draw"]
        assert finding.control < 0.5


def test_at_least_as_good_as_one_draw_where_words_have_habits():
    rng = np.random.default_rng(4)
    others = [np.delete(np.arange(60), i) for i in range(60)]
    channel = channel_of([{int(y): 0.2 for y in rng.choice(o, 5, replace=False)} for o in others] + [{}])
    every = found(channel, random_patients(channel, 150, 5))["all"]
    assert every.low > every.detail["one_draw"]
    assert every.low < every.value < every.high


def test_only_rare_words_are_named_among_rare_words():
    channel = channel_of([{2: 1.0}, {2: 1.0}, {2: 1.0}, {}])
    patients = [{"w0": 30} for _ in range(9)] + [{"w1": 2}, {"w1": 2}, {"w2": 1}]
    rare = found(channel, patients)["below 20"]
    assert rare.n == 5 and rare.chance == pytest.approx(4 / 5) == rare.detail["one_draw"]
    assert rare.value == 1.0  # w1 stands twice, w2 once
    assert found(channel, [{"w0": 30}])["below 20"].detail["why"]


def test_several_words_behind_one_output_are_taken_for_one():
    """Both come out as w2 in one patient: only the tokens of the one that is named count."""
    channel = channel_of([{2: 1.0}, {2: 1.0}, {2: 1.0}, {}])
    every = found(channel, [{"w0": 5, "w1": 2}])["all"]
    assert every.value == pytest.approx(5 / 7) and every.n == 7


def test_of_unknown_words_only_the_most_frequent_can_be_named():
    channel = channel_of([{0: 1.0}, {1: 1.0}, {1: 1.0}])
    patients = [{"w0": 2, "rash": 3}, {"w0": 2, "pain": 1}, {"rash": 3}, {"nowhere": 4}]
    every = found(channel, patients, unknown=("pain", "rash"))["all"]
    assert every.n == 4 + 6 + 1 and every.value == pytest.approx((4 + 6) / 11)


def test_among_rare_unknown_words_the_most_frequent_rare_one_can_be_named():
    """Both unknown words come out as w1; the one of 30 tokens is none of the rare words."""
    channel = channel_of([{0: 1.0}, {0: 1.0}, {1: 1.0}])
    notes = [{"fever": 30}, {"w0": 2}, {"rash": 3}, {"rash": 3, "pain": 1}]
    rare = found(channel, notes, unknown=("fever", "pain", "rash"))["below 20"]
    assert rare.n == 2 + 6 + 1 and rare.value == pytest.approx((2 + 6) / 9) and rare.chance == pytest.approx(6 / 9)


def test_dropped_words_are_left_out():
    channel = channel_of([{0: 1.0}, {}, {}])
    every = found(channel, [{"w0": 2, "w1": 3, "rash": 4}], unknown=("rash",))["all"]
    assert every.n == 2 and every.value == 1.0


def test_what_a_patient_uses_is_learnt_from_the_others():
    """log P(class | word) in plain Python, over all patients but the one in question."""
    channel = identity(5)
    patients = random_patients(channel, 12, 6)
    uses = module._uses([Counter(p) for p in patients], channel.words)
    band = np.array([0, 0, 1, 1, 0])
    habits = Habits(uses, band)
    for patient in range(12):
        others = [p for i, p in enumerate(patients) if i != patient]
        for word in range(5):
            for times in (1, 3, 7):
                kind = class_of(np.array([times]))[0]

                def mass(words, kind=kind, others=others):
                    said = [p.get(f"w{w}", 0) for p in others for w in words]
                    return sum(n for n in said if n and class_of(np.array([n]))[0] == kind), sum(said)

                alike, of_alike = mass(np.flatnonzero(band == band[word]))
                usual = (alike + 1) / (of_alike + CLASSES.size)
                own, of_own = mass([word])
                got = habits.log_shares(np.array([patient]), np.array([word]), np.array([times]))[:, 0]
                for pull, log_share in zip(SHRINKAGES[:-1], got[:-1], strict=True):
                    assert log_share == pytest.approx(math.log((own + pull * usual) / (of_own + pull)))
                assert got[-1] == 0.0 and SHRINKAGES[-1] == math.inf


def test_weighing_in_parts_changes_nothing(monkeypatch):
    channel = identity(12)
    patients = random_patients(channel, 40, 7)
    whole = found(channel, patients)
    monkeypatch.setattr(module, "_CANDIDATES", 7)
    assert found(channel, patients) == whole


def test_a_sample_of_patients_is_said():
    channel = identity(12)
    every = found(channel, random_patients(channel, 40, 8), patients=10)["all"]
    assert every.detail["sampled"] and every.detail["patients"] == 10


def test_the_guess_without_counts_is_that_of_one_draw():
    channel = channel_of([{(i + 1) % 12: 0.5, (i + 5) % 12: 0.5} for i in range(12)] + [{}])
    patients = random_patients(channel, 60, 9)
    every = found(channel, patients)["all"]
    total = Counter()
    for uses in patients:
        total.update(uses)
    exact = inversion(channel, np.array([total[word] for word in channel.words]))[0]
    assert every.detail["one_draw"] == pytest.approx(exact.value, abs=0.08)
    assert every.value >= every.detail["one_draw"] - 0.01
