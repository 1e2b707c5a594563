"""The data files: every slot resolves, every diagnosis has words of its own, sizes and paper B's
targets hold.
"""

from __future__ import annotations

import re
from importlib import resources

import pytest

from clinveil.core.tokens import words
from clinveil.corpus.demo.grammar import Deck, Production, phrase
from clinveil.corpus.demo.language import HABITS, LISTS, language, misspellings
from clinveil.corpus.demo.notes import _vocabulary
from clinveil.corpus.demo.persons import make_person, uniforms

PAPER_B_TARGETS = {
    "constipation", "diarrhea", "vaginitis", "sexual dysfunction", "urinary infection",
    "herpes genitalis", "dementia", "anorexia", "alcoholism", "threatened abortion", "AIDS",
}  # fmt: skip


def slots(production: Production) -> set[str]:
    """Return every name that a production looks up."""
    names: set[str] = set()
    for slot, _ in production.rest:
        names |= (
            {slot} if isinstance(slot, str) else {name for choice in slot for name in slots(choice)}
        )
    return names


def test_enough_diagnoses_in_enough_groups():
    diagnoses = language().diagnoses
    assert len(diagnoses) >= 60
    assert len({d.group for d in diagnoses}) >= 10
    assert len({d.code for d in diagnoses}) == len(diagnoses)
    assert len({d.description for d in diagnoses}) == len(diagnoses)


def test_the_targets_of_paper_b_are_there():
    assert {d.description for d in language().diagnoses} >= PAPER_B_TARGETS


def test_descriptions_have_one_to_three_words():
    assert all(1 <= len(d.description.split()) <= 3 for d in language().diagnoses)


def test_prevalence_falls_as_one_over_rank():
    cumulative = language().cumulative
    weights = [b - a for a, b in zip([0.0, *cumulative], cumulative, strict=False)]
    assert weights[0] == pytest.approx(1)
    assert weights[9] == pytest.approx(0.1)
    assert len(weights) == len(language().diagnoses)


@pytest.mark.parametrize("slot", [*LISTS, "result", "order"])
def test_every_diagnosis_has_words_of_every_kind(slot: str):
    for diagnosis in language().diagnoses:
        for speech in diagnosis.speech.values():
            plain, capital = speech.decks[slot][0]
            assert len(plain) == len(capital) >= 1


def test_every_diagnosis_has_its_own_vocabulary():
    # The stems of findings, symptoms and stories: no two diagnoses share more than half of them.
    def own(diagnosis) -> set[str]:
        speech = next(iter(diagnosis.speech.values()))
        decks = [speech.decks[slot][0][0] for slot in ("symptom", "finding", "story", "advice")]
        literals = [
            text for deck in decks for p in deck for text in (p.head, *(tail for _, tail in p.rest))
        ]
        return {word for text in literals for word in words(text) if len(word) > 4}

    vocabularies = [own(d) for d in language().diagnoses]
    for number, mine in enumerate(vocabularies):
        assert len(mine) >= 15
        for other in vocabularies[number + 1 :]:
            assert len(mine & other) <= len(mine | other) / 2


def test_drugs_are_known_and_taken_in_some_way():
    doses = language().doses
    rules = language().rules
    for diagnosis in language().diagnoses:
        for speech in diagnosis.speech.values():
            assert speech.drugs
            assert all(drug in doses and drug in rules for drug in speech.drugs)


def test_every_slot_of_every_template_resolves():
    missing: set[tuple[str, str]] = set()
    for index in range(40):
        draw = uniforms(3, 1, index)
        person = make_person(3, index, draw)
        for course in person.courses:
            vocabulary = _vocabulary(3, person, course, 0, draw)
            for name, entry in vocabulary.items():
                alternatives = entry if type(entry) is tuple else ()
                if type(entry) is Deck:
                    alternatives = entry.plain + entry.capital
                for production in alternatives:
                    missing |= {
                        (name, slot) for slot in slots(production) if slot not in vocabulary
                    }
    assert not missing


@pytest.mark.parametrize("habit", HABITS)
def test_habits_differ_in_abbreviations(habit: str):
    base = language().base(language().diagnoses[0], habit)
    said = {phrase("patient", base, uniforms(1, number)) for number in range(60)}
    assert (
        said
        == {"formal": {"patient"}, "plain": {"patient", "pt"}, "terse": {"patient", "pt"}}[habit]
    )


def test_a_base_vocabulary_is_a_copy():
    first = language().base(language().diagnoses[0], "plain")
    first["patient"] = "changed"
    assert language().base(language().diagnoses[0], "plain")["patient"] != "changed"


def test_titles_keep_their_capitals():
    by_key = {d.key: d for d in language().diagnoses}
    assert language().base(by_key["aids"], "plain")["^description"] == "AIDS"
    assert language().base(by_key["hepatitis_c"], "plain")["^description"] == "Hepatitis C"


def test_words_of_one_sex_are_not_said_of_the_other():
    by_key = {d.key: d for d in language().diagnoses}
    assert set(by_key["vaginitis"].speech) == {"F"}
    assert set(by_key["prostate_cancer"].speech) == {"M"}
    assert not by_key["threatened_abortion"].suits("M", 30)
    assert not by_key["threatened_abortion"].suits("F", 70)
    names = {
        sex: {p.head for p in speech.names["dx"]}
        for sex, speech in by_key["sexual_dysfunction"].speech.items()
    }
    assert "impotence" in names["M"] - names["F"]
    assert not any(
        re.match(r"[FM]:", p.head)
        for s in by_key["gallstones"].speech.values()
        for p in s.decks["risk"][0][0]
    )


def test_misspellings_are_wrong():
    assert all(right not in wrong for right, wrong in misspellings().items())


def test_data_files_are_small():
    def files(folder):
        for item in folder.iterdir():
            yield from files(item) if item.is_dir() else [item]

    sizes = {
        f.name: len(f.read_bytes())
        for f in files(resources.files("clinveil.corpus.demo") / "language")
    }
    assert len(sizes) > 20
    assert max(sizes.values()) < 200_000
