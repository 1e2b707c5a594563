"""Known identifiers: by hand on four notes, planted truth found, and chance where the release is of
others' words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks import FullNameIndex
from clinveil.attacks.text.identifiers import KEPT, ReleasedText, digits_of, identifiers
from clinveil.core import InputError, words
from clinveil.corpus import memory_corpus


@dataclass
class Person:
    """What the attack reads of a known patient."""

    name: tuple[str, ...] = ()
    record_numbers: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    codes: tuple[str, ...] = field(default=())
    birth_date: date | None = None


PEOPLE = {
    "p1": Person(
        ("Mary", "Ann", "O'Neil"), ("MRN 00-4711",), ("(416) 555-0199",), ("m.oneil@mail.example",)
    ),
    "p2": Person(("José", "Smith"), ("8123",), (), (), ("12 Elm Street, Springfield",)),
    "p3": Person(("Will", "May")),
    "p4": Person(("Cher",), ("99",), birth_date=date(1971, 2, 3)),
}


def audit(notes, people=PEOPLE, crosswalk=None, **named):
    corpus = memory_corpus([(str(i), patient, text) for i, (patient, text) in enumerate(notes)])
    found = identifiers(corpus, people, np.random.default_rng(1), crosswalk=crosswalk, **named)
    return {f.measure.removeprefix("attack."): f for f in found}


CLEAN = [
    ("p1", "the patient was seen for cough"),
    ("p2", "no fever"),
    ("p3", "stable"),
    ("p4", "well"),
]


def test_a_clean_release_holds_nothing():
    found = audit(CLEAN)
    for kind, n in {"record_number": 2, "phone": 1, "email": 1, "address": 1}.items():
        assert found[f"own_{kind}"].value == 0.0 and found[f"own_{kind}"].n == n
        assert found[f"own_{kind}"].chance == 0.0
    assert found["own_record_number"].numbers["known"] == 3  # "99" is too short to look for
    own = found["own_name"]
    assert own.value == 0.0 and own.n == 3 and own.chance == 0.0 and own.p == 1.0
    assert own.numbers["one_part_names"] == 1 and own.high > 0
    assert found["other_names"].value == 0.0 and found["other_names"].n == 4


@pytest.mark.parametrize(
    "kind,patient,text",
    [
        ("record_number", "p1", "record 004711 seen"),
        ("record_number", "p1", "record 00-4711"),
        ("record_number", "p1", "record ００４７１１"),
        ("record_number", "p1", "record ٠٠٤٧١١"),
        ("record_number", "p2", "No.8123."),
        ("phone", "p1", "call 416 555 0199 now"),
        ("phone", "p1", "call 1-416.555.0199"),
        ("phone", "p1", "call 416\u200b5550199"),
        ("email", "p1", "write M.ONeil@Mail.Example please"),
        ("email", "p1", "m oneil mail example"),
        ("address", "p2", "lives at elm street springfield"),
    ],
)
def test_positive_control_own_identifiers_are_found_in_any_dress(kind, patient, text):
    found = audit([*CLEAN, (patient, text)])
    assert found[f"own_{kind}"].count == 1 and found[f"own_{kind}"].value > 0


@pytest.mark.parametrize(
    "patient,text",
    [
        ("p2", "record 004711, call 416 555 0199, m.oneil@mail.example"),  # another patient's
        ("p2", "81234 and 18123"),  # a short number inside a longer one
        ("p1", "416 then 555 then 0199"),  # words between
        ("p2", "springfield elm street"),  # another order
        ("p2", "helm street springfields"),  # parts of words
        ("p4", "99"),
    ],
)
def test_what_is_not_ones_own_is_not_found(patient, text):
    found = audit([*CLEAN, (patient, text)])
    assert all(f.value in (0.0, None) for name, f in found.items() if name.startswith("own_"))


def test_chance_is_the_search_for_another_patients_identifiers():
    everything = "004711, 4165550199, m.oneil@mail.example, 8123, elm street springfield"
    found = audit([(p, everything) for p in PEOPLE])
    assert all(
        found[f"own_{kind}"].value == 1.0 for kind in ("record_number", "phone", "email", "address")
    )
    assert all(
        found[f"own_{kind}"].chance == 1.0
        for kind in ("record_number", "phone", "email", "address")
    )
    own = audit([("p1", "m.oneil@mail.example"), ("p2", "elm street springfield")])
    assert own["own_email"].value == 1.0 and own["own_email"].chance in (0.0, None)


def test_an_identifier_of_both_patients_is_only_the_own_one():
    family = {
        f"p{i}": Person((f"A{i}", "Lee"), addresses=("12 Elm Street, Springfield",))
        for i in range(2)
    }
    found = audit([("p0", "elm street springfield"), ("p1", "well")], family)["own_address"]
    assert (found.count, found.n, found.chance) == (1, 2, None)


def test_nothing_known_is_a_null_with_why():
    found = audit(CLEAN, {"p1": Person(("Solo",))})
    assert all(f.value is None and f.why for f in found.values())
    assert found["own_name"].numbers["one_part_names"] == 1


def test_a_feed_of_other_patients_shows_as_such():
    for name, found in audit([("z1", "will may")]).items():
        if name.startswith("own_"):
            assert (
                found.value is None
                and found.known_list.in_feed == 4
                and found.known_list.in_release == 0
            )


def test_no_patient_and_no_note_at_all():
    assert all(f.value is None for f in audit(CLEAN, {}).values())
    assert all(f.value is None for f in audit([("p1", None)]).values())
    alone = audit(
        [("p1", None), (None, "x")]
    )  # a note without a patient is its own patient, whom the feed lacks
    assert (
        all(f.value is None for name, f in alone.items() if name != "other_names")
        and alone["other_names"].n == 1
    )


@pytest.mark.parametrize(
    "text",
    [
        "Mary Ann O'Neil came",
        "O'Neil, Mary Ann",
        "MARY O'NEIL",
        "neil o mary",
        "ann o neil mary",
        "mary, o’neil",
    ],
)
def test_own_full_names_are_found_in_any_order_and_spelling(text):
    assert audit([*CLEAN, ("p1", text)])["own_name"].count == 1


@pytest.mark.parametrize(
    "text", ["Mary was O'Neil", "Ann O'Neil", "Mary", "mary neil", "JOSE SMITH", "Cher"]
)
def test_parts_of_a_name_are_no_full_name(text):
    assert audit([*CLEAN, ("p1", text)])["own_name"].count == 0


def test_accents_belong_to_the_name():
    assert audit([*CLEAN, ("p2", "JOSE\u0301 SMITH")])["own_name"].count == 1
    assert audit([*CLEAN, ("p2", "jose smith")])["own_name"].count == 0


def test_names_do_not_run_across_notes():
    found = audit([("p3", "will"), ("p3", "may")])
    assert found["own_name"].value == 0.0


def test_names_that_are_words_stand_in_every_note_and_are_no_more_than_chance():
    people = {
        f"p{i}": Person(("Will", "May")) if i < 5 else Person((f"A{'xyz'[i % 3]}", "B"))
        for i in range(40)
    }
    own = audit([(p, "she will may") for p in people], people)["own_name"]
    assert own.count == 5 and own.numbers["expected"] == pytest.approx(5)
    assert own.p == 1.0 and own.chance == pytest.approx(5 / 40)


def crowd(n):
    rng = np.random.default_rng(8)
    first = [f"f{chr(97 + i)}x" for i in range(20)]
    last = [f"l{chr(97 + i)}{chr(97 + j)}y" for i, j in product(range(8), range(8))]
    return {f"p{i}": Person((first[rng.integers(20)], last[rng.integers(64)])) for i in range(n)}


def test_positive_control_names_left_in_fail_the_gate():
    people = crowd(200)
    own = audit([(p, f"seen {' '.join(q.name)} today") for p, q in people.items()], people)[
        "own_name"
    ]
    assert own.value == 1.0 and own.p == pytest.approx(1 / 1000)
    assert own.chance < 0.02


def test_negative_control_names_of_a_shuffled_release_pass():
    people = crowd(300)
    names = [" ".join(q.name) for q in people.values()]
    p_values = []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(names))
        notes = [(p, f"seen {names[i]} today") for p, i in zip(people, order, strict=True)]
        own = audit(notes, people, permutations=99, replicates=2)["own_name"]
        p_values.append(own.p)
        assert own.numbers["expected"] == pytest.approx(own.chance * 300)
    assert sum(p < 0.05 for p in p_values) <= 4 and max(p_values) > 0.3


def test_other_patients_names_by_hand():
    found = audit(
        [("p1", "will may be"), ("p1", "mary ann o'neil"), ("p2", "May, Will"), ("p3", "may will")]
    )
    other = found["other_names"]
    assert (
        other.count == 2 and other.value == 0.5
    )  # notes 1 and 3; the others are one's own, or none


def test_other_names_against_shuffled_pairs():
    people = crowd(400)
    rng = np.random.default_rng(2)
    people_list = list(people.values())
    # Notes of words in which first and last names meet at random: as many real names as made-up
    # ones.
    loose = [
        (p, f"{people_list[rng.integers(400)].name[0]} {people_list[rng.integers(400)].name[1]}")
        for p in people
    ]
    chance = audit(loose, people)["other_names"]
    assert chance.value == pytest.approx(chance.chance, rel=0.25) and chance.p > 0.01
    # Notes that name real other patients: more than made-up ones.
    named = [(p, " ".join(people_list[rng.integers(400)].name)) for p in people]
    found = audit(named, people)["other_names"]
    assert found.value > 0.95 > 1.5 * found.chance and found.p == pytest.approx(1 / 40)


def test_namesakes_count_as_ones_own():
    people = {
        "p1": Person(("Ann", "Lee")),
        "p2": Person(("Ann", "Lee")),
        "p3": Person(("Bo", "Ray")),
    }
    found = audit([("p1", "ann lee"), ("p2", "lee ann"), ("p3", "well")], people)
    assert found["own_name"].count == 2 and found["other_names"].count == 0


def test_the_crosswalk_leads_back_to_the_patient():
    found = audit([("r9", "Will May")], crosswalk={"r9": "p3"})
    assert found["own_name"].count == 1
    with pytest.raises(InputError) as error:
        audit([("r9", "Will May")], crosswalk={"r8": "p3"})
    assert "Will" not in str(error.value)


@given(
    st.lists(st.lists(st.sampled_from(["ann", "bo", "lee", "ray", "x"]), max_size=6), max_size=5)
)
def test_the_index_finds_what_ten_plain_lines_find(notes):
    names = [("Ann", "Lee"), ("Bo", "Ray", "Lee"), ("Ann", "Ann"), ("Ray",), ("Bo", "Ann Lee")]
    found = FullNameIndex(names, np.random.default_rng(1), replicates=0).find(notes)
    expected = set()
    for row, name in enumerate(names):
        whole = words(" ".join(name))
        forms = [whole, [*words(name[0]), *words(name[-1])]] if len(name) > 2 else [whole]
        for note, form in product(range(len(notes)), forms):
            windows = [
                notes[note][i : i + len(form)] for i in range(len(notes[note]) - len(form) + 1)
            ]
            if len(name) > 1 and any(sorted(w) == sorted(form) for w in windows):
                expected.add((note, row))
    assert set(zip(found.note.tolist(), found.row.tolist(), strict=True)) == expected


@given(st.text(), st.integers(1000, 10**12))
def test_no_text_breaks_the_search(text, number):
    note = ReleasedText(f"{text} a {number} b")
    assert note.has_number(str(number)) and digits_of(str(number)) == str(number)


@pytest.mark.parametrize(
    ("values", "hits"),
    [
        (["ward 3", "ward 4", None], 0),
        (["Mary Smith", "8123", "4711"], 1),  # another patient's number is not own
        (["O'Neil, Mary Ann", "Smith José", "Cher"], 2),  # a name of one part could be a word
        (["1971-02-03", "1971-02-03", date(1971, 2, 3).isoformat()], 1),  # of the third patient
        (["m.oneil@mail.example", "at 12 Elm Street, Springfield", "May"], 2),
    ],
)
def test_own_identifiers_in_kept_columns(values, hits):
    import pyarrow as pa

    from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, MemoryCorpus

    columns = {
        NOTE_ID: ["1", "2", "3"],
        PATIENT_ID: ["q1", "q2", "q4"],
        TEXT: ["a"] * 3,
        "ward": values,
    }
    corpus = MemoryCorpus([pa.record_batch(columns)], Columns(TEXT, NOTE_ID, PATIENT_ID, ("ward",)))
    crosswalk = {f"q{i}": f"p{i}" for i in range(1, 5)}
    both = (
        identifiers(corpus, PEOPLE, np.random.default_rng(1), crosswalk=crosswalk, keep=keep)
        for keep in ("", ["ward"])
    )
    none, found = ([f for f in made if f.measure == KEPT] for made in both)
    assert not none and [(f.count, f.n) for f in found] == [(hits, 3)]
