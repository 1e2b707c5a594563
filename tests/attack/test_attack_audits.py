"""Audits against models whose guilt is known: one that knows its notes by heart, and one that saw
other patients.
"""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "release"))
from synthesis_cases import Always, Copying, notes_of, rows_of, write_csv

from clinveil.attacks import (
    Canaries,
    Context,
    holding_of,
    infer_membership,
    membership_of_release,
    model_of_text,
    target_of,
)
from clinveil.attacks.models.canaries import families, score_of
from clinveil.cli import main
from clinveil.core import InputError, Key
from clinveil.lm import (
    ModelSettings,
    PlainNotes,
    SamplingConfig,
    WordVocabulary,
    encode,
    generate,
    make_vocabulary,
)

MOST_BITS = np.log2(1_001)


def written_by(model, n=120):
    """Synthetic notes of a model."""
    texts = []
    for note in generate(model, Key.from_seed(4), SamplingConfig(max_new_tokens=300)):
        texts.append(model.vocabulary.decode(note.ids.tolist()))
        if len(texts) == n:
            break
    names = tuple(f"s{i}" for i in range(n))
    return PlainNotes(tuple(texts), names, names)


def sides(n=30):
    """Notes of members, of others like them, and of third patients; nobody stands on two sides."""
    rows = rows_of(3 * n, each=2)
    place = {
        patient: row % 3 for row, patient in enumerate(sorted({patient for _, patient, _ in rows}))
    }
    return [notes_of([row for row in rows if place[row[1]] == side]) for side in range(3)]


MEMBERS, OTHERS, THIRD = sides()


def by_heart(notes):
    """A model in MedText's words that writes its training notes."""
    return Copying(notes, vocabulary=WordVocabulary(dict.fromkeys(" ".join(notes.texts).split())))


BY_HEART = by_heart(MEMBERS)
COPIED = written_by(BY_HEART)
OF_THIRD = written_by(by_heart(THIRD))  # a generator that saw other patients only


def membership(model, *, reference=None, training=MEMBERS, held_out=OTHERS, seed=1, most=2_000):
    rng = np.random.default_rng(seed)
    return infer_membership(model, training, held_out, rng, reference=reference, most=most)


def area(found, attacker="loss threshold"):
    return next(f for f in found if f.measure == "attack.membership" and f.attack == attacker)


def test_a_copier_is_caught_by_membership_through_its_text_alone():
    for reference in (None, THIRD):
        found = membership(model_of_text(COPIED), reference=reference)
        assert area(found).value > 0.99
        assert area(found).low > 0.8  # as 30 patients a side allow
    assert area(found, "calibrated").value > 0.99


def test_a_copier_is_caught_by_membership_through_the_model():
    found = area(membership(BY_HEART))
    assert found.value == 1.0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_generator_of_other_patients_is_at_chance_in_membership(seed):
    found = membership(model_of_text(OF_THIRD), seed=seed)
    assert area(found).low <= 0.5 <= area(found).high
    assert 0.25 < area(found).value < 0.75


def test_the_blind_attacker_is_at_chance_on_a_random_split_and_warns_on_another():
    fair = membership(model_of_text(COPIED))
    assert fair[0].measure == "attack.membership_blind"
    assert fair[0].low <= 0.5 <= fair[0].high
    assert not area(fair).warning
    later = notes_of([(n, p, t + " Seen in the new house.") for n, p, t in rows_of(30, seed=7)])
    moved = PlainNotes(later.texts, later.note_ids, tuple(f"later {p}" for p in later.patients))
    biased = membership(model_of_text(OF_THIRD), held_out=moved)
    assert biased[0].value > 0.9 and biased[0].low > 0.5 and biased[0].p < 0.01
    assert "differ by themselves" in area(biased).warning


def test_a_patient_on_two_sides_is_refused():
    one = MEMBERS.rows([0])
    shared = PlainNotes(
        OTHERS.texts + one.texts, (*OTHERS.note_ids, "x"), OTHERS.patients + one.patients
    )
    model = model_of_text(OF_THIRD)
    for most in (2_000, 20):  # in a sample they might not meet
        with pytest.raises(InputError, match="1 patients are on both sides"):
            membership(model, held_out=shared, most=most)
    for reference in (MEMBERS, OTHERS):
        with pytest.raises(InputError, match="reference"):
            membership(model, reference=reference)


def of_release(released, *, training=MEMBERS, held_out=OTHERS, seed=1, **more):
    found = membership_of_release(released, training, held_out, np.random.default_rng(seed), **more)
    assert found[0].measure in ("attack.membership_blind", "attack.membership")
    return found


def areas_of(found, source):
    return [f for f in found if f.measure == "attack.membership" and source in f.labels]


def test_a_release_of_copies_discloses_its_training_patients():
    found = of_release(COPIED, model=BY_HEART)
    from_notes, from_model = (areas_of(found, source) for source in ("released notes", "the model"))
    assert [f.attack for f in from_notes] == ["loss threshold", "calibrated"]
    for finding in (*from_notes, *from_model):
        assert finding.value > 0.95 and finding.low > 0.8 and finding.chance == 0.5
    for finding in from_notes:
        assert (holding_of(finding), target_of(finding)) == (
            "recipient",
            "membership",
        )
        assert finding.control > 0.95 and finding.control_kind == "positive"
    assert not any(finding.cell for finding in from_model)  # the model stays in the vault


@pytest.mark.parametrize("seed", [1, 2])
def test_a_release_of_other_patients_is_at_chance_beside_its_positive_control(seed):
    for finding in areas_of(of_release(OF_THIRD, seed=seed), "released notes"):
        assert finding.low <= 0.5 <= finding.high
        assert finding.control > 0.95


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_membership_permuted_among_the_patients_is_at_chance(seed):
    rows = [*zip(MEMBERS.note_ids, MEMBERS.patients, MEMBERS.texts, strict=True)]
    rows += zip(OTHERS.note_ids, OTHERS.patients, OTHERS.texts, strict=True)
    patients = sorted({patient for _, patient, _ in rows})
    chosen = {*np.random.default_rng(seed).permutation(patients)[: len(patients) // 2].tolist()}
    drawn = [
        notes_of([row for row in rows if (row[1] in chosen) == side]) for side in (True, False)
    ]
    for finding in areas_of(
        of_release(COPIED, training=drawn[0], held_out=drawn[1], seed=seed), "released notes"
    ):
        assert finding.low <= 0.5 <= finding.high


def test_placeholders_of_identifiers_disclose_no_membership():
    marked = replace(MEMBERS, texts=tuple(f"\ue003NAME 1\ue004 {text}" for text in MEMBERS.texts))
    found = of_release(OF_THIRD, training=marked)
    plain = of_release(OF_THIRD)
    assert [f.value for f in areas_of(found, "released notes")] == [
        f.value for f in areas_of(plain, "released notes")
    ]


def test_a_release_with_few_held_out_patients_says_why_there_is_no_figure():
    (finding,) = of_release(COPIED, held_out=OTHERS.rows([0, 1]))
    assert finding.value is None and "requires 5" in finding.why
    assert target_of(finding) == "membership"


# Canaries.


class ByHeart(Canaries):
    """An audit of a model that knows its notes by heart."""

    def train(self, notes, canaries, threads, say):
        model = Copying(notes)
        return model, encode(
            notes.texts * 8, model.vocabulary
        )  # so much is written that every note is


class OfOthers(Canaries):
    """An audit of a model that never saw the copy with the canaries, nor anything like it."""

    def train(self, notes, canaries, threads, say):
        every = [word for canary in canaries for place in canary.family.places for word in place]
        every += [word for canary in canaries for word in canary.text.split()]
        texts = (
            tuple(text + "\n" + " ".join(dict.fromkeys(every)) for text in THIRD.texts[:1])
            + THIRD.texts[1:]
        )
        model = Copying(PlainNotes(texts, THIRD.note_ids, THIRD.patients), share=1e-3)
        return model, encode(MEMBERS.texts, model.vocabulary)


def plant_in(notes, kind, seed, *, model="ngram", **how):
    lm = ModelSettings.model_validate({"model": model, "min_count": 1})
    attack = kind(lm=lm, seed=seed, **how)
    return attack(Context(training=notes, workers=1), np.random.default_rng([seed, 0xCA]))


def by(found, measure, source="the model"):
    """Mean over families, by repeats."""
    rows = [f for f in found if f.measure == measure and source in f.labels]
    often = sorted({int(f.numbers["repeats"]) for f in rows})
    return [
        float(np.mean([f.value for f in rows if f.numbers["repeats"] == n])) for n in often
    ], rows


def test_a_copier_gives_its_canaries_away():
    found = plant_in(MEMBERS.rows(range(20)), ByHeart, 1, each=2, repeats=(1, 4))
    for family in ("phrase", "number", "name"):
        bits = [
            f
            for f in by(found, "attack.canary_exposure", "released notes")[1]
            if family in f.labels
        ]
        assert [f.value for f in bits] == pytest.approx([MOST_BITS] * 2)
        assert bits[0].control == pytest.approx(
            1.44, abs=0.5
        )  # what it never saw is equally likely: ranked at random
    shares, rows = by(found, "attack.canary_extraction")
    assert shares == [1.0, 1.0]
    assert {f.control for f in rows} == {0.0}


def test_a_model_of_other_patients_gives_no_canary_away():
    found = plant_in(MEMBERS.rows(range(20)), OfOthers, 2, each=12, repeats=(8,))
    assert len(found) == 9
    for one in found:
        if one.measure == "attack.canary_extraction":
            assert one.value == one.control == 0.0
        else:
            # Planted or not is the same to it: the two means of 12 differ by their own spread
            # alone.
            assert abs(one.value - one.control) < 4 * 1.44 * np.sqrt(2 / 12)


def test_n_grams_remember_what_stood_there_once():
    found = plant_in(MEMBERS, Canaries, 3, each=6, repeats=(1, 4))
    bits, rows = by(found, "attack.canary_exposure")
    assert bits == pytest.approx([MOST_BITS] * 2)
    assert all(f.control < MOST_BITS / 2 for f in rows)
    assert {f.measure for f in found} == {
        "attack.canary_exposure"
    }  # it writes no notes: nothing to extract from
    assert {f.labels[2] for f in found} == {"the model"}


def test_exposure_rises_with_repeats():
    """A unigram knows a planted word by how often it was planted."""
    found = plant_in(MEMBERS, Canaries, 3, each=8, repeats=(1, 8, 64), model="unigram")
    bits, rows = by(found, "attack.canary_exposure")
    assert bits[0] < bits[1] < bits[2]
    assert bits[2] > np.mean([f.control for f in rows]) + 2


def test_a_model_without_memory_shows_words_and_no_order():
    """A unigram knows how often a word was planted, and nothing of which belong together."""
    found = plant_in(MEMBERS, Canaries, 3, each=4, repeats=(1,), model="unigram")
    assert {f.labels[2] for f in found} == {"the model", "released notes"}
    shares, _ = by(found, "attack.canary_extraction")
    assert shares == [0.0]


def test_empty_notes_come_to_an_end():
    class Empty(Canaries):
        def train(self, notes, canaries, threads, say):
            vocabulary = make_vocabulary(notes, self.lm, always=["reference", "phrase"])
            model = Always(notes)
            model.vocabulary = vocabulary
            model._row = np.eye(1, vocabulary.size)[0]
            return model, encode(notes.texts[:20], vocabulary)

    found = plant_in(MEMBERS, Empty, 3, each=1, repeats=(1,))
    assert by(found, "attack.canary_extraction")[0] == [0.0]


def test_families_hold_no_rare_word_of_the_notes():
    phrase, number, name = families(MEMBERS, np.random.default_rng(0))
    assert set(phrase.places[0]) <= {word for text in MEMBERS.texts for word in text.split()}
    assert number.places[0] == tuple("0123456789")
    assert {len(place) for place in name.places} == {300}
    assert all(word.istitle() for place in name.places for word in place[:20])


def test_score_of_is_of_the_sentence_alone():
    model = model_of_text(MEMBERS)
    score = score_of(model)
    text = MEMBERS.texts[0].split("\n")[0]
    ids = model.vocabulary.encode(f"\n{text}")
    assert score([text])[0] == pytest.approx(model.score([ids])[0][:-1].sum())
    assert score([text])[0] > score([" ".join(text.split()[::-1])])[0]


# From the command line.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audits")
    for name, notes in (
        ("members", MEMBERS),
        ("others", OTHERS),
        ("third", THIRD),
        ("copied", COPIED),
    ):
        rows = zip(
            notes.note_ids, notes.patients, (t.replace("\n", " ") for t in notes.texts), strict=True
        )
        write_csv(folder / f"{name}.csv", rows)
    return folder


def attack(folder, *arguments):
    return main(
        ["attack", *(str(folder / a) if str(a).endswith(".csv") else str(a) for a in arguments)]
    )


def test_membership_from_the_command_line(files, tmp_path, capfd):
    end = ["--synthetic", "copied.csv", "--reference", "third.csv", "--seed", "1"]
    answers = []
    for name in ("a.json", "b.json"):
        assert (
            attack(
                files, "membership", "members.csv", "others.csv", *end, "--json", tmp_path / name
            )
            == 0
        )
        answers.append((tmp_path / name).read_bytes())
    assert answers[0] == answers[1]
    found = json.loads(answers[0])["findings"]
    assert [f["measure"] for f in found] == ["attack.membership_blind"] + (
        ["attack.membership", "attack.membership_hits", "attack.membership_hits"] * 2
    )
    assert found[1]["value"] > 0.99
    assert attack(files, "membership", "members.csv", "others.csv", *end) == 0
    said = capfd.readouterr()
    assert "released notes" in said.out and "not tried" not in said.out
    assert not [w for w in ("fever", "rare", "70") if w in said.err]


def test_without_a_reference_the_attack_is_calibrated_on_the_other_patients(files, capfd):
    assert (
        attack(
            files,
            "membership",
            "members.csv",
            "others.csv",
            "--synthetic",
            "copied.csv",
            "--seed",
            "1",
        )
        == 0
    )
    out = capfd.readouterr().out
    assert "calibrated" in out and "not run" not in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["membership", "members.csv", "others.csv"], 2, "nothing to attack"),
        (
            ["membership", "members.csv", "members.csv", "--synthetic", "copied.csv"],
            3,
            "are on both sides",
        ),
        (
            ["membership", "members.csv", "others.csv", "--from", "nowhere"],
            3,
            "no readable model.json",
        ),
        (["membership", "members.csv", "none.csv", "--synthetic", "copied.csv"], 3, "no such file"),
        (["canaries", "members.csv", "--set", "repeats=0"], 2, "repeats must be 1 or more"),
        (["canaries", "members.csv", "--set", "each=0"], 2, "each"),
        (["leaveout", "members.csv"], 2, "no folder for the models"),
        (
            ["leaveout", "members.csv", "-o", "DIR", "--set", "lm.model=pretrained"],
            2,
            "is for releases with synthetic.init only",
        ),
        (
            [
                "leaveout",
                "members.csv",
                "-o",
                "DIR",
                "--set",
                "lm.model=unigram",
                "--set",
                "units=30",
            ],
            3,
            "too few to leave 30 out",
        ),
        (
            ["leaveout", "members.csv", "--set", "mode=unigram", "--set", "from_text=true"],
            2,
            "from_text is not available with --mode unigram",
        ),
        (
            ["leaveout", "members.csv", "-o", "DIR", "--set", "max_hours=1e-9", "--set", "units=2"],
            2,
            "more than max_hours",
        ),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    arguments, code, said, files, tmp_path, monkeypatch, capfd
):
    if "max_hours=1e-9" in arguments:
        pytest.importorskip("torch", reason="the extra [neural] is not installed")
        small = ("size=tiny", "width=16", "vocabulary=words", "epochs=1")
        arguments = [*arguments, *(word for setting in small for word in ("--set", setting))]
    monkeypatch.chdir(tmp_path)
    assert attack(files, *arguments) == code
    last = capfd.readouterr().err.splitlines()[-1]
    assert said in last
    assert not [w for w in ("fever", "rarea", "7000") if w in last]


def test_canaries_from_the_command_line(files, tmp_path, capfd):
    end = shlex.split("--set lm.model=ngram --set each=2 --set repeats=1 --set repeats=8 --seed 1")
    assert attack(files, "canaries", "members.csv", *end, "--json", tmp_path / "f.json") == 0
    found = json.loads((tmp_path / "f.json").read_text())["findings"]
    assert {(f["labels"][3], f["numbers"]["repeats"]) for f in found} == {
        (family, n) for family in ("phrase", "number", "name") for n in (1, 8)
    }
    assert [path.name for path in tmp_path.iterdir()] == [
        "f.json"
    ]  # the copy with canaries is never written
    assert "contact person" not in capfd.readouterr().out
    assert attack(files, "canaries", "members.csv", *end) == 0
    out = capfd.readouterr().out
    assert "2 of 2 at the ceiling" in out and "bits" in out
    assert "9.97 bits is the maximum for 1,000 fresh draws" in out
