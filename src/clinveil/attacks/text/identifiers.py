"""Search released notes for known identifiers: a patient's own record numbers, phones, e-mails,
addresses and names.

Numbers are compared by their digits, in any script and with the usual separators. E-mails and
addresses are compared by their words, as adjacent lookup forms. The chance is the same search with
another patient's identifiers. Values too short to distinguish from chance (numbers of fewer than 4
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

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, not_in_crosswalk
from clinveil.attacks.text._full_names import (
    PERMUTATIONS,
    REPLICATES,
    FullNameIndex,
    NamesFound,
    other_names,
    own_names,
)
from clinveil.attacks.threats import tagged
from clinveil.core import Finding, Ints, Kind, KnownList, SmallInts, character_classes, words
from clinveil.corpus import (
    PATIENT_ID,
    Corpus,
    Hashes,
    Patient,
    Patients,
    hashes,
    positions_of,
    rows,
)
from clinveil.scale import Map, each_batch, serial, shared
from clinveil.stats import HitCounts, MeasureSpec

MIN_DIGITS = 4
LONG_NUMBER = 7
_NO_DIGITS = re.compile("[\x00-/:-\x7f]+")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_SEPARATOR = r"[\s().\-/+]{0,3}"
SOURCE = "45 CFR 164.514(b)(2); gate of own identifiers: none"
CHANCE_IS = "another patient's identifiers, searched for in the same notes"
CONTROL_IS = "the same search in the source notes"
MIN_WORDS = 2
KEPT = "attack.kept_own_identifiers"


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
        in_release = identifiers(
            context.released,
            context.known,
            rng,
            crosswalk=context.patients,
            keep=context.keep,
            executor=context.executor,
            scratch=context.scratch,
        )
        found = [
            tagged(f, "recipient", "own identifiers") if f.measure in OWN else f for f in in_release
        ]
        if context.original is None:
            return found
        of_source = identifiers(
            context.original, context.known, rng, executor=context.executor, scratch=context.scratch
        )
        in_source = {f.measure: f.value for f in of_source}
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

    def has_phrase(self, phrase: str) -> bool:
        """Return whether the words of a phrase, separated by single spaces, occur in a row."""
        return f" {phrase} " in self.phrase


@lru_cache(maxsize=4096)
def _number(digits: str) -> re.Pattern[str]:
    pattern = _SEPARATOR.join(digits)
    return re.compile(pattern if len(digits) >= LONG_NUMBER else rf"(?<!\d){pattern}(?!\d)")


def _numbers(values: Sequence[str]) -> list[str]:
    return sorted({digits for value in values if len(digits := digits_of(value)) >= MIN_DIGITS})


def _phrases(values: Sequence[str]) -> list[str]:
    phrases = map(words, values)
    return sorted({" ".join(forms) for forms in phrases if len(forms) >= MIN_WORDS})


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
    names: FullNameIndex = field(repr=False)
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
        names = FullNameIndex([patient.name for patient in patients.values()], rng, replicates=n)
        order = rng.permutation(len(patients))
        feed = hashes(patients)
        by_id = np.argsort(feed)
        other = np.zeros_like(order)
        other[order] = np.roll(order, -1)
        if crosswalk is None:
            return cls(patients, names, other, feed[by_id], by_id, complete=False)
        ids = hashes(crosswalk)
        place = positions_of(feed[by_id], hashes(crosswalk.values()))
        rows = np.append(by_id, -1)[place]
        ascending = np.argsort(ids)
        return cls(patients, names, other, ids[ascending], rows[ascending], complete=True)

    def rows_of(self, hashed: Hashes) -> Ints:
        """Return the row in the feed, or -1, of each released patient. Raises InputError like
        `source_id`.
        """
        place = positions_of(self.ids, hashed)
        if self.complete and (place < 0).any():
            raise not_in_crosswalk()
        return np.append(self.rows, -1)[place]

    def people(self, rows: Ints) -> list[Patient]:
        """Return the patients of some rows of the feed."""
        if isinstance(self.patients, Patients):
            return self.patients.take(rows)
        return list(map([*self.patients.values()].__getitem__, rows.tolist()))


Hit = tuple[int, bool, int]
"""An identifier found: its kind, whether it is the patient's own, and its index."""


class _OwnSearch:
    """Search notes of one patient for their own identifiers, and for another patient's.

    Attributes:
        counts: (kinds, 3) known values, own values that are sought, and another patient's.
        missing: identifiers not yet found.
    """

    def __init__(self, patient: Patient, other: Patient) -> None:
        self.counts = list[tuple[int, int, int]]()
        self.missing = dict[Hit, str]()
        for kind, (name, attribute) in enumerate(KINDS.items()):
            values: Sequence[str] = getattr(patient, attribute)
            normalised = _numbers if name in NUMBERS else _phrases
            mine = normalised(values)
            # An identifier of both (a family's phone) would count as the other's.
            theirs = [one for one in normalised(getattr(other, attribute)) if one not in mine]
            self.missing |= {(kind, True, i): value for i, value in enumerate(mine)}
            self.missing |= {(kind, False, i): value for i, value in enumerate(theirs)}
            self.counts.append((len(set(values)), len(mine), len(theirs)))

    def search(self, note: ReleasedText) -> list[Hit]:
        """Return the identifiers found for the first time."""
        hits = [hit for hit, value in self.missing.items() if _occurs(note, hit[0], value)]
        for hit in hits:
            del self.missing[hit]
        return hits


def _occurs(note: ReleasedText, kind: int, value: str) -> bool:
    return note.has_number(value) if kind in _NUMBER_KINDS else note.has_phrase(value)


@dataclass(frozen=True)
class IdentifierMatches:
    """Matches in a batch of notes.

    Attributes:
        owners: (k,) hashes of the patients, in order of their first notes. rows: (k,) their rows in
            the feed, or -1.
        notes: (k, 2) notes of each patient, and those with the full name of another patient.
        counts: (k, kinds, 3) as in `_OwnSearch`. hits: with the row of the patient.
        names: the names found. kept: notes of known patients, and those with an own identifier in a
            kept column.
    """

    owners: Hashes
    rows: Ints
    notes: Ints
    counts: SmallInts
    hits: list[tuple[int, Hit]] = field(repr=False)
    names: NamesFound = field(repr=False)
    kept: tuple[int, int]


def search_batch(
    sought: Callable[[], Sought], keep: Sequence[str], batch: pa.RecordBatch
) -> IdentifierMatches:
    """Search a batch of released notes. Raises InputError if a patient is not in the crosswalk."""
    search = sought()
    notes = [*rows([batch])]
    hashed = hashes(note.patient_id for note in notes)
    feed = search.rows_of(hashed)
    first, number = _by_first(hashed)
    known = feed[first][feed[first] >= 0]
    both = zip(search.people(known), search.people(search.other[known]), strict=True)
    own = {row: _OwnSearch(*pair) for row, pair in zip(known.tolist(), both, strict=True)}
    counts = np.zeros((first.size, len(KINDS), 3), dtype=np.int32)
    if own:
        counts[feed[first] >= 0] = [one.counts for one in own.values()]
    hits = list[tuple[int, Hit]]()
    forms = list[Sequence[str]]()
    for row, note in zip(feed.tolist(), notes, strict=True):
        text = ReleasedText(note.text)
        forms.append(text.forms)
        if row >= 0:
            hits += [(row, hit) for hit in own[row].search(text)]
    names = search.names.search(feed, forms)
    of_notes = np.stack(
        [np.bincount(some, minlength=first.size) for some in (number, number[names.others])], axis=1
    )
    kept = _kept(search, keep, batch) if keep else (0, 0)
    return IdentifierMatches(hashed[first], feed[first], of_notes, counts, hits, names, kept)


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
    search: Sought, batches: Sequence[IdentifierMatches], rng: Generator, permutations: int
) -> Iterator[Finding]:
    """Yield the findings on all batches, which are in the order of the notes."""
    owners = np.concatenate([batch.owners for batch in batches])
    rows = np.concatenate([batch.rows for batch in batches])
    notes = np.concatenate([batch.notes for batch in batches])
    counts = np.concatenate([batch.counts for batch in batches])
    first, number = _by_first(owners)
    totals = np.zeros((first.size, 2), dtype=np.int64)
    np.add.at(totals, number, notes)
    is_known = rows[first] >= 0
    present = rows[first][is_known]
    counts = counts[first][is_known]
    found = {entry for batch in batches for entry in batch.hits}
    for kind, (name, attribute) in enumerate(KINDS.items()):
        known, own, others = (int(total) for total in counts[:, kind].sum(axis=0))
        measure = f"attack.own_{name}"
        unit = f"own {attribute.replace('_', ' ')}"
        spec = MeasureSpec(measure=measure, over=unit, source=SOURCE, chance_is=CHANCE_IS)
        if own:
            hits = [mine for _, (of_kind, mine, _) in found if of_kind == kind]
            finding = _own(spec, hits, n=own, others=others, known=known)
        else:
            why = "the patients of the release have no known identifier of sufficient length"
            finding = spec.missing(why, numbers={"known": known})
        in_feed = len(search.patients)
        yield replace(finding, known_list=KnownList(in_feed=in_feed, in_release=present.size))
    names = [batch.names for batch in batches]
    yield own_names(search.names, present, names, rng, permutations)
    yield other_names(search.names, names, totals)
    n, count = map(sum, zip(*(batch.kept for batch in batches), strict=True))
    if n:
        spec = MeasureSpec(measure=KEPT, over="notes", source=SOURCE)
        yield spec.share(HitCounts(hits=count, tries=n))


def _own(spec: MeasureSpec, hits: Sequence[bool], *, n: int, others: int, known: int) -> Finding:
    """Return the share of own identifiers that were detected, with that of another patient's as
    chance.

    Args:
        hits: for each identifier detected, whether it is the patient's own. n, others: identifiers
            sought. known: values on the list.
    """
    count = sum(hits)
    by_chance = len(hits) - count
    chance = by_chance / others if others else None
    numbers = {"known": known, "chance_count": by_chance}
    finding = spec.share(HitCounts(hits=count, tries=n, chance=chance), numbers=numbers)
    why = "" if others else "no other patient has different values, so chance is unknown"
    return replace(finding, why=why)


KINDS = {
    "record_number": "record_numbers",
    "phone": "phones",
    "email": "emails",
    "address": "addresses",
}
"""The field of a patient for each kind."""
OWN = frozenset({"attack.own_name", *(f"attack.own_{kind}" for kind in KINDS)})
NUMBERS = frozenset({"record_number", "phone"})
_NUMBER_KINDS = frozenset(kind for kind, name in enumerate(KINDS) if name in NUMBERS)


def identifiers(
    released: Corpus,
    patients: Mapping[str, Patient],
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    permutations: int = PERMUTATIONS,
    replicates: int = REPLICATES,
    executor: Map = serial,
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
        executor: map that searches batches, or part files.
        scratch: private folder for what its workers share.

    Raises:
        InputError: a released patient is not in the crosswalk. Incomplete: that of a part file.
    Source: 45 CFR 164.514(b)(2) for the identifiers; `_full_names` for the tests of names.
    """
    sought = Sought.of(patients, crosswalk, rng, replicates)
    with TemporaryDirectory(
        prefix="identifiers", dir=scratch, ignore_cleanup_errors=True
    ) as folder:
        opened = (lambda: sought) if executor is serial else shared(sought, Path(folder, "sought"))
        batches = list(each_batch(executor, partial(search_batch, opened, tuple(keep)), released))
    return list(_findings(sought, batches, rng, permutations))


def _mentions(value: ReleasedText, patient: Patient) -> bool:
    """Return whether a value contains an identifier, or all parts of the name, of the patient."""
    name = {*words(" ".join(patient.name))}
    born = patient.birth_date
    return (
        (born is not None and value.has_number(born.strftime("%Y%m%d")))
        or len(_OwnSearch(patient, patient).search(value)) > 0
        or (len(name) >= MIN_WORDS and name <= {*value.forms})
    )
