"""`clinveil.attack` and `clinveil.evaluate`: the same findings as the rooms below, from frames,
files and lists.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from numpy.random import default_rng

import clinveil
from clinveil.attacks import Attack, Context, Names, attacks
from clinveil.cli import main
from clinveil.core import Finding, UsageError
from clinveil.corpus.demo import demo_chunks
from clinveil.utility import EVALUATIONS


@pytest.fixture(scope="module")
def corpus():
    return clinveil.demo_corpus(patients=60, seed=1)


@pytest.fixture(scope="module")
def frame(corpus):
    return pa.Table.from_batches(list(corpus.batches())).to_pandas()


@pytest.fixture(scope="module")
def fitted(frame):
    key = clinveil.Key.from_seed(1)
    return clinveil.Obfuscator(
        n=3, key=key, settings={"vectors": {"epochs": 1}}, columns={"keep": "diagnosis_group"}
    ).fit(frame)


@pytest.fixture(scope="module")
def known():
    return {
        patient.patient_id: patient for chunk in demo_chunks(60, 1) for patient in chunk.patients
    }


def test_names_are_paired_as_the_room_below_does_it(fitted, known):
    people = [patient.name for patient in known.values()]
    found = clinveil.attack.names(fitted.vectors_, known, seed=5, k=20, draws=99)
    assert found == Names(k=20, draws=99).on([fitted.vectors_], people, default_rng(5))
    assert found == clinveil.attack.names(
        fitted.vectors_, [" ".join(name) for name in people], seed=5, k=20, draws=99
    )


def test_inversion_recovers_more_than_chance_and_the_identity_all(fitted, frame):
    one = clinveil.attack.inversion(fitted.channel_, frame)[0]
    assert one.value > one.chance
    same = fitted.channel_.keeping(fitted.channel_.words)
    assert clinveil.attack.inversion(same, frame)[0].value == pytest.approx(1, abs=0.02)


def test_identifiers_stand_in_the_source_and_not_in_the_release(fitted, frame, known):
    released = fitted.transform(frame)
    found = {f.measure: f for f in clinveil.attack.identifiers(released, known, original=frame)}
    own = found["attack.own_names"] if "attack.own_names" in found else next(iter(found.values()))
    assert own.control > own.value


def test_copies_are_found_in_a_copy(frame):
    patients = sorted(set(frame["patient_id"]))
    sides = [frame[frame["patient_id"].isin(part)] for part in (patients[:30], patients[30:])]
    found = {f.measure: f for f in clinveil.attack.copies(sides[0], *sides)}
    assert found["attack.copies"].value == pytest.approx(1, abs=0.01)


def test_what_protection_costs(fitted, frame):
    found = clinveil.evaluate.classification(
        frame, fitted.transform(frame), label="diagnosis_group", training={"min_class": 5}
    )
    assert {f.measure for f in found} >= {"utility.classification"}
    assert clinveil.to_frame(found, "pandas")["measure"].notna().all()


def test_similarity_of_pairs_given_in_a_list(fitted):
    words = [w for w in fitted.vectors_.words if len(w) > 4][:12]
    pairs = [(a, b, float(i)) for i, (a, b) in enumerate(itertools.pairwise(words))]
    assert clinveil.evaluate.similarity(fitted.vectors_, pairs)[0].n == len(pairs)


def test_an_attack_that_somebody_registers_is_run_by_its_name(frame):
    @attacks.register("first-word")
    class FirstWord(Attack):
        """How many notes begin with a word of so many letters."""

        needs = frozenset({"released"})
        letters: int = 3

        def __call__(self, context, rng):
            texts = [
                text
                for batch in context.released.batches()
                for text in batch.column("text").to_pylist()
            ]
            hits = sum(len(text.split()[0]) == self.letters for text in texts)
            return [
                Finding("attack.first_word", hits / len(texts), len(texts), "lower", count=hits)
            ]

    try:
        found = clinveil.attack.run(
            "first-word", Context(released=clinveil.demo_corpus(patients=5, seed=1)), letters=4
        )
        assert found[0].measure == "attack.first_word"
        with pytest.raises(UsageError, match="needs released"):
            clinveil.attack.run("first-word", Context())
    finally:
        attacks.forget("first-word")


def test_the_functions_are_the_registered_attacks():
    assert set(dir(clinveil.attack)) - {"Context", "run"} == {
        name.replace("-", "_") for name in attacks.names()
    }


def test_the_functions_are_the_registered_evaluations():
    assert dir(clinveil.evaluate) == sorted(name.replace("-", "_") for name in EVALUATIONS.names())


def test_the_command_and_the_function_return_the_same(fitted, tmp_path):
    clinveil.save_vectors(fitted.vectors_, tmp_path / "v")
    (tmp_path / "names.txt").write_text("Ann Lee\nBob Stone\nMary Smith\n", encoding="utf-8")
    paths = [str(tmp_path / "v"), "--names", str(tmp_path / "names.txt")]
    assert main(["attack", "names", *paths, "--seed", "3", "--json", str(tmp_path / "f.json")]) == 0
    assert clinveil.read_findings(tmp_path / "f.json") == clinveil.attack.names(*paths[::2], seed=3)


def test_attacks_on_language_models_take_frames(frame):
    halves = [
        frame[frame["patient_id"].isin(part)]
        for part in np.array_split(sorted(set(frame["patient_id"])), 2)
    ]
    assert clinveil.attack.leaveout(halves[0], settings={"mode": "unigram"})
    assert clinveil.attack.canaries(halves[0], lm={"model": "unigram"}, each=1, repeats=(4,))


def test_inference_reads_the_attribute_from_the_columns(fitted, frame):
    released = fitted.transform(frame)
    assert clinveil.attack.inference(
        released, columns={"patient": "patient_id", "keep": "diagnosis_group"}
    )


def test_a_missing_input_is_reported(fitted):
    with pytest.raises(UsageError, match=r"attack\.names: missing a required argument: 'names'"):
        clinveil.attack.names(fitted.vectors_)


def test_unknown_attacks_and_settings_are_told(fitted):
    with pytest.raises(UsageError, match="unknown attack 'nothing'"):
        clinveil.attack.run("nothing", Context())
    with pytest.raises(UsageError, match="no setting kk"):
        clinveil.attack.names(fitted.vectors_, ["Ann Lee"], kk=3)
