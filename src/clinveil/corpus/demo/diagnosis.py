"""A diagnosis of the demo corpus with its own words, read from `language/diagnoses/*.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from clinveil.corpus.demo.grammar import Alternatives, Deck, Draw, Vocabulary, capitalised, compile_rule, with_capitals

# The slots of a diagnosis and what its lists are called in the data.
LISTS = {"symptom": "symptoms", "deny": "denies", "story": "stories", "finding": "findings", "risk": "risks",
         "plan": "plan", "advice": "advice"}  # fmt: skip
ORDERS = 6
Shuffles: TypeAlias = list[tuple[Alternatives, Alternatives]]


class Speech(NamedTuple):
    """What is said of a diagnosis in people of one sex.

    Attributes:
        names: the slots `dx` and `^dx`: what it is called.
        decks: slot -> some shuffles of (alternatives, the same capitalised).
        drugs: generic names, the keys of the drug rules.
    """

    names: dict[str, Alternatives]
    decks: dict[str, Shuffles]
    drugs: tuple[str, ...]

    def deal(self, draw: Draw) -> Vocabulary:
        """Freshly shuffled decks for one note; the plain and the capitalised slot share a deck."""
        dealt: Vocabulary = {}
        for name, shuffles in self.decks.items():
            plain, capital = shuffles[int(draw() * ORDERS)]
            dealt[name] = dealt["^" + name] = Deck(plain, capital, 0)
        return dealt


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """One diagnosis: its code, whom it befalls, and its own words.

    Attributes:
        description: 1 to 3 words, what `codes.csv` says.
        group, clinic: what it belongs to, who treats it.
        low, high: age range in years.
        speech: by sex, "F" or "M"; only those whom it befalls.
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
        """What it is called."""
        return next(iter(self.speech.values())).names["dx"]

    def suits(self, sex: str, age: int) -> bool:
        """Whether someone of this sex and age may have it."""
        return sex in self.speech and self.low <= age <= self.high


def read_diagnoses() -> list[Diagnosis]:
    """All diagnoses of the data files."""
    folder = resources.files("clinveil.corpus.demo") / "language" / "diagnoses"
    found: list[Diagnosis] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        group, clinic = table.pop("group"), table.pop("clinic")
        found += [_diagnosis(key, group, clinic, words) for key, words in table.items()]
    return found


def _diagnosis(key: str, group: str, clinic: str, words: dict[str, Any]) -> Diagnosis:
    speech = {sex: _speech(words, sex) for sex in words.get("sex", "FM")}
    description = next(iter(speech.values())).names["dx"][0].head
    low, high = words["age"]
    return Diagnosis(key, words["code"], description, group, clinic, low, high, speech)


def _speech(words: dict[str, Any], sex: str) -> Speech:
    phrases = {slot: _said_of(words[name].split(";"), sex) for slot, name in LISTS.items()}
    phrases["result"], phrases["order"] = _tests(_said_of(words["tests"].split(";"), sex))
    return Speech(
        with_capitals({"dx": compile_rule(_said_of(words["names"].split(";"), sex))}),
        {slot: _shuffles(compile_rule(parts)) for slot, parts in phrases.items()},
        tuple(_said_of(words["drugs"], sex)),
    )


def _said_of(phrases: list[str], sex: str) -> list[str]:
    """The phrases that may be said of a sex; "F:" and "M:" mark those of one."""
    other = "M:" if sex == "F" else "F:"
    parts = [phrase.strip() for phrase in phrases]
    return [part.removeprefix(f"{sex}:") for part in parts if not part.startswith(other)]


def _tests(tests: list[str]) -> tuple[list[str], list[str]]:
    """Results ("X showed A", "X showed B") and orders ("X") from "X > A / B"."""
    results, orders = [], []
    for test in tests:
        order, _, findings = (part.strip() for part in test.partition(" > "))
        orders.append(order)
        results += [f"{order} {{showed}} {finding.strip()}" for finding in findings.split(" / ")]
    return results, orders


def _shuffles(alternatives: Alternatives) -> Shuffles:
    rng = np.random.default_rng(len(alternatives))
    orders = [rng.permutation(len(alternatives)) for _ in range(ORDERS)]
    capital = capitalised(alternatives)
    return [(tuple(alternatives[i] for i in order), tuple(capital[i] for i in order)) for order in orders]
