"""The data files: every slot resolves, every diagnosis has words of its own, sizes and paper B's
targets hold.
"""

from __future__ import annotations

import re

import pytest

from clinveil.core import words
from clinveil.corpus import language
from clinveil.corpus.demo.grammar import Deck, Production
from clinveil.corpus.demo.language import LISTS
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


def test_the_targets_of_paper_b_are_there():
    assert {d.description for d in language().diagnoses} >= PAPER_B_TARGETS


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
