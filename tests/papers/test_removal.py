"""Paper B's imperfect remover, and the control that deals names out anew."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.jmir_2020.removal import EmulatedRemover, own_words, redrawn_names

import clinveil
from clinveil.attacks import NameTokens, rank_names
from clinveil.attacks.vectors._name_scores import attack_names
from clinveil.core import Key, words
from clinveil.corpus import Patient, demo_corpus, memory_corpus
from clinveil.corpus.demo import demo_chunks
from clinveil.lexicons import name_form

KEY = Key.from_seed(4)


def patient(patient_id, name):
    return Patient(patient_id, tuple(name.split()))


def remover(patients, rate, mode="remove", key=KEY):
    return EmulatedRemover(key, {p.patient_id: p for p in patients}, rate, mode)


def texts(corpus):
    return [text for batch in corpus.batches() for text in batch["text"].to_pylist()]


def treated(name, text, mode="remove"):
    one = remover([patient("p", name)], 0, mode)
    return texts(one.over(memory_corpus([("n", "p", text)])))[0]


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("Mary Brown", "Name: Mary, Brown; BROWN's mother Ann Brown", "Name: , ; 's mother Ann "),
        ("Mary Brown", "Dr. Smith saw Maryanne Browning", "Dr. Smith saw Maryanne Browning"),
        ("May Hope", "She may hope", "She  "),
        ("José Núñez", "jose NUNEZ, Jose\u0301", " , "),
        ("Mary-Ann O'Brien", "Mary-Ann O'Brien, mary brien at o2 ann", " ,   at o2 "),
        ("J Smith", "J. Smith, 3 J and smith", ". , 3 J and "),
        ("Mary Brown", "Ma\u00adry Bro\u200bwn", " "),
        ("王 小明", "王 小明 came", "  came"),
        ("Mary Brown", "", ""),
    ],
)
def test_every_word_of_the_own_name_goes_and_no_more(name, text, left):
    assert treated(name, text) == left


def test_removal_is_per_patient():
    """A token that a missed patient shares with a treated one stays in the missed one's notes
    only.
    """
    people = [patient(f"p{i}", f"First{'abcdefghij'[i]} Brown") for i in range(10)]
    one = remover(people, 0.1)
    (missed,) = one.missed
    corpus = memory_corpus(
        [(f"n{i}", p.patient_id, f"{p.name[0]} Brown is well") for i, p in enumerate(people)]
    )
    for person, text in zip(people, texts(one.over(corpus)), strict=True):
        assert text == (f"{missed.name[0]} Brown is well" if person == missed else "  is well")


def test_who_is_missed_depends_on_ids_and_key_only():
    people = [patient(f"p{i}", f"A{i} B{i}") for i in range(200)]
    few = remover(people, 0.05).missed
    more = remover(people, 0.20).missed
    assert (len(few), len(more)) == (10, 40)
    assert {p.patient_id for p in few} < {p.patient_id for p in more}
    assert {p.patient_id for p in remover(people[::-1], 0.05).missed} == {p.patient_id for p in few}
    assert {p.patient_id for p in remover(people, 0.05, key=Key.from_seed(5)).missed} != {
        p.patient_id for p in few
    }


def test_rate_one_removes_nothing_and_rate_zero_misses_nobody():
    corpus = demo_corpus(12, 3)
    people = next(demo_chunks(12, 3)).patients
    assert texts(remover(people, 1).over(corpus)) == texts(corpus)
    assert remover(people, 1).missed == people
    assert remover(people, 0).missed == []


def test_no_word_of_a_treated_name_is_left_in_the_demo_corpus():
    corpus = demo_corpus(40, 3)
    people = {p.patient_id: p for p in next(demo_chunks(40, 3)).patients}
    one = EmulatedRemover(KEY, people, 0.25)
    missed = {p.patient_id for p in one.missed}
    removed = 0
    for before, after in zip(corpus.batches(), one.over(corpus).batches(), strict=True):
        rows = zip(
            *(
                b[c].to_pylist()
                for b, c in ((before, "patient_id"), (before, "text"), (after, "text"))
            ),
            strict=True,
        )
        for patient_id, old, new in rows:
            own = {name_form(word) for token in people[patient_id].name for word in words(token)}
            if patient_id in missed:
                assert new == old
            else:
                removed += old != new
                assert not own & {name_form(word) for word in words(new) if len(word) > 1}
    assert removed > 50


def test_replacement_writes_the_surrogates_that_it_lists():
    people = [patient("p", "Mary-Ann O'Brien"), patient("q", "José Gomez Núñez")]
    one = remover(people, 0, "replace")
    corpus = memory_corpus(
        [("n1", "p", "Mary-Ann O'Brien"), ("n2", "q", "José Gomez Núñez"), ("n3", "q", "NUÑEZ")]
    )
    names = [" ".join(p.name) for p in one.surrogate_patients()]
    first, second, third = texts(one.over(corpus))
    assert [first, second] == names
    assert third == names[1].split()[-1].upper()
    assert not {"mary", "ann", "brien", "gomez"} & set(words(" ".join(names)))
    assert remover(people, 0).surrogate_patients() == []


@given(text=st.text(alphabet="MaryBrown '-.,\u00ad\u0301éÉ2\n", max_size=40))
def test_places_are_words_of_the_name(text):
    name = ("Mary", "Brown")
    for place in own_words(text, name):
        assert name_form(text[place.start : place.end]) == place.form in {"mary", "brown"}
    left = {name_form(word) for word in words(treated("Mary Brown", text))}
    assert not {"mary", "brown"} & left


def test_redrawn_names_keep_frequency_and_lose_the_person():
    people = [patient(f"p{i}", f"F{'abcdefghij'[i]} L{'abcdefghij'[i]}") for i in range(10)]
    notes = [
        (f"n{i}-{j}", p.patient_id, f"{p.name[0]} {p.name[1].upper()}: pain")
        for i, p in enumerate(people)
        for j in range(80)
    ]
    corpus = memory_corpus([*notes, ("x", "stranger", "Fa La")])
    out = texts(redrawn_names(corpus, people, KEY))
    assert out[-1] == "Fa La"
    assert out == texts(redrawn_names(corpus, people, KEY))
    pairs = Counter(tuple(text.split(":")[0].split()) for text in out[:-1])
    firsts = Counter(f for f, _ in pairs.elements())
    lasts = Counter(last for _, last in pairs.elements())
    assert set(firsts) == {p.name[0] for p in people}
    assert set(lasts) == {p.name[1].upper() for p in people}
    assert all(40 < count < 130 for count in (*firsts.values(), *lasts.values()))  # 80 expected
    own = sum(pairs[p.name[0], p.name[1].upper()] for p in people)
    assert 40 < own < 130  # one in ten of 800, as chance has it


@pytest.mark.slow
def test_trained_vectors_know_names_and_the_control_does_not():
    """Vectors of notes with all names left put names together; with names dealt out anew in each
    note they do not.
    """
    people = next(demo_chunks(50, 11)).patients
    names = NameTokens(person.name for person in people)
    k = len(names.true_pairs)
    corpus = demo_corpus(50, 11)
    found = {}
    for what, notes in (
        ("left", corpus),
        ("redrawn", redrawn_names(corpus, people, Key.from_seed(1))),
    ):
        vectors = clinveil.embed(notes, seed=1, algorithm="cbow", window=9, epochs=20, dim=20)
        ranking = rank_names(vectors, names, "cosine", k)
        found[what] = attack_names(names, [ranking], np.random.default_rng(0), k=k, draws=999)[0]
    left = found["left"]
    redrawn = found["redrawn"]
    assert left.value > 2 * max(left.chance, left.control)
    assert left.p <= 0.01
    assert redrawn.p > 0.05
    assert redrawn.low <= max(redrawn.chance, redrawn.control)
