"""The templates of the demo corpus, read from the data files of `language/` and compiled once per
process.

Each diagnosis has its own phrases, in `language/diagnoses/*.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from clinveil.corpus.demo.grammar import (
    Alternatives,
    Deck,
    Draw,
    Vocabulary,
    capitalised,
    compile_rule,
    with_capitals,
)

# The slots of a diagnosis and the names of its lists in the data.
LISTS = {"symptom": "symptoms", "deny": "denies", "story": "stories", "finding": "findings",
    "risk": "risks",
         "plan": "plan", "advice": "advice"}  # fmt: skip
ORDERS = 6
Shuffles: TypeAlias = list[tuple[Alternatives, Alternatives]]
HABITS = ("formal", "plain", "terse")


class Speech(NamedTuple):
    """The phrases about a diagnosis for one sex.

    Attributes:
        names: the slots `dx` and `^dx`, its names.
        decks: slot -> several shuffles of (alternatives, the same capitalised).
        drugs: generic names, the keys of the drug rules.
    """

    names: dict[str, Alternatives]
    decks: dict[str, Shuffles]
    drugs: tuple[str, ...]

    def deal(self, draw: Draw) -> Vocabulary:
        """Return shuffled decks for one note; the plain and the capitalised slot share a deck."""
        dealt: Vocabulary = {}
        for name, shuffles in self.decks.items():
            plain, capital = shuffles[int(draw() * ORDERS)]
            dealt[name] = dealt["^" + name] = Deck(plain, capital, 0)
        return dealt


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """One diagnosis: its code, its range of patients, and its phrases.

    Attributes:
        description: 1 to 3 words, as in `codes.csv`.
        group, clinic: its group of diagnoses, and the clinic that treats it.
        low, high: age range in years.
        speech: phrases by sex, "F" or "M"; only sexes that it can affect.
    """

    key: str
    code: str
    description: str
    group: str
    clinic: str
    low: int
    high: int
    speech: dict[str, Speech] = field(repr=False)

    @property
    def names(self) -> Alternatives:
        """Its names."""
        return next(iter(self.speech.values())).names["dx"]

    def suits(self, sex: str, age: int) -> bool:
        """Return whether a person of this sex and age may have it."""
        return sex in self.speech and self.low <= age <= self.high


def read_diagnoses() -> list[Diagnosis]:
    """Return all diagnoses of the data files."""
    folder = resources.files("clinveil.corpus.demo") / "language" / "diagnoses"
    diagnoses: list[Diagnosis] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        group = table.pop("group")
        clinic = table.pop("clinic")
        for key, words in table.items():
            speech = {sex: _speech(words, sex) for sex in words.get("sex", "FM")}
            description = next(iter(speech.values())).names["dx"][0].head
            low, high = words["age"]
            diagnoses.append(
                Diagnosis(key, words["code"], description, group, clinic, low, high, speech)
            )
    return diagnoses


def _speech(words: dict[str, Any], sex: str) -> Speech:
    phrases = {slot: _phrases_for(words[name].split(";"), sex) for slot, name in LISTS.items()}
    phrases["result"], phrases["order"] = _tests(_phrases_for(words["tests"].split(";"), sex))
    return Speech(
        with_capitals({"dx": compile_rule(_phrases_for(words["names"].split(";"), sex))}),
        {slot: _shuffles(compile_rule(parts)) for slot, parts in phrases.items()},
        tuple(_phrases_for(words["drugs"], sex)),
    )


def _phrases_for(phrases: list[str], sex: str) -> list[str]:
    """Return the phrases for a sex; "F:" and "M:" mark phrases for one sex."""
    other = "M:" if sex == "F" else "F:"
    parts = [phrase.strip() for phrase in phrases]
    return [part.removeprefix(f"{sex}:") for part in parts if not part.startswith(other)]


def _tests(tests: list[str]) -> tuple[list[str], list[str]]:
    """Return results ("X showed A", "X showed B") and orders ("X") from "X > A / B"."""
    results = []
    orders = []
    for test in tests:
        order, _, findings = (part.strip() for part in test.partition(" > "))
        orders.append(order)
        results += [f"{order} {{showed}} {finding.strip()}" for finding in findings.split(" / ")]
    return results, orders


def _shuffles(alternatives: Alternatives) -> Shuffles:
    rng = np.random.default_rng(len(alternatives))
    orders = [rng.permutation(len(alternatives)) for _ in range(ORDERS)]
    capital = capitalised(alternatives)
    return [
        (tuple(alternatives[i] for i in order), tuple(capital[i] for i in order))
        for order in orders
    ]


@dataclass(frozen=True, eq=False)
class Language:
    """All rules, words by sex and by the author's habit, and the diagnoses from the most to the
    least frequent.

    Attributes:
        rules: rules that all notes share.
        words: sections of `people.toml`: female, male, formal, terse, plain.
        places, names: the raw tables for generating people.
        doses: generic name -> dosage phrases.
    """

    rules: dict[str, Alternatives] = field(repr=False)
    words: dict[str, dict[str, Alternatives]] = field(repr=False)
    places: dict[str, str] = field(repr=False)
    names: dict[str, Any] = field(repr=False)
    doses: dict[str, Alternatives] = field(repr=False)
    diagnoses: tuple[Diagnosis, ...] = field(repr=False)

    @cached_property
    def cumulative(self) -> list[float]:
        """Cumulative sums of the Zipf weights, one per diagnosis."""
        return list(accumulate(1 / rank for rank in range(1, len(self.diagnoses) + 1)))

    @cached_property
    def clinics(self) -> list[str]:
        """The clinics, sorted."""
        return sorted({d.clinic for d in self.diagnoses})

    @cached_property
    def _bases(self) -> dict[tuple[str, str], Vocabulary]:
        return {}

    def base(self, diagnosis: Diagnosis, habit: str) -> Vocabulary:
        """Return a new vocabulary for a note on a diagnosis by an author with a habit, without the
        patient's fields.
        """
        key = (diagnosis.key, habit)
        if key not in self._bases:
            title = diagnosis.description
            parts = {
                "clinic": diagnosis.clinic,
                "description": title,
                "^description": title[:1].upper() + title[1:],
            }
            self._bases[key] = {**self.rules, **self.words[habit], **parts, "space": " "}
        return self._bases[key].copy()


@cache
def language() -> Language:
    """Return the compiled templates."""
    phrases = {**_read("terms.toml"), **_read("notes.toml"), **_read("identifiers.toml")}
    rules = {name: compile_rule(phrase) for name, phrase in phrases.items()}
    doses = {}
    for key, line in _read("drugs.toml").items():
        brands, amounts, route = (part.strip() for part in line.split("|"))
        rules[key] = compile_rule(
            [key.replace("_", " ")] * 3 + [brand.strip() for brand in brands.split(";")]
        )
        # The name stays a slot, for brand and generic names: `{metformin} 500 mg twice daily`.
        doses[key] = compile_rule(
            [f"{{{key}}} {amount.strip()} {route}" for amount in amounts.split(";")]
        )
    by_key = {d.key: d for d in read_diagnoses()}
    rules |= {key: diagnosis.names for key, diagnosis in by_key.items()}
    order = _read("prevalence.toml")["order"].split()
    return Language(
        rules=with_capitals(rules),
        words={
            who: with_capitals({name: compile_rule(phrases) for name, phrases in words.items()})
            for who, words in _read("people.toml").items()
        },
        places=_read("places.toml"),
        names=_read("names.toml"),
        doses=doses,
        diagnoses=tuple(by_key[key] for key in order),
    )


@cache
def misspellings() -> dict[str, tuple[str, ...]]:
    """Return words and their common misspellings."""
    words = _read("misspellings.toml")["words"]
    return {word: tuple(w.strip() for w in wrong.split(";")) for word, wrong in words.items()}


def _read(name: str) -> dict[str, Any]:
    file = resources.files("clinveil.corpus.demo") / "language" / name
    return tomllib.loads(file.read_text(encoding="utf-8"))
