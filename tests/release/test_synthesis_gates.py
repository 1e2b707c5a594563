"""What must hold before synthetic notes leave: each gate on notes that pass it and on notes that do
not.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthesis_cases import notes_of, rows_of, split_in

from clinveil.core import InputError, words
from clinveil.corpus import Patient, write_patients
from clinveil.lm import PlainNotes, train_layout
from clinveil.releases import TrainHoldoutSplit, examine, shared_text
from clinveil.releases.synthesis_model import Checked

NOTES = notes_of(rows_of())
SIDES = split_in(NOTES, 0.2, 1)
GATES = ["accounted", "floor", "long copies", "copied whole"]
KNOWN = [
    ("Adam", "Stone"),
    ("Berta", "River"),
    ("Clara", "Field"),
    ("David", "Brook"),
    ("Edith", "Marsh"),
]


def plain(texts, patients=None):
    ids = tuple(f"s{i}" for i in range(len(texts)))
    return PlainNotes(tuple(texts), ids, ids if patients is None else tuple(patients))


def floor_of(sides=SIDES, min_patients=5):
    return train_layout(sides.training.texts, sides.training.patients, min_patients)


def above(texts, vocabulary=None):
    """The texts without the words below the floor."""
    return list(shared_text(plain(texts), vocabulary or floor_of()).texts)


def looked(texts, *, sides=SIDES, span=10, feed=None, min_patients=5):
    return examine(
        plain(texts),
        len(texts),
        sides,
        floor_of(sides, min_patients),
        np.random.default_rng(0),
        span=span,
        feed=feed,
    )


def failed(found):
    return [gate.name for gate in found.gates if not gate.passed]


def fresh(n=30, seed=9):
    """Notes of other patients, below the floor of SIDES."""
    return above(notes_of(rows_of(n, seed=seed, each=1)).texts)


def feed_of(folder, names=KNOWN):
    path = folder / "patients.parquet"
    write_patients([Patient(f"k{i}", name) for i, name in enumerate(names)], path)
    return path


def test_notes_of_others_pass():
    found = looked(fresh())
    assert failed(found) == []
    assert [any(part in gate.name for gate in found.gates) for part in GATES] == [True] * 4
    assert {f.measure for f in found.findings} >= {"attack.copies", "attack.copies_longest"}
    assert not failed(found)


def test_copies_fail_though_the_floor_cuts_them_to_pieces():
    """Every sentence ends in two rare words, so no raw run is as long as 50; below the floor the
    notes are the same.
    """
    texts = above(SIDES.training.texts)
    assert not any("rare" in text for text in texts)
    found = looked(texts)
    assert failed(found) == ["no long copies", "no note copied whole", "no near copies"]
    assert [gate.value for gate in found.gates[2:4]] == [len(set(SIDES.training.patients))] * 2
    assert not any(word in str(found.gates) for word in ("rarea", "fever", "70_"))


def test_words_written_in_the_places_of_rare_ones_do_not_hide_copies():
    drawn = above(SIDES.training.texts)
    filled = [text.replace(" ", " paino ") for text in drawn]
    how = (len(filled), SIDES, floor_of(), np.random.default_rng(0))
    checked = Checked(drawn, [frozenset({"paino"})] * len(drawn))
    found = examine(plain(filled), *how, span=10, feed=None, checked=checked)
    assert failed(found) == ["no long copies", "no note copied whole", "no near copies"]


def test_one_copied_note_fails():
    texts = [*fresh(), *above(SIDES.training.texts[7:8])]
    assert failed(looked(texts)) == ["no long copies", "no note copied whole", "no near copies"]
    assert failed(looked(texts, span=50)) == [
        "no note copied whole",
        "no near copies",
    ]  # no run of 50


def test_stock_phrases_of_all_patients_are_no_copies():
    stock = " ".join(f"stock{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60))
    notes = notes_of([(note, patient, f"{text}\n{stock}") for note, patient, text in rows_of()])
    sides = split_in(notes, 0.2, 1)
    assert failed(looked([*fresh(), *[stock] * 30], sides=sides, span=50)) == []


def test_copies_fail_where_half_of_every_note_is_stock():
    """Against the words of held-out notes in such runs, scaled up, this could not fail."""
    stock = " ".join(f"stock{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60))
    rows = [(note, patient, f"{text}\n{stock}") for note, patient, text in rows_of()]
    sides = split_in(notes_of(rows), 0.1, 1)
    floor = floor_of(sides, 1)
    found = looked(above(sides.training.texts, floor), sides=sides, min_patients=1, span=50)
    assert failed(found) == ["no long copies", "no note copied whole", "no near copies"]
    assert found.gates[2].power.startswith(
        "Without the test none"
    )  # nobody has 50 of their own in a row
    assert "Refused for 10 words in a row" in found.gates[2].meaning
    assert found.gates[3].power.startswith("Refuses with 95 % from 1 copied patient on")


@pytest.mark.parametrize("stock", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(
    ("copied", "training", "held_out"), [(27, 90, 10), (6, 60, 6), (20, 85, 10), (24, 60, 4)]
)
def test_some_patients_verbatim_are_refused(copied, training, held_out, stock):
    """Each of these passed both gates of earlier days, one of them or both with stock phrases."""
    paragraph = " ".join(f"stock{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60))
    n = training + held_out
    rows = rows_of(n, each=1, sentences=20)
    rows = [
        (note, p, f"{text}\n{paragraph}" if i < stock * n else text)
        for i, (note, p, text) in enumerate(rows)
    ]
    notes = notes_of(rows)
    sides = split_in(notes, held_out / n, 2)
    floor = floor_of(sides)
    honest = notes_of(rows_of(training - copied, seed=9, each=1, sentences=20)).texts
    texts = above((*honest, *sides.training.texts[:copied]), floor)
    found = looked(texts, sides=sides, span=50)
    assert failed(found) == ["no long copies", "no note copied whole", "no near copies"]
    assert [gate.value for gate in found.gates[2:4]] == [copied] * 2
    assert failed(looked(above(honest, floor), sides=sides, span=50)) == []


def test_copies_by_chance_are_allowed_for_and_only_those():
    """Held-out notes in the text too: a test then, with its own power."""
    sides = split_in(notes_of(rows_of(60, each=1, sentences=20)), 0.3, 1)
    floor = floor_of(sides)
    seen, other = (above(side.texts, floor) for side in (sides.training, sides.held_out))
    assert failed(looked([*seen[:14], *other[:6]], sides=sides, span=50)) == []
    few = looked([*seen[:30], *other[:3]], sides=sides, span=50)
    assert failed(few) == ["no long copies", "no note copied whole"]
    assert 3 < few.gates[2].limit < 30 and "Fisher" in few.gates[2].meaning
    assert f"from {few.gates[2].limit + 1} copied patients" in few.gates[2].power


VOCABULARY = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeio" for c in "nrs"]
COPY_GATES = ["no long copies", "no note copied whole"]


def people(patients, words, seed, numbers=0):
    """One note a patient, of so many words of 60, and numbers."""
    rng = np.random.default_rng(seed)
    drawn = (
        [*rng.choice(VOCABULARY, words), *map(str, rng.integers(10, 999, numbers))]
        for _ in range(patients)
    )
    return [" ".join(one) for one in drawn]


def sides_of(training, held_out):
    named = (
        (texts, [f"{side}{i}" for i in range(len(texts))])
        for side, texts in (("t", training), ("h", held_out))
    )
    return TrainHoldoutSplit(*(plain(*one) for one in named))


def outcomes(texts, training, held_out):
    found = looked(texts, sides=sides_of(training, held_out), span=50, min_patients=1)
    assert [gate.name for gate in found.gates[2:4]] == COPY_GATES
    return [gate.outcome for gate in found.gates[2:4]]


def test_short_notes_that_are_all_training_notes_are_refused():
    training = people(90, 14, 1)
    held_out = people(10, 14, 2)
    assert outcomes(training[:78] * 5, training, held_out) == ["not held", "not held"]
    assert outcomes(people(400, 14, 3), training, held_out) == ["held", "held"]
    assert outcomes([*training[:20], *held_out[:3]] * 9, training, held_out) == ["held", "held"]


def test_one_note_of_few_words_and_many_numbers_is_refused():
    training = people(60, 19, 1, numbers=60)
    held_out = people(7, 19, 2, numbers=60)
    made = people(60, 19, 3, numbers=60)
    assert outcomes([*made, training[3]], training, held_out) == ["held", "not held"]
    assert outcomes(made, training, held_out) == ["held", "held"]


def test_notes_in_two_parts_are_refused():
    training = people(60, 80, 1)
    held_out = people(7, 80, 2)
    parts = [" ".join(part) for text in training for part in (text.split()[:49], text.split()[49:])]
    assert outcomes(parts, training, held_out) == ["not held", "held"]


def test_one_copied_held_out_note_does_not_excuse_forty():
    training = people(60, 80, 1)
    held_out = people(7, 80, 2)
    assert outcomes([*training[:40], held_out[0]], training, held_out) == ["not held", "not held"]
    assert outcomes([*people(60, 80, 3), training[0], held_out[0]], training, held_out) == [
        "held",
        "held",
    ]


def test_where_neither_gate_could_see_a_copy_nothing_leaves():
    training = people(12, 4, 1)
    held_out = people(3, 4, 2)
    made = [" ".join(reversed(text.split())) for text in training]
    found = looked(made, sides=sides_of(training, held_out), span=50, min_patients=1)
    assert [gate.outcome for gate in found.gates[2:4]] == ["not decided", "not held"]
    assert "test_share" in found.gates[-2].hint
    names = found.gates[-1]
    assert (names.risk, names.outcome) == ("known_names", "not decided")
    assert "--patients" in names.hint


def altered(text, how, rng):
    """A near copy: a word in eight replaced, or a quarter of the words, in sentences of ten, within
    another note.
    """
    own = text.split()
    if how == "words":
        return " ".join(
            rng.choice(VOCABULARY) if i % 8 == 7 else word for i, word in enumerate(own)
        )
    kept = [word for start in range(0, len(own), 40) for word in own[start : start + 10]]
    return " ".join([*rng.choice(VOCABULARY, 60), *kept, *rng.choice(VOCABULARY, 60)])


@pytest.mark.parametrize("how", ["words", "sentences"])
@pytest.mark.parametrize(("patients", "others"), [(45, 5), (180, 20)])
def test_five_near_copies_are_refused_and_notes_of_others_pass(how, patients, others):
    rng = np.random.default_rng(5)
    training = people(patients, 160, 1)
    held_out = people(others, 160, 2)
    made = people(patients, 160, 3)
    near = [altered(text, how, rng) for text in training[:5]]
    for texts, names in ((made, []), ([*made, *near], ["no near copies"])):
        found = looked(texts, sides=sides_of(training, held_out), span=50, min_patients=1)
        assert failed(found) == names
    assert (found.gates[4].value, found.gates[4].limit) == (5, 0)


@pytest.mark.parametrize(
    ("expected", "ids", "lost"), [(4, "abc", 1), (2, "abc", 1), (3, "aab", 1), (3, "abc", 0)]
)
def test_every_note_is_accounted_for(expected, ids, lost):
    notes = PlainNotes(tuple(fresh()[:3]), tuple(ids), tuple(ids))
    gate = examine(
        notes, expected, SIDES, None, np.random.default_rng(0), span=50, feed=None
    ).gates[0]
    assert gate.value == lost
    assert gate.passed == (lost == 0)


def test_a_word_smuggled_in_fails():
    own = "raresmuggled"
    found = looked([*fresh(), f"fevera {own} .\n70001 fevero ."])
    assert failed(found) == ["rare-word floor held"]
    assert found.gates[1].value == 1
    assert own not in str(found.gates)


def test_known_names_against_made_up_pairs(tmp_path):
    feed = feed_of(tmp_path)
    said = [f"seen by {' '.join(name)} today" for name in KNOWN]
    crossed = [
        f"seen by {KNOWN[i][0]} {KNOWN[(i + j) % 5][1]} today"
        for i in range(5)
        for j in range(1, 5)
    ]
    names = tuple(word for name in KNOWN for word in name)
    training = plain([*SIDES.training.texts, *[f"seen by {' '.join(names)} today"] * 6])
    sides = TrainHoldoutSplit(training, SIDES.held_out)
    found = looked(said * 3, sides=sides, feed=feed)
    assert failed(found) == ["known names no more often than invented ones"]
    assert failed(looked(crossed + fresh(), sides=sides, feed=feed)) == []
    assert not any(
        word in str(looked(crossed + fresh(), sides=sides, feed=feed).gates) for word in names
    )


def test_one_name_of_few_fails_though_shuffles_bring_it_back(tmp_path):
    names = [*KNOWN, *(("Given" + a, "Last" + a) for a in "abcdefghijklmnopqrstuvwxyz")]
    training = plain(
        [
            *SIDES.training.texts,
            *["seen by today " + " ".join(" ".join(name) for name in names)] * 6,
        ]
    )
    found = looked(
        ["seen by Clara Field today"] * 9,
        sides=TrainHoldoutSplit(training, SIDES.held_out),
        feed=feed_of(tmp_path, names),
    )
    assert failed(found) == ["known names no more often than invented ones"]
    assert (found.gates[-1].value, found.gates[-1].limit) == (9, 0)


def test_a_feed_of_names_of_one_part_finds_nothing(tmp_path):
    found = looked(fresh(), feed=feed_of(tmp_path, [("Adam",), ("Fevera",)]))
    assert found.gates[-1].passed
    assert found.gates[-1].value == 0


@pytest.mark.parametrize("name", ["nowhere.parquet", "text.parquet"])
def test_a_feed_that_is_none_is_an_error(name, tmp_path):
    (tmp_path / "text.parquet").write_text("Adam Stone")
    with pytest.raises(InputError) as caught:
        looked(fresh(), feed=tmp_path / name)
    assert "Stone" not in str(caught.value)


@given(
    st.lists(
        st.tuples(st.text("abcde7 ", max_size=12), st.sampled_from("xyz")), min_size=1, max_size=8
    ),
    st.text("abcde7 ", min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_floor_against_plain_counting(notes, text, least):
    vocabulary = train_layout([note for note, _ in notes], [patient for _, patient in notes], least)
    owners = {
        w: {p for note, p in notes if w in words(note)}
        for w in words(" ".join(note for note, _ in notes))
    }
    allowed = {w for w, of in owners.items() if len(of) >= least}
    assert vocabulary.words == allowed
    (written,) = above([text], vocabulary)
    assert words(written) == [w for w in words(text) if w in allowed]


def test_the_floor_knows_no_word_of_the_notes_n_held_out():
    shared = next(w for w in SIDES.held_out.texts[0].split() if w.startswith("rare"))
    assert shared not in floor_of(min_patients=1).words


def test_the_digest_tells_other_notes_apart():
    first = split_in(NOTES, 0.2, 1)
    other = notes_of([(n, p, t + (" more" if n == "n7-0" else "")) for n, p, t in rows_of()])
    digests = {first.digest, split_in(NOTES, 0.2, 2).digest, split_in(NOTES, 0.3, 1).digest}
    assert len(digests) == 3
    seed = next(seed for seed in range(9) if "p7" in split_in(NOTES, 0.2, seed).training.patients)
    assert split_in(NOTES, 0.2, seed).digest != split_in(other, 0.2, seed).digest
