"""Known identifiers in released notes: a patient's own record numbers, phones, e-mails, addresses, and names.

Numbers are compared by their digits, any script, any usual separators. E-mails and addresses are compared by their
words, as adjacent lookup forms. What is too short to tell from chance (numbers of fewer than 4 digits, addresses of one
word) is not tested, only counted. Chance is another patient's identifiers, looked for in the same way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks, source_id
from clinveil.attacks.text._full_names import PERMUTATIONS, REPLICATES, NameIndex, NameScan
from clinveil.core.finding import ControlKind, Finding
from clinveil.core.tokens import Kind, character_classes, words
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows
from clinveil.stats.findings import proportion, unmeasured

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

MIN_DIGITS, MIN_WORDS = 4, 2
BATCH = 2_000  # notes that are searched for names at once
LONG_NUMBER = 7
_ASCII_DIGITS = re.compile("[0-9]+")
_SEPARATOR = r"[\s().\-/+]{0,3}"
SOURCE = "45 CFR 164.514(b)(2); gate of own identifiers: none"
CHANCE_IS = "another patient's identifiers, looked for in the same notes"


@attacks.register("identifiers")
class Identifiers(Attack):
    """Look for patients' own identifiers and full names, and for other patients' names, in released notes."""

    needs = frozenset({"released", "known"})
    words = words_beside(__file__)
    on_release = True
    sees_all = True
    order = 600

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """As `identifiers`; where the source is at hand, what the same search finds there is the control."""
        assert context.released is not None and context.known is not None
        found = identifiers(context.released, context.known, rng, crosswalk=context.patients)
        if context.original is None:
            return found
        in_source = {f.measure: f.value for f in identifiers(context.original, context.known, rng)}
        return [_controlled(finding, in_source[finding.measure]) for finding in found]


def _controlled(finding: Finding, in_source: float | None) -> Finding:
    if in_source is None:
        return finding
    # Own identifiers must stand in the source; others' names need not.
    kind: ControlKind | None = "positive" if finding.measure.startswith("attack.own_") else None
    return replace(finding, control=in_source, control_is="the same search in the source notes", control_kind=kind)


def digits_of(text: str) -> str:
    """The digits of a text, of any script, as 0 to 9."""
    if text.isascii():
        return "".join(_ASCII_DIGITS.findall(text))
    return "".join(str(unicodedata.digit(c)) for c in text if unicodedata.digit(c, None) is not None)


def _plain_digits(text: str) -> str:
    """The text with digits of any script as 0 to 9, and without ignorable characters."""
    if text.isascii():
        return text
    classes = character_classes()
    kept = (c for c in unicodedata.normalize("NFKC", text) if classes[ord(c)] != Kind.IGNORABLE)
    return "".join(str(unicodedata.digit(c)) if unicodedata.digit(c, None) is not None else c for c in kept)


class ReleasedText:
    """One released note, in the forms that identifiers are looked for in."""

    __slots__ = ("_text", "digits", "forms", "phrase")

    def __init__(self, text: str) -> None:
        self._text = text
        self.digits = digits_of(text)
        self.forms = words(text)
        self.phrase = f" {' '.join(self.forms)} "

    def has_number(self, digits: str) -> bool:
        """Whether the digits stand together, with usual separators; short numbers only as whole numbers."""
        return digits in self.digits and _number(digits).search(_plain_digits(self._text)) is not None

    def has_phrase(self, phrase: str) -> bool:
        """Whether the words stand together."""
        return phrase in self.phrase


@lru_cache(maxsize=4096)
def _number(digits: str) -> re.Pattern[str]:
    pattern = _SEPARATOR.join(digits)
    return re.compile(pattern if len(digits) >= LONG_NUMBER else rf"(?<!\d){pattern}(?!\d)")


def _numbers(values: Sequence[str]) -> list[str]:
    return sorted({digits for value in values if len(digits := digits_of(value)) >= MIN_DIGITS})


def _phrases(values: Sequence[str]) -> list[str]:
    return sorted({f" {' '.join(forms)} " for value in values if len(forms := words(value)) >= MIN_WORDS})


KINDS: dict[str, tuple[str, Callable[[Sequence[str]], list[str]], Callable[[ReleasedText, str], bool]]] = {
    "record_number": ("record_numbers", _numbers, ReleasedText.has_number),
    "phone": ("phones", _numbers, ReleasedText.has_number),
    "email": ("emails", _phrases, ReleasedText.has_phrase),
    "address": ("addresses", _phrases, ReleasedText.has_phrase),
}
"""Of each kind the field of a patient, the forms that its values are looked for in, and whether a note has one."""


class _Search:
    """One patient's identifiers of one kind that are still to be found in their notes, and another patient's."""

    def __init__(self, own: list[str], other: list[str]) -> None:
        self.own, self.other = own, other
        self.sought, self.sought_other = len(own), len(other)

    def look(self, note: ReleasedText, stands: Callable[[ReleasedText, str], bool]) -> None:
        """Look through one note for what is still missing."""
        self.own = [form for form in self.own if not stands(note, form)]
        self.other = [form for form in self.other if not stands(note, form)]


class OwnIdentifiers:
    """Looks for each patient's own identifiers, and for another patient's, in their released notes."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        self._patients = patients
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._searches: dict[str, dict[str, _Search]] = {}

    def add(self, patient: str, note: ReleasedText) -> None:
        """Look through one note of a source patient."""
        if patient not in self._patients:
            return
        if patient not in self._searches:
            self._searches[patient] = self._begin(patient)
        for kind, search in self._searches[patient].items():
            search.look(note, KINDS[kind][2])

    def _begin(self, patient: str) -> dict[str, _Search]:
        own, other = self._patients[patient], self._patients[self._other[patient]]
        forms = {kind: [of(getattr(one, field)) for one in (own, other)] for kind, (field, of, _) in KINDS.items()}
        # What both share (a family's address) would be found as the other's while it is their own.
        return {kind: _Search(a, [form for form in b if form not in a]) for kind, (a, b) in forms.items()}

    def finding(self, kind: str) -> Finding:
        """The share of own identifiers of one kind that were found; it must be 0."""
        searches, field = [search[kind] for search in self._searches.values()], KINDS[kind][0]
        known = sum(len(set(getattr(self._patients[patient], field))) for patient in self._searches)
        n, count = sum(s.sought for s in searches), sum(s.sought - len(s.own) for s in searches)
        others = sum(s.sought_other for s in searches)
        by_chance = others - sum(len(s.other) for s in searches)
        detail: dict[str, Any] = {"known": known, "in_feed": len(self._patients), "in_release": len(searches)}
        about: dict[str, Any] = {"source": SOURCE, "unit": "identifiers"}
        if not n:
            why = "none that is long enough to look for is known of the patients in the release"
            return unmeasured(f"attack.own_{kind}", why, detail=detail, **about)
        if others:
            about |= {"chance": by_chance / others, "chance_is": CHANCE_IS}
        else:
            detail["why"] = "no other patient's differs, so there is no chance to count"
        detail["chance_count"] = by_chance
        return proportion(f"attack.own_{kind}", count, n, over="identifiers", detail=detail, **about)


def identifiers(
    released: Corpus,
    patients: Mapping[str, Patient],
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    permutations: int = PERMUTATIONS,
    replicates: int = REPLICATES,
) -> list[Finding]:
    """Own identifiers (four kinds), own full names, and other patients' full names in the released notes.

    Streams the release once; memory grows with the patients, not with the notes.

    Args:
        patients: the known-patient feed, by source patient id.
        crosswalk: source patient id of each released one; None where they are equal.

    Raises:
        InputError: a released patient that the crosswalk does not know.
    Source: 45 CFR 164.514(b)(2) for what identifies; `_full_names` for the tests of names.
    """
    places = {patient: place for place, patient in enumerate(patients)}
    index = NameIndex([patient.name for patient in patients.values()], rng, replicates=replicates)
    names, own = NameScan(index, places), OwnIdentifiers(patients, rng)
    notes = ((source_id(patient, crosswalk), text) for _, patient, text in rows(released))
    while batch := [(patient, ReleasedText(text)) for patient, text in islice(notes, BATCH)]:
        for patient, note in batch:
            own.add(patient, note)
        names.add([patient for patient, _ in batch], [note.forms for _, note in batch])
    return [*(own.finding(kind) for kind in KINDS), *names.findings(rng, permutations=permutations)]
