"""Verbatim overlap: by hand on four notes, a release that changed nothing, and one that has nothing of its source."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks.text import overlap as module
from clinveil.attacks.text.overlap import overlap
from clinveil.core.errors import InputError
from clinveil.corpus.corpus import memory_corpus

SOURCE = [
    ("1", "p1", "a b c d e f g h"),
    ("2", "p1", "q r s t u v w x"),
    ("3", "p2", "k l m n o p q r"),
    ("4", "p3", "a b c k l m n o"),
]


def found(released, source=SOURCE, seed=1, **named):
    notes = [memory_corpus(rows) for rows in (released, source)]
    findings = overlap(*notes, np.random.default_rng(seed), **named)
    return {f.measure.removeprefix("attack."): f for f in findings}


def test_by_hand():
    released = [
        ("1", "p1", "A b, c. D z z z"),  # own 4; any 4
        ("2", "p1", "k l m n o p"),  # own 0; any 6 (note 3): one 6-gram
        ("3", "p2", "z z z z z z z"),  # nothing
        ("4", "p3", "a b c k l m n"),  # own 7: two 6-grams
    ]
    figures = found(released)
    own, anywhere = figures["longest_run"], figures["longest_run_any"]
    assert own.value == pytest.approx((4 + 0 + 0 + 7) / 4) and own.detail["most"] == 7 and own.n == 4
    assert anywhere.value == pytest.approx((4 + 6 + 0 + 7) / 4) and anywhere.detail["median"] == 5.0
    # 6-grams: 2 + 1 + 2 + 2 = 7 of all released notes.
    assert figures["six_grams"].n == 7 and figures["six_grams"].value == pytest.approx(2 / 7)
    assert figures["six_grams_any"].value == pytest.approx(3 / 7)
    assert figures["six_grams_any"].detail["notes_with_one"] == 2
    assert not own.detail["sampled"] and own.detail["against"] == "own source"


def random_notes(n, seed, words="abcdefghijklmnopqrstuvwxyz", length=60):
    rng = np.random.default_rng(seed)
    return [(f"n{i}", f"p{i % (n // 2)}", " ".join(rng.choice(list(words), length))) for i in range(n)]


def test_positive_control_a_release_that_changed_nothing():
    notes = random_notes(40, 1)
    figures = found(notes, notes)
    for suffix in ("", "_any"):
        longest, grams = figures[f"longest_run{suffix}"], figures[f"six_grams{suffix}"]
        assert longest.value == 60 == longest.low and longest.chance < 6
        assert grams.value == 1.0 and grams.chance == 0.0 and grams.n == 40 * 55


def test_negative_control_a_release_of_other_words_in_the_same_language_is_at_chance():
    figures = found(random_notes(200, 1, "abcde"), random_notes(200, 2, "abcde"))
    own, grams = figures["longest_run"], figures["six_grams"]
    assert own.low <= own.chance <= own.high
    assert grams.chance == pytest.approx(grams.value, rel=0.5)
    anywhere = figures["longest_run_any"]
    assert anywhere.value == pytest.approx(anywhere.chance, rel=0.1)


def test_a_planted_passage_is_found():
    source, released = random_notes(30, 3), random_notes(30, 4)
    passage = "w x y z w x y z w x y z"
    source[7] = (source[7][0], source[7][1], f"{source[7][2]} {passage} tail")
    released[7] = (released[7][0], released[7][1], f"head {passage} {released[7][2]}")
    figures = found(released, source)
    assert figures["longest_run"].detail["most"] == figures["longest_run_any"].detail["most"] == 12
    assert figures["six_grams"].detail["shared"] == 7


def test_shuffled_pairs_are_of_another_patient():
    # All notes of a patient are equal, so a pair within the patient would show a long run.
    notes = [(f"n{i}", f"p{i % 5}", " ".join(f"w{chr(97 + i % 5)}" for _ in range(9))) for i in range(20)]
    figures = found(notes, notes)
    assert figures["longest_run"].chance == 0.0 and figures["longest_run"].value == 9.0


def test_one_patient_has_no_shuffled_pair():
    notes = [("1", "p", "a b c"), ("2", "p", "c d e")]
    figures = found(notes, notes)
    assert figures["longest_run"].chance is None and figures["longest_run"].detail["why"]
    assert figures["six_grams"].value is None


def test_the_crosswalk_and_another_order():
    released = [("r2", "x", "q r s t u v w x"), ("r1", "x", "a b c d e f g h")]
    figures = found(released, SOURCE[::-1], crosswalk={"r1": "1", "r2": "2"})
    assert figures["longest_run"].value == 8.0
    with pytest.raises(InputError):
        found(released, crosswalk={"r1": "1"})
    with pytest.raises(InputError) as error:
        found(released, crosswalk={"r1": "1", "r2": "99"})
    assert "1 released notes" in str(error.value)


def test_empty_and_null_notes():
    released = [("1", "p1", ""), ("2", "p1", None), ("3", "p2", "..."), ("4", "p3", "a b c k l m")]
    figures = found(released)
    assert figures["longest_run"].n == 3 and figures["longest_run"].detail["most"] == 6
    assert all(f.value is None and f.detail["why"] for f in found([]).values())


def test_a_large_release_is_sampled_and_says_so(monkeypatch):
    notes = random_notes(60, 5)
    figures = found(notes, notes, notes=20)
    assert figures["longest_run"].n == 20 and figures["longest_run"].detail["sampled"]
    monkeypatch.setattr(module, "WORDS", 600)
    assert found(notes, notes)["longest_run"].n == 10
    monkeypatch.setattr(module, "NOTE_WORDS", 30)
    cut = found(notes, notes)["longest_run"]
    assert cut.detail["notes_cut"] == cut.n and cut.value == 30


def test_the_sample_does_not_depend_on_the_order_of_the_release():
    notes = random_notes(60, 5)
    forth, back = (found(order, notes, notes=20)["six_grams_any"] for order in (notes, notes[::-1]))
    assert forth.n == back.n and forth.value == back.value


def test_the_same_seed_gives_the_same_findings():
    notes = random_notes(30, 6, "abc")
    assert found(notes, notes, seed=3) == found(notes, notes, seed=3)


def test_nothing_shared_keeps_the_doubt_of_its_patients():
    grams = found(random_notes(40, 1), random_notes(40, 2))["six_grams"]
    assert grams.value == 0.0 == grams.low and grams.high == pytest.approx(0.168, abs=0.001)  # 20 patients
