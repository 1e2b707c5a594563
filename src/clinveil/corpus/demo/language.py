"""The language of the demo corpus, read from the data files of `language/` and compiled once a process."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate
from typing import Any

from clinveil.corpus.demo.diagnosis import Diagnosis, read_diagnoses
from clinveil.corpus.demo.grammar import Alternatives, Vocabulary, compile_rule, with_capitals

HABITS = ("formal", "plain", "terse")


@dataclass(frozen=True, eq=False)
class Language:
    """All rules, words by sex and by habit of the author, and the diagnoses from the most to the least frequent.

    Attributes:
        rules: what every note knows.
        words: sections of `people.toml`: female, male, formal, terse, plain.
        places, names: the raw tables that people are made from.
        doses: generic name -> ways in which the drug is taken.
    """

    rules: dict[str, Alternatives] = field(repr=False)
    words: dict[str, dict[str, Alternatives]] = field(repr=False)
    places: dict[str, str] = field(repr=False)
    names: dict[str, Any] = field(repr=False)
    doses: dict[str, Alternatives] = field(repr=False)
    diagnoses: tuple[Diagnosis, ...] = field(repr=False)

    @cached_property
    def cumulative(self) -> list[float]:
        """Running sums of the Zipf weights, one a diagnosis."""
        return list(accumulate(1 / rank for rank in range(1, len(self.diagnoses) + 1)))

    @cached_property
    def clinics(self) -> list[str]:
        """The clinics, sorted."""
        return sorted({d.clinic for d in self.diagnoses})

    @cached_property
    def _bases(self) -> dict[tuple[str, str], Vocabulary]:
        return {}

    def base(self, diagnosis: Diagnosis, habit: str) -> Vocabulary:
        """The vocabulary of a note on a diagnosis by an author of a habit, without its person; a fresh copy."""
        key = (diagnosis.key, habit)
        if key not in self._bases:
            title = diagnosis.description
            own = {"clinic": diagnosis.clinic, "description": title, "^description": title[:1].upper() + title[1:]}
            self._bases[key] = {**self.rules, **self.words[habit], **own, "space": " "}
        return self._bases[key].copy()


@cache
def language() -> Language:
    """The language, read and compiled at the first call."""
    drugs = _read("drugs.toml")
    notes, identifiers, terms = _read("notes.toml"), _read("identifiers.toml"), _read("terms.toml")
    rules = {name: compile_rule(phrases) for name, phrases in {**terms, **notes, **identifiers}.items()}
    rules |= {key: compile_rule([key.replace("_", " ")] * 3 + _brands(line)) for key, line in drugs.items()}
    by_key = {d.key: d for d in read_diagnoses()}
    rules |= {key: diagnosis.names for key, diagnosis in by_key.items()}
    order = _read("prevalence.toml")["order"].split()
    return Language(
        rules=with_capitals(rules),
        words={who: with_capitals(_compiled(words)) for who, words in _read("people.toml").items()},
        places=_read("places.toml"),
        names=_read("names.toml"),
        doses={key: _doses(key, line) for key, line in drugs.items()},
        diagnoses=tuple(by_key[key] for key in order),
    )


@cache
def misspellings() -> dict[str, tuple[str, ...]]:
    """Words and the ways in which they are often misspelt."""
    words = _read("misspellings.toml")["words"]
    return {word: tuple(w.strip() for w in wrong.split(";")) for word, wrong in words.items()}


def _read(name: str) -> dict[str, Any]:
    file = resources.files("clinveil.corpus.demo") / "language" / name
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _compiled(words: dict[str, str]) -> dict[str, Alternatives]:
    return {name: compile_rule(phrases) for name, phrases in words.items()}


def _brands(line: str) -> list[str]:
    return [brand.strip() for brand in line.split("|")[0].split(";")]


def _doses(key: str, line: str) -> Alternatives:
    """`{metformin} 500 mg twice daily`, and so on: the name stays a slot, so that brand and generic alternate."""
    _, amounts, how = (part.strip() for part in line.split("|"))
    return compile_rule([f"{{{key}}} {amount.strip()} {how}" for amount in amounts.split(";")])
