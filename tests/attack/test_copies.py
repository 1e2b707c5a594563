"""Copy scan: by hand, against brute force, on a copying generator and on one that never saw the
patients.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks import copies
from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, in_runs
from clinveil.cli import main
from clinveil.core import InputError
from clinveil.corpus import memory_corpus
from clinveil.stats import clopper_pearson


def corpus(texts, patients=None):
    return memory_corpus(
        [(f"n{i}", patients[i] if patients else f"p{i}", text) for i, text in enumerate(texts)]
    )


def corpora(*sides):
    return [
        corpus(side, [f"{place}-{i}" for i in range(len(side))]) for place, side in enumerate(sides)
    ]


def by_measure(findings):
    return {(f.measure, f.numbers.get("span")): f for f in findings}


def test_a_fresh_automaton_forgets_what_was_streamed():
    vocabulary = Vocabulary()
    automaton = SuffixAutomaton(vocabulary.add(["a", "b", "c"]))
    automaton.stream(vocabulary.ids(["a", "b"]))
    assert automaton.runs().tolist() == [1, 2, 0]
    assert automaton.fresh().runs().tolist() == [0, 0, 0]
    assert automaton.runs().tolist() == [1, 2, 0]


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 5))
def test_in_runs_marks_the_words_of_long_runs(runs, span):
    runs = [min(run, i + 1) for i, run in enumerate(runs)]
    marked = {
        at for end, run in enumerate(runs) if run >= span for at in range(end - run + 1, end + 1)
    }
    assert np.flatnonzero(in_runs(np.array(runs, dtype=np.int32), span)).tolist() == sorted(marked)


def test_four_notes_by_hand():
    # Of 8 synthetic words, "b c d" (3) is the training patient's, "x y" (2) the held-out one's.
    synthetic, training, held_out = corpora(["a b c d q", "x y q"], ["b c d z"], ["x y z z z"])
    found = by_measure(
        copies(synthetic, training, held_out, np.random.default_rng(0), spans=(2, 3))
    )
    two = found["attack.copies", 2]
    three = found["attack.copies", 3]
    assert (two.value, two.numbers["held_out"], two.n) == (3 / 8, 2 / 8, 8)
    assert (three.value, three.numbers["held_out"]) == (3 / 8, 0.0)
    patients = found["attack.copies_of_patients", 2]
    assert (patients.numbers["training_share"], patients.numbers["held_out_share"]) == (
        3 / 4,
        2 / 5,
    )
    assert patients.value == pytest.approx(3 / 4 - 2 / 5)
    assert (patients.n, patients.numbers["patients"], patients.numbers["held_out_patients"]) == (
        2,
        1,
        1,
    )
    longest = found["attack.copies_longest", None]
    assert (longest.value, longest.numbers["held_out"], longest.numbers["median_of_notes"]) == (
        3,
        2,
        1.5,
    )


def test_runs_do_not_cross_notes():
    synthetic, training, held_out = corpora(["a b", "c d"], ["a b c d"], ["z"])
    found = by_measure(copies(synthetic, training, held_out, np.random.default_rng(0), spans=(3,)))
    assert found["attack.copies", 3].value == 0
    assert found["attack.copies_longest", None].value == 2


def notes_of(rng, n, words=60, vocabulary=300):
    return [" ".join(f"w{w}" for w in rng.integers(vocabulary, size=words)) for _ in range(n)]


def letters(texts):
    """Digits would split words: spell them."""
    return [text.translate(str.maketrans("0123456789", "abcdefghij")) for text in texts]


def test_a_copy_with_its_rare_words_blotted_out_is_a_copy():
    copied = "the <unk> lady of <unk> came back with pain in the left knee"
    training = "the old lady of Utrecht came back with pain in the left knee"
    made, seen, other = corpora(
        [copied], [training], ["a quiet man of Leiden had no pain and no cough in the night"]
    )
    found = by_measure(copies(made, seen, other, np.random.default_rng(1), spans=(10,)))
    assert (
        found["attack.copies", 10].value == 1.0
        and found["attack.copies", 10].numbers["held_out"] == 0.0
    )


@pytest.fixture(scope="module")
def sides():
    rng = np.random.default_rng(5)
    return letters(notes_of(rng, 40)), letters(notes_of(rng, 20)), letters(notes_of(rng, 30))


def test_a_generator_that_copies_is_caught(sides):
    training, held_out, _ = sides
    found = by_measure(
        copies(*corpora(training[:25], training, held_out), np.random.default_rng(1))
    )
    of_patients = found["attack.copies_of_patients", 10]
    assert found["attack.copies", 50].value == 1
    assert found["attack.copies_matched", 50].control == 0
    assert of_patients.value == of_patients.numbers["training_share"] == pytest.approx(25 / 40)
    assert of_patients.low > 0.4 and of_patients.chance == 0
    assert of_patients.p == 1e-4


def test_a_generator_of_other_patients_is_at_chance(sides):
    training, held_out, others = sides
    stock = "the patient was seen and examined today in the clinic with no acute distress at all"
    with_stock = [[f"{text} {stock}" for text in side] for side in (others, training, held_out)]
    found = by_measure(copies(*corpora(*with_stock), np.random.default_rng(1)))
    of_patients = found["attack.copies_of_patients", 10]
    assert of_patients.numbers["training_share"] == pytest.approx(
        16 / 76, abs=0.01
    )  # the stock phrase, in both
    assert abs(of_patients.value) < 0.01
    assert of_patients.low <= 0 <= of_patients.high
    assert of_patients.p > 0.05


def test_a_larger_training_set_is_no_sign_of_memorising():
    """Half of all notes hold one of many phrases: 20 times as many notes hold more of them; as many
    hold as many.
    """
    rng = np.random.default_rng(8)
    phrases = letters(notes_of(rng, 60, words=12))

    def stock(n):
        texts = letters(notes_of(rng, n))
        return [
            f"{text} {phrases[rng.integers(60)]}" if rng.random() < 0.5 else text for text in texts
        ]

    found = by_measure(
        copies(*corpora(stock(100), stock(400), stock(20)), np.random.default_rng(1), spans=(10,))
    )
    every = found["attack.copies", 10]
    matched = found["attack.copies_matched", 10]
    assert every.control is None and every.value > 2 * every.numbers["held_out"]
    assert (
        matched.value == every.numbers["matched"] and matched.control == every.numbers["held_out"]
    )
    assert matched.low <= matched.control <= matched.high and matched.control < every.low
    assert found["attack.copies_of_patients", 10].p > 0.05
    longest = found["attack.copies_longest", None]
    of_matched = found["attack.copies_longest_matched", None]
    assert longest.control is None and of_matched.control == longest.numbers["held_out"]
    assert of_matched.value <= longest.value


def test_fewer_training_than_held_out_words_are_warned_of(sides):
    training, held_out, others = sides
    few = by_measure(
        copies(*corpora(others, training[:5], held_out), np.random.default_rng(1), spans=(10,))
    )
    assert few["attack.copies_matched", 10].numbers["matched_words"] == 5 * 60
    assert "fewer training" in few["attack.copies_matched", 10].warning
    enough = by_measure(
        copies(*corpora(others, training, held_out), np.random.default_rng(1), spans=(10,))
    )
    assert not enough["attack.copies_matched", 10].warning


def test_the_same_patients_on_both_sides_are_refused(sides):
    training, held_out, others = sides
    with pytest.raises(InputError, match="40 patients are on both sides"):
        copies(corpus(others), corpus(training), corpus(training), np.random.default_rng(1))
    seen = corpus(training, [f"p{i}" for i in range(40)])
    other = corpus(held_out, [*(f"q{i}" for i in range(19)), "p7"])
    with pytest.raises(InputError, match="1 patients are on both sides"):
        copies(corpus(others), seen, other, np.random.default_rng(1))


def test_intervals_say_how_they_were_made(sides):
    training, held_out, others = sides
    found = by_measure(
        copies(
            *corpora(training[:25], training, held_out), np.random.default_rng(1), spans=(10, 50)
        )
    )
    whole = found["attack.copies", 10]
    of_patients = found["attack.copies_of_patients", 10]
    assert (whole.low, whole.high) == pytest.approx(clopper_pearson(25, 25))
    assert "Clopper-Pearson" in whole.method and "25" not in whole.method
    assert of_patients.method == "bootstrap over patients, 95 %"
    none = by_measure(
        copies(*corpora(others, training, held_out), np.random.default_rng(1), spans=(50,))
    )
    text = none["attack.copies", 50]
    gap = none["attack.copies_of_patients", 50]
    assert (text.low, text.high) == pytest.approx(clopper_pearson(0, 30))
    assert "Clopper-Pearson" in text.method and "bootstrap" not in text.method
    assert gap.value == 0 and gap.low == pytest.approx(-clopper_pearson(0, 20).high)
    assert gap.high == pytest.approx(clopper_pearson(0, 40).high)
    assert "Clopper-Pearson" in gap.method
    part = by_measure(
        copies(*corpora([*training[:9], *others], training, held_out), np.random.default_rng(1))
    )
    assert part["attack.copies", 50].method == "Korn-Graubard by synthetic notes, 95 %"


@pytest.mark.parametrize(
    ("sides", "name"),
    [
        ((["1 2"], ["a"], ["b"]), "synthetic"),
        ((["a"], ["."], ["b"]), "training"),
        ((["a"], ["b"], [""]), "held-out"),
    ],
)
def test_a_side_without_words_is_refused(sides, name):
    with pytest.raises(InputError, match=name):
        copies(*corpora(*sides), np.random.default_rng(0))


def test_command(tmp_path, capsys, sides):
    training, held_out, _ = sides
    for name, texts in (("made", training[:5]), ("training", training), ("other", held_out)):
        rows = (f"{name}{i},{text}" for i, text in enumerate(texts))
        (tmp_path / f"{name}.csv").write_text("\n".join(["note_id,text", *rows]))
    arguments = [
        "attack",
        "copies",
        str(tmp_path / "made.csv"),
        "--training",
        str(tmp_path / "training.csv"),
    ]
    arguments += ["--held-out", str(tmp_path / "other.csv"), "--seed", "1"]
    assert main([*arguments, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)["findings"]
    names = (
        "copies",
        "copies_matched",
        "copies_longest",
        "copies_longest_matched",
        "copies_of_patients",
    )
    names += ("copies_own", "copies_whole", "copies_near")
    assert {f["measure"] for f in said} == {f"attack.{name}" for name in names}
    assert main(arguments) == 0
    table = capsys.readouterr().out
    of_patients = next(
        line
        for line in table.splitlines()
        if line.split("  ")[0] == "copies of patients" and "50 words" in line
    )
    gap = next(
        f
        for f in said
        if f["measure"] == "attack.copies_of_patients" and f["numbers"]["span"] == 50
    )
    assert (
        f"{gap['value']:.4f}" in of_patients
        and f"{gap['low']:.4f}-{gap['high']:.4f}  0.0000" in of_patients
    )
    matched = next(
        f for f in said if f["measure"] == "attack.copies_matched" and f["numbers"]["span"] == 50
    )
    assert matched["method"] == "Korn-Graubard by synthetic notes, 95 %"
    assert (
        matched["control_is"].startswith("held-out patients")
        and matched["control_kind"] == "negative"
    )
    assert main([*arguments, "--set", "attack.span=1"]) == 2
    assert main([*arguments[:-3], str(tmp_path / "training.csv")]) == 3
    assert "40 patients are on both sides (split by patient" in capsys.readouterr().err
