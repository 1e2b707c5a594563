"""Search released notes for known identifiers: a patient's own record numbers, phones, e-mails,
addresses and names.

Numbers are compared by their digits, in any script and with the usual separators; their chance is
the same search with another patient's numbers. E-mails and addresses are compared by their words,
as adjacent lookup forms; their chance is that of the notes' words in random order. This is exact
for a release that orders the words of a note at random; otherwise it is approximate, and the gate
then allows no match at all. Values too short to distinguish from chance (numbers of fewer than 4
digits, addresses of one word) are counted but not tested.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks, not_in_crosswalk
from clinveil.attacks.text._full_names import (
    PERMUTATIONS,
    REPLICATES,
    NameIndex,
    NamesFound,
    other_names,
    own_names,
)
from clinveil.attacks.threats import tagged
from clinveil.core.finding import Finding
from clinveil.core.tokens import Kind, character_classes, words
from clinveil.core.types import Ints, SmallInts
from clinveil.corpus.corpus import PATIENT_ID, Corpus, rows
from clinveil.corpus.people import Patient, Patients
from clinveil.corpus.uniqueness import Hashes, hashes, places
from clinveil.scale import Map, serial
from clinveil.scale.pieces import each_batch, shared
from clinveil.stats.findings import proportion, unmeasured
from clinveil.stats.random_order import P_IS, PhraseOdds, found_p, one_refused_below

MIN_DIGITS = 4
LONG_NUMBER = 7
_NO_DIGITS = re.compile("[\x00-/:-\x7f]+")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_SEPARATOR = r"[\s().\-/+]{0,3}"
SOURCE = "45 CFR 164.514(b)(2); gate of own identifiers: none"
CHANCE_IS = "another patient's numbers, searched for in the same notes"
CONTROL_IS = "the same search in the source notes"
MIN_WORDS = 2
KEPT = "attack.kept_own_identifiers"
PHRASE_CHANCE = "the words of each note in random order"
PHRASE_SOURCE = (
    "45 CFR 164.514(b)(2); chance: Feller 1968, chapter 4; P: Hoeffding 1956, Anderson & Samuels"
    " 1967"
)


@attacks.register("identifiers")
class Identifiers(Attack):
    """Search released notes for patients' own identifiers and full names, and for other patients'
    names.
    """

    needs = frozenset({"released", "known"})
    optional = frozenset({"original"})
    on_release = True
    sees_all = True
    order = 600

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run `identifiers`; with the source notes, the same search in them is the control."""
        assert context.released is not None and context.known is not None
        how: Any = {"over": context.over, "scratch": context.scratch}
        ids: Any = {"crosswalk": context.patients, "keep": context.keep}
        made = identifiers(context.released, context.known, rng, **ids, **how)
        found = [tagged(f, "recipient", "own identifiers") if f.measure in OWN else f for f in made]
        if context.original is None:
            return found
        in_source = {
            f.measure: f.value for f in identifiers(context.original, context.known, rng, **how)
        }
        controls = [
            (f, in_source.get(f.measure), f.measure.startswith("attack.own_")) for f in found
        ]
        # The source must contain own identifiers, but not others' names.
        return [
            (
                f
                if value is None
                else replace(
                    f,
                    control=value,
                    control_is=CONTROL_IS,
                    control_kind="positive" if own else None,
                )
            )
            for f, value, own in controls
        ]


def digits_of(text: str) -> str:
    """Return the digits of a text, in any script, as 0 to 9."""
    return "".join(map(_digit, _NO_DIGITS.sub("", text)))


@lru_cache(maxsize=4096)
def _digit(character: str, other: str = "") -> str:
    """Return a digit of any script as 0 to 9, and `other` for other characters."""
    return str(unicodedata.digit(character, other))


class ReleasedText:
    """One released note, in the forms that are searched."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.digits = digits_of(text)
        self.forms = words(text)
        self.phrase = f" {' '.join(self.forms)} "

    @cached_property
    def _plain(self) -> str:
        """The text with digits of any script as 0 to 9, and without ignorable characters."""
        classes = character_classes()
        ignorable = int(Kind.IGNORABLE)

        def plain(match: re.Match[str]) -> str:
            return "" if classes[ord(match[0])] == ignorable else _digit(match[0], match[0])

        return _NOT_ASCII.sub(plain, unicodedata.normalize("NFKC", self._text))

    def has_number(self, digits: str) -> bool:
        """Return whether the digits occur with usual separators; short numbers only as complete
        numbers.
        """
        return digits in self.digits and _number(digits).search(self._plain) is not None


@lru_cache(maxsize=4096)
def _number(digits: str) -> re.Pattern[str]:
    pattern = _SEPARATOR.join(digits)
    return re.compile(pattern if len(digits) >= LONG_NUMBER else rf"(?<!\d){pattern}(?!\d)")


def _numbers(values: Sequence[str]) -> list[str]:
    return sorted({digits for value in values if len(digits := digits_of(value)) >= MIN_DIGITS})


@dataclass(frozen=True)
class Sought:
    """The identifiers and patients of a search; tasks map its arrays into memory.

    Attributes:
        patients: the feed. names: their full names. other: (n_patients,) row of another patient,
            for the chance.
        ids: (n,) ascending hashes of released patient ids. rows: (n,) their rows in the feed, or
            -1.
        complete: whether every released patient is among them.
    """

    patients: Mapping[str, Patient] = field(repr=False)
    names: NameIndex = field(repr=False)
    other: Ints
    ids: Hashes
    rows: Ints
    complete: bool

    @classmethod
    def of(
        cls,
        patients: Mapping[str, Patient],
        crosswalk: Mapping[str, str] | None,
        rng: Generator,
        n: int,
    ) -> Sought:
        """Return what is searched for, with `n` sets of shuffled names; `crosswalk` as in
        `identifiers`.
        """
        names = NameIndex([patient.name for patient in patients.values()], rng, replicates=n)
        order = rng.permutation(len(patients))
        feed = hashes(patients)
        by_id = np.argsort(feed)
        other = np.zeros_like(order)
        other[order] = np.roll(order, -1)
        if crosswalk is None:
            return cls(patients, names, other, feed[by_id], by_id, complete=False)
        ids = hashes(crosswalk)
        place = places(feed[by_id], hashes(crosswalk.values()))
        rows = np.append(by_id, -1)[place]
        ascending = np.argsort(ids)
        return cls(patients, names, other, ids[ascending], rows[ascending], complete=True)

    def rows_of(self, hashed: Hashes) -> Ints:
        """Return the row in the feed, or -1, of each released patient. Raises InputError like
        `source_id`.
        """
        place = places(self.ids, hashed)
        if self.complete and (place < 0).any():
            raise not_in_crosswalk()
        return np.append(self.rows, -1)[place]

    def people(self, rows: Ints) -> list[Patient]:
        """Return the patients of some rows of the feed."""
        if isinstance(self.patients, Patients):
            return self.patients.take(rows)
        return list(map([*self.patients.values()].__getitem__, rows.tolist()))


class _OwnSearch:
    """Search notes of one patient for their own identifiers, and for another patient's numbers.

    Attributes:
        counts: (kinds, 3) known values, own values that are sought, and another patient's.
        numbers: (kind, whether it is own, index) of numbers not yet found. phrases: (kind, index)
            of phrases.
    """

    def __init__(self, own: Patient, other: Patient) -> None:
        self.counts = list[tuple[int, int, int]]()
        self.numbers = dict[_Number, str]()
        self.phrases = dict[tuple[int, int], tuple[Sequence[str], Sequence[str]]]()
        for kind, name in enumerate(KINDS):
            values, theirs = (getattr(one, KINDS[name]) for one in (own, other))
            if name in NUMBERS:
                mine = _numbers(values)
                # A number of both (a family's phone) would count as the other's.
                strange = [number for number in _numbers(theirs) if number not in mine]
                self.numbers |= {(kind, True, i): number for i, number in enumerate(mine)}
                self.numbers |= {(kind, False, i): number for i, number in enumerate(strange)}
                sought = len(mine), len(strange)
            else:
                phrases = sorted(
                    {tuple(found) for value in values if len(found := words(value)) >= MIN_WORDS}
                )
                # Longer words are rarer, so most notes are excluded by the first.
                rare_first = (
                    sorted((f" {word} " for word in set(phrase)), key=len, reverse=True)
                    for phrase in phrases
                )
                self.phrases |= {
                    (kind, i): pair for i, pair in enumerate(zip(phrases, rare_first, strict=True))
                }
                sought = len(phrases), 0
            self.counts.append((len(set(values)), *sought))

    def search(self, note: ReleasedText) -> tuple[list[_Number], list[_Phrase]]:
        """Return the numbers found for the first time, and the phrases that a random order of the
        note can contain.
        """
        numbers = [key for key, number in self.numbers.items() if note.has_number(number)]
        for key in numbers:
            del self.numbers[key]
        phrases = []
        for (kind, i), (forms, rare_first) in self.phrases.items():
            if all(word in note.phrase for word in rare_first):
                odds = PhraseOdds.of(forms)
                chance = odds.chance(
                    [note.forms.count(word) for word in odds.words], len(note.forms)
                )
                phrases.append((kind, i, f" {' '.join(forms)} " in note.phrase, chance))
        return numbers, phrases


_Number = tuple[int, bool, int]  # kind, whether it is the patient's own, index
# Kind, index, whether it occurs, its chance in a random order of the note.
_Phrase = tuple[int, int, bool, float]


@dataclass(frozen=True)
class Found:
    """Matches in a batch of notes.

    Attributes:
        owners: (k,) hashes of the patients, in order of their first notes. rows: (k,) their rows in
            the feed, or -1.
        notes: (k, 2) notes of each patient, and those with the full name of another patient.
        counts: (k, kinds, 3) as in `_OwnSearch`. numbers, phrases: with the row of the patient.
        names: the names found. kept: notes of known patients, and those with an own identifier in a
            kept column.
    """

    owners: Hashes
    rows: Ints
    notes: Ints
    counts: SmallInts
    numbers: list[tuple[int, _Number]] = field(repr=False)
    phrases: list[tuple[int, _Phrase]] = field(repr=False)
    names: NamesFound = field(repr=False)
    kept: tuple[int, int]


def search_batch(sought: Callable[[], Sought], keep: Sequence[str], batch: pa.RecordBatch) -> Found:
    """Search a batch of released notes. Raises InputError if a patient is not in the crosswalk."""
    search = sought()
    notes = [*rows([batch])]
    hashed = hashes(note.patient_id for note in notes)
    feed, (first, number) = search.rows_of(hashed), _by_first(hashed)
    known = feed[first][feed[first] >= 0]
    both = zip(search.people(known), search.people(search.other[known]), strict=True)
    own = {row: _OwnSearch(*pair) for row, pair in zip(known.tolist(), both, strict=True)}
    counts = np.zeros((first.size, len(KINDS), 3), dtype=np.int32)
    if own:
        counts[feed[first] >= 0] = [one.counts for one in own.values()]
    numbers = list[tuple[int, _Number]]()
    phrases = list[tuple[int, _Phrase]]()
    forms = list[Sequence[str]]()
    for row, note in zip(feed.tolist(), notes, strict=True):
        text = ReleasedText(note.text)
        forms.append(text.forms)
        if row >= 0:
            of_note = own[row].search(text)
            numbers += [(row, hit) for hit in of_note[0]]
            phrases += [(row, hit) for hit in of_note[1]]
    names = search.names.search(feed, forms)
    of_notes = np.stack(
        [np.bincount(some, minlength=first.size) for some in (number, number[names.others])], axis=1
    )
    kept = _kept(search, keep, batch) if keep else (0, 0)
    return Found(hashed[first], feed[first], of_notes, counts, numbers, phrases, names, kept)


def _by_first(values: Hashes) -> tuple[Ints, Ints]:
    """Number distinct values in the order of their first places; return these places, and the
    number of each value.
    """
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[number]


def _kept(search: Sought, keep: Sequence[str], batch: pa.RecordBatch) -> tuple[int, int]:
    """Return the notes of known patients, and those with an own identifier or the own full name in
    a kept column.
    """
    owned = batch.filter(batch.column(PATIENT_ID).is_valid())
    feed = search.rows_of(hashes(owned.column(PATIENT_ID).to_pylist()))
    values = [
        row
        for row, place in zip(owned.select(list(keep)).to_pylist(), feed, strict=True)
        if place >= 0
    ]
    people = search.people(feed[feed >= 0])
    named = (
        any(
            _mentions(ReleasedText(str(value)), patient)
            for value in of_note.values()
            if value is not None
        )
        for of_note, patient in zip(values, people, strict=True)
    )
    return len(people), sum(named)


def _findings(
    search: Sought, batches: Sequence[Found], rng: Generator, permutations: int
) -> Iterator[Finding]:
    """Yield the findings on all batches, which are in the order of the notes."""
    owners, rows, notes, counts = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("owners", "rows", "notes", "counts")
    )
    first, number = _by_first(owners)
    totals = np.zeros((first.size, 2), dtype=np.int64)
    np.add.at(totals, number, notes)
    is_known = rows[first] >= 0
    present = rows[first][is_known]
    counts = counts[first][is_known]
    for kind, name in enumerate(KINDS):
        known, own, other = counts[:, kind].T
        measure = f"attack.own_{name}"
        unit = f"own {KINDS[name].replace('_', ' ')}"
        detail = {
            "known": int(known.sum()),
            "in_feed": len(search.patients),
            "in_release": present.size,
        }
        about: dict[str, Any] = {"unit": unit, "source": SOURCE, "detail": detail}
        if not own.any():
            why = "the patients of the release have no known identifier of sufficient length"
            yield unmeasured(measure, why, **about)
        elif name in NUMBERS:
            found = {
                (row, key) for batch in batches for row, key in batch.numbers if key[0] == kind
            }
            yield _of_numbers(
                measure,
                [mine for _, (_, mine, _) in found],
                int(own.sum()),
                int(other.sum()),
                about,
            )
        else:
            starts = dict(zip(present.tolist(), (np.cumsum(own) - own).tolist(), strict=True))
            hits = [
                (starts[row] + hit[1], *hit[2:])
                for b in batches
                for row, hit in b.phrases
                if hit[0] == kind
            ]
            yield _of_phrases(measure, hits, np.repeat(np.arange(own.size), own), about)
    names = [batch.names for batch in batches]
    yield own_names(search.names, present, names, rng, permutations)
    yield other_names(search.names, names, totals)
    n, count = map(sum, zip(*(batch.kept for batch in batches), strict=True))
    if n:
        yield proportion(KEPT, count, n, over="notes", source=SOURCE)


def _of_numbers(
    measure: str, hits: Sequence[bool], n: int, others: int, about: dict[str, Any]
) -> Finding:
    """Return the share of own numbers that were found, with that of another patient's numbers as
    chance.

    Args:
        hits: for each number found, whether it is the patient's own. n, others: numbers sought.
    """
    count = sum(hits)
    by_chance = len(hits) - sum(hits)
    if others:
        about |= {"chance": by_chance / others, "chance_is": CHANCE_IS}
    else:
        about["detail"]["why"] = "no other patient has different numbers, so chance is unknown"
    about["detail"]["chance_count"] = by_chance
    return proportion(measure, count, n, over=about["unit"], **about)


def _of_phrases(
    measure: str, hits: Sequence[tuple[int, bool, float]], owners: Ints, about: dict[str, Any]
) -> Finding:
    """Return the share of own phrases that were found, with the chance of random orders of the
    notes' words.

    Args:
        hits: index of a phrase, whether a note has it, and its chance in that note. owners: (n,) of
            the phrases.
    """
    chances = np.zeros(owners.size)
    found = np.zeros(owners.size, dtype=bool)
    for at, occurs, chance in hits:
        found[at] |= occurs
        # Of at least one note; exact where it is smallest.
        chances[at] += chance - chance * chances[at]
    about |= {"source": PHRASE_SOURCE, "p": found_p(chances, found, owners), "p_is": P_IS}
    about |= {"chance": float(chances.mean()), "chance_is": PHRASE_CHANCE}
    about["detail"] |= {
        "expected": float(chances.sum()),
        "one_refused_below": one_refused_below(chances),
    }
    return proportion(measure, int(found.sum()), found.size, over=about["unit"], **about)


KINDS = {
    "record_number": "record_numbers",
    "phone": "phones",
    "email": "emails",
    "address": "addresses",
}
"""The field of a patient for each kind."""
OWN = frozenset({"attack.own_name", *(f"attack.own_{kind}" for kind in KINDS)})
NUMBERS = frozenset({"record_number", "phone"})


def identifiers(
    released: Corpus,
    patients: Mapping[str, Patient],
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    permutations: int = PERMUTATIONS,
    replicates: int = REPLICATES,
    over: Map = serial,
    scratch: Path | None = None,
) -> list[Finding]:
    """Search released notes for own identifiers (four kinds), own full names, and other patients'
    full names.

    Reads the release once; memory grows with the number of patients, not of notes.

    Args:
        patients: the known-patient feed, by source patient id.
        crosswalk: source patient id of each released one; None if they are equal.
        keep: columns that are searched for the patient's own identifiers and full name; any hit is
            a disclosure.
        over: map that searches batches, or part files. scratch: private folder for what its workers
            share.

    Raises:
        InputError: a released patient is not in the crosswalk. Incomplete: that of a part file.
    Source: 45 CFR 164.514(b)(2) for the identifiers; `_full_names` for the tests of names.
    """
    sought = Sought.of(patients, crosswalk, rng, replicates)
    with TemporaryDirectory(
        prefix="identifiers", dir=scratch, ignore_cleanup_errors=True
    ) as folder:
        opened = (lambda: sought) if over is serial else shared(sought, Path(folder, "sought"))
        batches = list(each_batch(over, partial(search_batch, opened, tuple(keep)), released))
    return list(_findings(sought, batches, rng, permutations))


def _mentions(value: ReleasedText, patient: Patient) -> bool:
    """Return whether a value contains an identifier, or all parts of the name, of the patient."""
    numbers, phrases = _OwnSearch(patient, patient).search(value)
    name = {*words(" ".join(patient.name))}
    born = patient.birth_date
    return (
        (born is not None and value.has_number(born.strftime("%Y%m%d")))
        or len(numbers) > 0
        or any(occurs for _, _, occurs, _ in phrases)
        or (len(name) >= MIN_WORDS and name <= {*value.forms})
    )
