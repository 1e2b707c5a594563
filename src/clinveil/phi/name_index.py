"""Name index: a name detected once is searched for, in all its variants, in all notes of the same
patient.

Names with a score of `SURE` or more are searched for word by word: exact, partial, nickname,
misspelling, user name, initials. A name that is also an ordinary word or an eponym (White, May,
Foley) is accepted only next to another name, before a verb such as "reports", or capitalised inside
a sentence and not before a noun. People named with a title or a
credential, or as signers, are staff: their unambiguous, capitalised names are searched for in the
notes of all patients.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, filterfalse

import numpy as np

from clinveil.core import Span
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, name_form, word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names.cue_words import PEOPLE
from clinveil.phi.detection.names.mentions import SAYS
from clinveil.phi.detection.note import NoteView, Word, look_up, plain
from clinveil.phi.matching.wordtable import WordColumn
from clinveil.phi.name_variants import (
    EXACT_NAME,
    MISSPELT,
    NICKNAME,
    PARTICLES,
    Name,
    NameVariants,
    exact_match_only,
    is_met,
)

SURE = 0.85
# of spans added by the index: less than `SURE`, so that their text does not enter the index
SCORE = 0.8
DETECTOR = "name-index"
STAFF = "name of staff"
"""Kind of variant of a name that is searched for in the notes of all patients."""
_SHORTEST = 3
_SHORTEST_STAFF = 4
_SHORTEST_LOWER = 5
_LONGEST_ACRONYM = 5
_PIECE = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_CAPITALS = re.compile(r"[A-Z][A-Za-z]+(?:['-][A-Za-z]+)*")
_CREDENTIAL = re.compile(
    r"(?:'s)?[ \t]*,?[ \t]*(?:M\.?[ \t]?D|D\.?[ \t]?O|R\.?[ \t]?N|N\.?[ \t]?P|P\.?[ \t]?A|Ph\.?["
    r" \t]?D|MBBS|CRNA|CNM"
    r"|LPN|FNP|ARNP|DDS|DPM|PharmD|LCSW|MSW|DPT|OTR|PsyD)\b\.?(?!\w)"
)
_STAFF = re.compile(
    r"(?:\bdrs?|\bdoctor|\bnurse|\bsurgeon|\battending|\bphysician|\bprovider|\bresident"
    r"|\bsigned(?:["
    r" \t]+by)?|\bauthor"
    r"|\bdictated["
    r" \t]+by|\bdictator|\bconsultant|\b(?:patho|radio|cardio|anesthesio)logist|\bpcp)\.?[ \t]*:?["
    r" \t]*\Z",
    re.IGNORECASE,
)
# The pattern can match only text that ends with one of these.
_STAFF_ENDS = (
    "dr",
    "drs",
    "doctor",
    "nurse",
    "surgeon",
    "attending",
    "physician",
    "provider",
    "resident",
    "signed",
    "by",
    "author",
    "dictator",
    "consultant",
    "ologist",
    "pcp",
)
_PERSON_VERB = re.compile(
    r"\s+(?:states?|stated|reports?|reported|denies|denied|says|said|complains|complained|endorses"
    r"|endorsed|feels|felt"
    r"|agrees|agreed|admits|admitted"
    r" to|lives|understands|presents|presented|called|asked|told|who|wants|wishes"
    r"|requests|requested|recalls|went|takes|took|will return|will call|was admitted|was"
    r" discharged)\b"
)
_MONTHS = words(
    "january february march april may june july august september october november december"
)
_ARTICLES = words("a an the no his her their some any this that of in")
_MEETING_WORDS = words("with told asked saw met per called informed see")
_KIN = PEOPLE | {"family", "nurse"}
_NEXT = re.compile(r"(?:\.?[ \t]{1,2}|,[ \t]?|[ \t]?\n?[ \t]*)")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_AMBIGUOUS = LexicalClass.WORD | LexicalClass.EPONYM


@dataclass(frozen=True)
class NameIndex:
    """Names found in a corpus; as secret as its notes. Its repr contains none of them.

    Attributes:
        patients: patient id -> full names found in the patient's notes, as name forms.
        staff: name forms of staff, from all notes.
        vocabulary: words, not names, that occur in lower case in the notes of several patients.
        date_orders: patient id -> what the numeric dates of all notes show of their order
            (`dates.order_shown`).
    """

    patients: Mapping[str, frozenset[Name]] = field(default_factory=dict, repr=False)
    staff: frozenset[str] = field(default=frozenset(), repr=False)
    vocabulary: frozenset[str] = field(default=frozenset(), repr=False)
    date_orders: Mapping[str, int] = field(default_factory=dict, repr=False)

    def for_patients(self, patient_ids: Iterable[str]) -> NameIndex:
        """Return the index restricted to some patients."""
        ids = list(patient_ids)
        names_of_patient = ((patient_id, self.patients.get(patient_id)) for patient_id in ids)
        subset = {patient_id: names for patient_id, names in names_of_patient if names is not None}
        shown = ((patient_id, self.date_orders.get(patient_id, 0)) for patient_id in ids)
        orders = {patient_id: order for patient_id, order in shown if order}
        return NameIndex(subset, self.staff, self.vocabulary, orders)

    def without(self, words: frozenset[str]) -> NameIndex:
        """Return the index without those of some words that are not in a list of names."""
        known = {
            patient_id: without_words(names, words) for patient_id, names in self.patients.items()
        }
        staff = frozenset(form for form in self.staff if form not in words or _listed(form))
        names_left = {patient_id: names for patient_id, names in known.items() if names}
        return NameIndex(names_left, staff, self.vocabulary, self.date_orders)


def without_words(names: frozenset[Name], words: frozenset[str]) -> frozenset[Name]:
    """Remove from names those of some words that are not in a list of names."""
    shortened = (
        tuple(part for part in name if part not in words or _listed(part)) for name in names
    )
    return frozenset(name for name in shortened if name)


def _listed(word: str) -> bool:
    return bool(lexical_classes(word) & LexicalClass.NAME)


def unlisted(note: NoteView, spans: Sequence[Span], *, acronyms: bool = False) -> Iterator[str]:
    """Yield the lower-case words of a note outside all spans that are neither listed words nor
    names.

    Args:
        acronyms: also yield words of two to five capitals that are not usual names, in capitals.
    """
    if acronyms:
        short = {
            text
            for text in note.words.texts
            if text.isupper() and 2 <= len(text) <= _LONGEST_ACRONYM
        }
        yield from (text for text in short if not lexical_classes(text) & _USUAL)
    text, spans = note.within(spans)
    taken = "\n".join({text[span.start : span.end].lower() for span in spans})
    for word in {
        note.words.texts[index] for index in np.flatnonzero(note.words.column(_UNLISTED)).tolist()
    }:
        if word not in taken:
            yield word


def _is_unlisted(written: str) -> bool:
    """Whether a lower-case word is neither a listed word nor a usual name."""
    word, lower, _ = look_up(written)
    listed = lexical_classes(word) & (_USUAL | LexicalClass.WORD)
    return word == lower and len(word) > 2 and not listed and not is_word(word)


_UNLISTED = WordColumn(_is_unlisted, np.bool_)  # not a mark: most runs do not need it


def names_in(text: str, spans: Iterable[Span]) -> frozenset[Name]:
    """Return the full names in spans with a score of `SURE` or more, as name forms."""
    return frozenset(
        name for span in spans if _sure(span) and (name := _name_parts(text[span.start : span.end]))
    )


def staff_in(text: str, spans: Iterable[Span]) -> frozenset[str]:
    """Return the unambiguous name forms next to a title, a credential or a signature."""
    return frozenset(
        form
        for span in spans
        if _sure(span) and (_CREDENTIAL.match(text, span.end) or _is_staff(text, span.start))
        for form in map(name_form, _name_parts(text[span.start : span.end]))
        if len(form) >= _SHORTEST_STAFF
        and not lexical_classes(form) & _AMBIGUOUS
        and not is_word(form)
    )


def _is_staff(text: str, start: int) -> bool:
    """Whether a title of staff or a word for signing precedes an offset."""
    before = text[max(0, start - 40) : start]
    return (
        before.rstrip(" \t:.").casefold().endswith(_STAFF_ENDS)
        and _STAFF.search(before) is not None
    )


def _sure(span: Span) -> bool:
    return span.label == "NAME" and span.score >= SURE


@lru_cache(maxsize=1 << 11)  # most names occur several times in a note
def _name_parts(text: str) -> Name:
    words = _PIECE.findall(plain(text).text)
    parts = tuple(word.removesuffix("'s").lower() for word in words)
    return (
        parts
        if any(len(name_form(part)) >= _SHORTEST and part not in PARTICLES for part in parts)
        else ()
    )


def mentions(
    note: NoteView, names: frozenset[Name], staff: frozenset[str], detected: Sequence[Span]
) -> Iterator[Span]:
    """Yield spans of names of the note's patient and of staff that no span covers yet.

    Args:
        names: full names of the note's patient. staff: name forms of staff. detected: sorted spans
            of the detectors.
    """
    if not names and not staff:
        return
    variants = NameVariants.of(*sorted(names))
    if any(f"{first}." in note.plain for first in variants.firsts):
        yield from _outside(note, variants.initialled(note.plain, bare=False), detected, "initials")
    parts = set(note.words.column(_CAPITALISED if note.plain.isascii() else _ALL).tolist())
    written, odd = (
        set(chain.from_iterable(column)) for column in zip(*parts, ((), ()), strict=True)
    )
    irregular = (word for word in odd if not (word.isascii() and word.isalpha()))
    of_staff = (written & staff).union(word for word in irregular if name_form(word) in staff)
    # Lower-case word -> kind of variant.
    wanted = dict.fromkeys(of_staff, STAFF) | variants.among(written, odd)
    wanted |= dict.fromkeys(
        variants.exact.intersection(note.words.lowers).difference(wanted), EXACT_NAME
    )
    if wanted:
        yield from _Lookup(note, wanted, detected).spans()


def _parts(pattern: re.Pattern[str], word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lower-case parts of a word that can be names, and those that are not
    `exact_match_only`.
    """
    parts = tuple(part.lower().removesuffix("'s") for part in pattern.findall(word))
    return parts, tuple(filterfalse(exact_match_only, parts))


_CAPITALISED = WordColumn(lambda word: _parts(_CAPITALS, word))
_ALL = WordColumn(lambda word: _parts(_PIECE, word))


def _outside(
    note: NoteView, ranges: Iterable[tuple[int, int]], detected: Sequence[Span], why: str
) -> Iterator[Span]:
    """Yield the spans of ranges of the plain copy that are not within a span."""
    for start, end in ranges:
        span = note.span(start, end, "NAME", DETECTOR, SCORE, why)
        if _covering(detected, span.start, span.end) is None:
            yield span


def _covering(detected: Sequence[Span], start: int, end: int) -> Span | None:
    """Return the span that covers a range, of sorted spans without overlaps."""
    index = bisect_right(detected, start, key=lambda span: span.start) - 1
    return detected[index] if index >= 0 and detected[index].end >= end else None


_PATIENT = frozenset(("pt", "patient", "pts", "client", "resident"))


class _Lookup:
    """Search of one note for the wanted words."""

    def __init__(self, note: NoteView, wanted: Mapping[str, str], detected: Sequence[Span]) -> None:
        self.note = note
        self.words = note.words
        self.text = note.plain
        self.detected = detected
        self.hits = {
            index: wanted[lower] for index, lower in enumerate(note.words.lowers) if lower in wanted
        }

    def spans(self) -> Iterator[Span]:
        """Yield one span per accepted word."""
        sure = {
            index
            for index, why in self.hits.items()
            if self._unambiguous(self.words[index], index, why)
        }
        for index, why in self.hits.items():
            if index in sure or (
                why == EXACT_NAME and self._word_as_name(self.words[index], index, sure)
            ):
                word = self.words[index]
                yield from _outside(
                    self.note, [(word.start, word.end)], self.detected, f"{why} of another mention"
                )

    def _unambiguous(self, word: Word, index: int, why: str) -> bool:
        if word.classes & _AMBIGUOUS or len(word.text) < _SHORTEST or self._before_noun(index):
            return False
        if word.capital:
            return why not in (MISSPELT, NICKNAME, STAFF) or not word.shouted or word.listed
        return (
            why == EXACT_NAME
            and (word.listed or len(word.text) >= _SHORTEST_LOWER)
            and len(word.text) > _SHORTEST
        )

    def _word_as_name(self, word: Word, index: int, sure: set[int]) -> bool:
        """Whether an ambiguous word (White, May, Foley) is used as a name."""
        if not word.classes & _AMBIGUOUS or self._before_noun(index):
            return False
        if not word.capital:
            return is_met(self.text, word.start) and not self._after_patient(index)
        if any(self._next_to_name(index, other, sure) for other in (index - 1, index + 1)):
            return True
        if word.shouted:
            return False
        following = self.words[index + 1].lower if index + 1 < len(self.words) else ""
        owns = self.text[word.end : word.end + 1] == "'"
        if (owns and following in _KIN) or _PERSON_VERB.match(self.text, word.end):  # White's wife
            return True
        if word.lower not in self.note.lower_case and (owns or SAYS.match(self.text, word.end)):
            return not word.classes & LexicalClass.EPONYM
        return self._within_sentence(word, index)

    def _after_patient(self, index: int) -> bool:
        """Whether `pt` or `patient` precedes a word in lower case that no verb of a person follows:
        `Pt will need`.
        """
        patient = index > 0 and self.words.lowers[index - 1] in _PATIENT
        return patient and _PERSON_VERB.match(self.text, self.words[index].end) is None

    def _next_to_name(self, index: int, other: int, sure: set[int]) -> bool:
        if not 0 <= other < len(self.words):
            return False
        first = self.words[min(index, other)]
        second = self.words[max(index, other)]
        if not _NEXT.fullmatch(self.text, first.end, second.start):
            return False
        full = (
            self.hits.get(other) == EXACT_NAME
            and first.capital
            and second.capital
            and not first.shouted
        )
        return other in sure or full or self._named(self.words[other])

    def _named(self, word: Word) -> bool:
        """Whether the detectors labelled a word as a name and it is not ambiguous."""
        span = _covering(self.detected, *self.note.aligned.source_offsets(word.start, word.end))
        return span is not None and span.label == "NAME" and not word.classes & _AMBIGUOUS

    def _within_sentence(self, word: Word, index: int) -> bool:
        """Whether a capitalised word is inside a sentence, not before a noun; eponyms only after
        `with`, `saw` etc.
        """
        if not index or word.lower in _MONTHS:
            return False
        previous = self.words[index - 1]
        following = self.text[word.end : word.end + 1]
        if word.classes & LexicalClass.EPONYM and previous.lower not in _MEETING_WORDS:
            return False
        if (
            previous.capital
            or previous.lower in _ARTICLES
            or self.text[previous.end : word.start] not in (" ", ", ")
        ):
            return False
        if following in ",.;:)'?!\n" or not following:
            return True
        return index + 1 < len(self.words) and self.words[index + 1].lower in word_list("function")

    def _before_noun(self, index: int) -> bool:
        """Whether the next word makes this one an eponym: Smith fracture, Foley's catheter."""
        if index + 1 >= len(self.words):
            return False
        gap = self.text[self.words[index].end : self.words[index + 1].start]
        return (
            len(gap) <= 4
            and gap.strip("'s \n") in ("", "-")
            and self.words[index + 1].lower in word_list("eponym_nouns")
        )
