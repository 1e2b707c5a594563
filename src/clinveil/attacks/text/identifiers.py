"""Search released notes for known identifiers: a patient's own record numbers, phones, e-mails, addresses and names.

Numbers are compared by their digits, in any script and with the usual separators; their chance is the same search with
another patient's numbers. E-mails and addresses are compared by their words, as adjacent lookup forms; their chance is
that of the notes' words in random order. This is exact for a release that orders the
words of a note at random; otherwise it is approximate, and the gate then allows no match at all. Values too short to
distinguish from chance (numbers of fewer than 4 digits, addresses of one word) are counted but not tested.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks, source_id
from clinveil.attacks.text._full_names import PERMUTATIONS, REPLICATES, NameIndex, NameScan
from clinveil.attacks.threats import tagged
from clinveil.core.finding import Finding
from clinveil.core.tokens import Kind, character_classes, words
from clinveil.corpus.corpus import PATIENT_ID, Corpus, rows
from clinveil.corpus.people import Patient
from clinveil.stats.findings import proportion, unmeasured
from clinveil.stats.random_order import P_IS, PhraseOdds, found_p, one_refused_below

MIN_DIGITS = 4
BATCH = 2_000  # notes searched for names in one batch
LONG_NUMBER = 7
_ASCII_DIGITS = re.compile("[0-9]+")
_SEPARATOR = r"[\s().\-/+]{0,3}"
SOURCE = "45 CFR 164.514(b)(2); gate of own identifiers: none"
CHANCE_IS = "another patient's numbers, searched for in the same notes"
CONTROL_IS = "the same search in the source notes"
MIN_WORDS = 2
KEPT = "attack.kept_own_identifiers"
PHRASE_CHANCE = "the words of each note in random order"
PHRASE_SOURCE = "45 CFR 164.514(b)(2); chance: Feller 1968, chapter 4; P: Hoeffding 1956, Anderson & Samuels 1967"


@attacks.register("identifiers")
class Identifiers(Attack):
    """Search released notes for patients' own identifiers and full names, and for other patients' names."""

    needs = frozenset({"released", "known"})
    optional = frozenset({"original"})
    on_release = True
    sees_all = True
    order = 600

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run `identifiers`; with the source notes, the same search in them is the control."""
        assert context.released is not None and context.known is not None
        made = identifiers(context.released, context.known, rng, crosswalk=context.patients)
        made += kept_identifiers(context.released, context.known, context.keep, crosswalk=context.patients)
        found = [tagged(f, "recipient", "own identifiers") if f.measure in OWN else f for f in made]
        if context.original is None:
            return found
        in_source = {f.measure: f.value for f in identifiers(context.original, context.known, rng)}
        controls = [(f, in_source.get(f.measure), f.measure.startswith("attack.own_")) for f in found]
        # The source must contain own identifiers, but not others' names.
        return [
            f
            if value is None
            else replace(f, control=value, control_is=CONTROL_IS, control_kind="positive" if own else None)
            for f, value, own in controls
        ]


def digits_of(text: str) -> str:
    """Return the digits of a text, in any script, as 0 to 9."""
    if text.isascii():
        return "".join(_ASCII_DIGITS.findall(text))
    return "".join(str(unicodedata.digit(c)) for c in text if unicodedata.digit(c, None) is not None)


class ReleasedText:
    """One released note, in the forms that are searched."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.digits = digits_of(text)
        self.forms = words(text)
        self.phrase = f" {' '.join(self.forms)} "

    def has_number(self, digits: str) -> bool:
        """Return whether the digits occur with usual separators; short numbers only as complete numbers."""
        return digits in self.digits and _number(digits).search(self._plain) is not None

    @cached_property
    def _plain(self) -> str:
        """Return the text with digits of any script as 0 to 9, and without ignorable characters."""
        if self._text.isascii():
            return self._text
        classes, ignorable = character_classes(), Kind.IGNORABLE
        kept = (c for c in unicodedata.normalize("NFKC", self._text) if classes[ord(c)] != ignorable)
        return "".join(str(unicodedata.digit(c)) if unicodedata.digit(c, None) is not None else c for c in kept)


@lru_cache(maxsize=4096)
def _number(digits: str) -> re.Pattern[str]:
    pattern = _SEPARATOR.join(digits)
    return re.compile(pattern if len(digits) >= LONG_NUMBER else rf"(?<!\d){pattern}(?!\d)")


def _numbers(values: Sequence[str]) -> list[str]:
    return sorted({digits for value in values if len(digits := digits_of(value)) >= MIN_DIGITS})


class _NumberSearch:
    """One patient's numbers of one kind not yet found in their notes, and another patient's."""

    __slots__ = ("n_sought", "n_sought_other", "other", "own")

    def __init__(self, own: Sequence[str], other: Sequence[str]) -> None:
        self.own = _numbers(own)
        # A number of both (a family's phone) would count as the other's.
        self.other = [number for number in _numbers(other) if number not in self.own]
        self.n_sought, self.n_sought_other = len(self.own), len(self.other)

    def search(self, note: ReleasedText) -> None:
        """Search one note for the numbers not yet found."""
        self.own = [number for number in self.own if not note.has_number(number)]
        self.other = [number for number in self.other if not note.has_number(number)]

    @staticmethod
    def finding(measure: str, searches: Sequence[_NumberSearch], detail: Mapping[str, Any], unit: str) -> Finding:
        """Return the share of own numbers that were found, with that of another patient's numbers as chance."""
        n, count = sum(s.n_sought for s in searches), sum(s.n_sought - len(s.own) for s in searches)
        others = sum(s.n_sought_other for s in searches)
        by_chance = others - sum(len(s.other) for s in searches)
        about: dict[str, Any] = {"source": SOURCE, "unit": unit}
        if others:
            about |= {"chance": by_chance / others, "chance_is": CHANCE_IS}
        else:
            detail = {**detail, "why": "no other patient has different numbers, so chance is unknown"}
        return proportion(measure, count, n, over=unit, detail={**detail, "chance_count": by_chance}, **about)


class _Phrase:
    """One phrase to search for in its patient's notes."""

    __slots__ = ("_odds", "_text", "_words", "chance", "found")

    def __init__(self, forms: Sequence[str]) -> None:
        self._text = f" {' '.join(forms)} "
        self._odds = PhraseOdds.of(forms)
        # Longer words are rarer, so most notes are excluded by the first.
        self._words = sorted((f" {word} " for word in self._odds.words), key=len, reverse=True)
        self.found, self.chance = False, 0.0

    def search(self, note: ReleasedText) -> None:
        """Search one more note."""
        if not all(word in note.phrase for word in self._words):
            return
        self.found = self.found or self._text in note.phrase
        chance_here = self._odds.chance([note.forms.count(word) for word in self._odds.words], len(note.forms))
        self.chance += (
            chance_here - chance_here * self.chance
        )  # probability of at least one note; exact where it is smallest


class PhraseSearch:
    """One patient's phrases of one kind, searched for in all of their notes."""

    __slots__ = ("phrases",)

    def __init__(self, values: Sequence[str]) -> None:
        forms = {tuple(found) for value in values if len(found := words(value)) >= MIN_WORDS}
        self.phrases = [_Phrase(phrase) for phrase in sorted(forms)]

    def search(self, note: ReleasedText) -> None:
        """Search one note."""
        for phrase in self.phrases:
            phrase.search(note)

    @property
    def n_sought(self) -> int:
        """Return the number of phrases to search for."""
        return len(self.phrases)

    @staticmethod
    def finding(measure: str, searches: Sequence[PhraseSearch], detail: Mapping[str, Any], unit: str) -> Finding:
        """Return the finding on the share of phrases found, with its chance."""
        phrases = [phrase for search in searches for phrase in search.phrases]
        chances = np.array([phrase.chance for phrase in phrases])
        found = np.array([phrase.found for phrase in phrases])
        owners = np.repeat(np.arange(len(searches)), [search.n_sought for search in searches])
        about: dict[str, Any] = {
            "unit": unit,
            "source": PHRASE_SOURCE,
            "p": found_p(chances, found, owners),
            "p_is": P_IS,
        }
        about |= {"chance": float(chances.mean()), "chance_is": PHRASE_CHANCE}
        more = {**detail, "expected": float(chances.sum()), "one_refused_below": one_refused_below(chances)}
        return proportion(measure, int(found.sum()), len(phrases), over=unit, detail=more, **about)


KINDS = {"record_number": "record_numbers", "phone": "phones", "email": "emails", "address": "addresses"}
"""The field of a patient for each kind."""
OWN = frozenset({"attack.own_name", *(f"attack.own_{kind}" for kind in KINDS)})
NUMBERS = frozenset({"record_number", "phone"})
_Search = _NumberSearch | PhraseSearch


class OwnIdentifiers:
    """Search each patient's released notes for their own identifiers, and for another patient's."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        self._patients = patients
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._searches: dict[str, dict[str, _Search]] = {}

    def add(self, patient: str, note: ReleasedText) -> None:
        """Search one note of a source patient."""
        if patient not in self._patients:
            return
        if patient not in self._searches:
            own, other = self._patients[patient], self._patients[self._other[patient]]
            values = {kind: [getattr(one, field) for one in (own, other)] for kind, field in KINDS.items()}
            self._searches[patient] = {
                kind: _NumberSearch(*both) if kind in NUMBERS else PhraseSearch(both[0])
                for kind, both in values.items()
            }
        for search in self._searches[patient].values():
            search.search(note)

    def finding(self, kind: str) -> Finding:
        """Return the share of own identifiers of one kind that were found, with chance."""
        searches: list[Any] = [search[kind] for search in self._searches.values()]
        field = KINDS[kind]
        known = sum(len(set(getattr(self._patients[patient], field))) for patient in self._searches)
        detail = {"known": known, "in_feed": len(self._patients), "in_release": len(searches)}
        measure, unit = f"attack.own_{kind}", f"own {field.replace('_', ' ')}"
        if not any(search.n_sought for search in searches):
            why = "the patients of the release have no known identifier of sufficient length"
            return unmeasured(measure, why, detail=detail, unit=unit, source=SOURCE)
        return type(searches[0]).finding(measure, searches, detail, unit)


def identifiers(
    released: Corpus,
    patients: Mapping[str, Patient],
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    permutations: int = PERMUTATIONS,
    replicates: int = REPLICATES,
) -> list[Finding]:
    """Search released notes for own identifiers (four kinds), own full names, and other patients' full names.

    Streams the release once; memory grows with the number of patients, not of notes.

    Args:
        patients: the known-patient feed, by source patient id.
        crosswalk: source patient id of each released one; None if they are equal.

    Raises:
        InputError: a released patient is not in the crosswalk.
    Source: 45 CFR 164.514(b)(2) for the identifiers; `_full_names` for the tests of names.
    """
    rows_of = {patient: place for place, patient in enumerate(patients)}
    index = NameIndex([patient.name for patient in patients.values()], rng, replicates=replicates)
    names, own = NameScan(index, rows_of), OwnIdentifiers(patients, rng)
    notes = ((source_id(patient, crosswalk), text) for _, patient, text in rows(released))
    while batch := [(patient, ReleasedText(text)) for patient, text in islice(notes, BATCH)]:
        for patient, note in batch:
            own.add(patient, note)
        names.add([patient for patient, _ in batch], [note.forms for _, note in batch])
    return [*(own.finding(kind) for kind in KINDS), *names.findings(rng, permutations=permutations)]


def kept_identifiers(
    released: Corpus,
    patients: Mapping[str, Patient],
    keep: Sequence[str],
    *,
    crosswalk: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Count the notes of known patients whose kept columns contain an own identifier or the own full name.

    Empty if no column is kept. Kept values are released unchanged, so any hit is a disclosure.
    """
    n, count = 0, 0
    for batch in released.batches() if keep else ():
        columns = [batch.column(name).to_pylist() for name in keep]
        for owner, *values in zip(batch.column(PATIENT_ID).to_pylist(), *columns, strict=True):
            if owner is not None and (patient := patients.get(source_id(owner, crosswalk))) is not None:
                n += 1
                count += any(_mentions(ReleasedText(str(value)), patient) for value in values if value is not None)
    return [proportion(KEPT, count, n, over="notes", source=SOURCE)] if n else []


def _mentions(value: ReleasedText, patient: Patient) -> bool:
    """Return whether a value contains an identifier, or all parts of the name, of the patient."""
    numbers = (number for kind in NUMBERS for number in _numbers(getattr(patient, KINDS[kind])))
    phrases = (words(text) for kind in KINDS.keys() - NUMBERS for text in getattr(patient, KINDS[kind]))
    name, born = {*words(" ".join(patient.name))}, patient.birth_date
    return (
        (born is not None and value.has_number(born.strftime("%Y%m%d")))
        or any(value.has_number(number) for number in numbers)
        or any(len(own) >= MIN_WORDS and f" {' '.join(own)} " in value.phrase for own in phrases)
        or (len(name) >= MIN_WORDS and name <= {*value.forms})
    )
