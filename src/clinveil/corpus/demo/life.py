"""What stays the same in an invented life: the work, the household, relatives, allergies, operations."""

from __future__ import annotations

from clinveil.corpus.demo.grammar import Draw, Phi, Vocabulary, phrase, pick
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.names import given_name, person_name

MARRIED, RETIREMENT = 0.6, 66
COMPANIONS = ("friend", "roommate", "neighbour")
# Said in the same words in every note of a patient.
FROZEN = ("title", "allergy", "operation", "smoking", "drinking", "relative_ill", "device", "hobby", "kin")


def life(sex: str, age: int, draw: Draw) -> Vocabulary:
    """Words and relatives of someone of this sex and age."""
    words: Vocabulary = dict(language().words["female" if sex == "F" else "male"])
    words |= _work(age, draw) | _household(sex, draw)
    known = {**language().rules, **words}
    for rule in FROZEN:
        text = phrase(rule, known, draw)
        words[rule], words["^" + rule] = text, text[:1].upper() + text[1:]
    words["sex"] = sex
    return words


def _work(age: int, draw: Draw) -> Vocabulary:
    job = pick(language().rules["job"], draw).head
    article = "an" if job[0] in "aeiou" else "a"
    retired = age > RETIREMENT
    return {
        "job": f"retired {job}" if retired else job,
        "a_job": f"{article} {job}",
        "works": "worked" if retired else "works",
    }


def _household(sex: str, draw: Draw) -> Vocabulary:
    rules, married = language().rules, draw() < MARRIED
    other = "M" if sex == "F" else "F"
    kin_sex = pick("FM", draw)
    words: Vocabulary = {"home": rules["home_married" if married else "home_single"]}
    if not married:
        words["partner"] = pick(COMPANIONS, draw)
    return words | {
        "partner_name": Phi("NAME", given_name(other if married else sex, draw)),
        "sibling_name": Phi("NAME", given_name(sex, draw)),
        "kin": rules["kin_female" if kin_sex == "F" else "kin_male"],
        "kin_full": Phi("NAME", person_name(kin_sex, draw).full),
        "nurse": Phi("NAME", person_name("F", draw).full),
    }
