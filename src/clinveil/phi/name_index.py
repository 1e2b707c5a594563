"""What some notes say of the names in others: a name found once is found in every form in all notes of its patient.

What was heard surely (a score of `SURE` or more) is looked up again, word by word: as itself, as a part, a nickname,
a misspelling, a user name, initials. A name that is also an ordinary word or an eponym (White, May, Foley) needs
another name beside it, a verb of saying after it, or a capital in the middle of a sentence where no noun follows. Who
is named with a title or a credential, or as the signer, is staff, and is looked up in all notes of all patients, by
unambiguous names written with a capital alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, filterfalse

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.names import name_form
from clinveil.lexicons.words import is_word, word_list
from clinveil.phi.detector import words
from clinveil.phi.detectors._name_cue_words import PEOPLE
from clinveil.phi.marks import mark
from clinveil.phi.name_variants import MISSPELT, NICKNAME, OWN, PARTICLES, Name, NameVariants, is_met, plainly_no_name
from clinveil.phi.note import NoteView, Word, look_up, plain
from clinveil.phi.wordtable import Column

SURE = 0.85
SCORE = 0.8  # of a mention that was looked up: under `SURE`, so that nothing is heard from it again
HEARD = "heard"
_SHORTEST, _SHORTEST_STAFF, _SHORTEST_LOWER = 3, 4, 5
_LONGEST_ACRONYM = 5
_PIECE = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_CAPITALS = re.compile(r"[A-Z][A-Za-z]+(?:['-][A-Za-z]+)*")
_CREDENTIAL = re.compile(
    r"(?:'s)?[ \t]*,?[ \t]*(?:M\.?[ \t]?D|D\.?[ \t]?O|R\.?[ \t]?N|N\.?[ \t]?P|P\.?[ \t]?A|Ph\.?[ \t]?D|MBBS|CRNA|CNM"
    r"|LPN|FNP|ARNP|DDS|DPM|PharmD|LCSW|MSW|DPT|OTR|PsyD)\b\.?(?!\w)"
)
_STAFF = re.compile(
    r"(?:\bdrs?|\bdoctor|\bnurse|\bsurgeon|\battending|\bphysician|\bprovider|\bresident|\bsigned(?:[ \t]+by)?|\bauthor"
    r"|\bdictated[ \t]+by|\bdictator|\bconsultant|\b(?:patho|radio|cardio|anesthesio)logist|\bpcp)\.?[ \t]*:?[ \t]*\Z",
    re.IGNORECASE,
)
# What stands there ends with one of these, or the pattern need not be tried.
_STAFF_ENDS = (
    *("dr", "drs", "doctor", "nurse", "surgeon", "attending", "physician", "provider", "resident", "signed", "by"),
    *("author", "dictator", "consultant", "ologist", "pcp"),
)
_SAYS = re.compile(
    r"\s+(?:states?|stated|reports?|reported|denies|denied|says|said|complains|complained|endorses|endorsed|feels|felt"
    r"|agrees|agreed|admits|admitted to|lives|understands|presents|presented"
    r"|called|asked|told|who|wants|wishes|requests|requested|recalls|went|takes|took"
    r"|will return|will call|was admitted|was discharged)\b"
)
_MONTHS = words("january february march april may june july august september october november december")
_ARTICLES = words("a an the no his her their some any this that of in")
_MEETS = words("with told asked saw met per called informed see")
_KIN = PEOPLE | {"family", "nurse"}
_NEXT = re.compile(r"(?:\.?[ \t]{1,2}|,[ \t]?|[ \t]?\n?[ \t]*)")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_AMBIGUOUS = LexicalClass.WORD | LexicalClass.EPONYM


@dataclass(frozen=True)
class NameIndex:
    """What a corpus says of names; as secret as its notes, and its repr shows none of it.

    Attributes:
        patients: patient id -> full names that were found in their notes, each as its name forms.
        staff: forms of the names of those who treat, wherever they were found.
        vocabulary: words that stand in lower case in the notes of many patients and are no names.
    """

    patients: Mapping[str, frozenset[Name]] = field(default_factory=dict, repr=False)
    staff: frozenset[str] = field(default=frozenset(), repr=False)
    vocabulary: frozenset[str] = field(default=frozenset(), repr=False)

    def for_patients(self, patient_ids: Iterable[str]) -> NameIndex:
        """The same of these patients only."""
        found = ((patient_id, self.patients.get(patient_id)) for patient_id in patient_ids)
        some = {patient_id: names for patient_id, names in found if names is not None}
        return NameIndex(some, self.staff, self.vocabulary)

    def without(self, words: frozenset[str]) -> NameIndex:
        """The same without those of some words that stand in no list of names."""
        known = {patient_id: without_words(names, words) for patient_id, names in self.patients.items()}
        staff = frozenset(form for form in self.staff if form not in words or _listed(form))
        return NameIndex({patient_id: names for patient_id, names in known.items() if names}, staff, self.vocabulary)


def without_words(names: frozenset[Name], words: frozenset[str]) -> frozenset[Name]:
    """Some names without those of some words that stand in no list of names."""
    left = (tuple(part for part in name if part not in words or _listed(part)) for name in names)
    return frozenset(name for name in left if name)


def _listed(word: str) -> bool:
    return bool(lexical_classes(word) & LexicalClass.NAME)


def unlisted(note: NoteView, spans: Iterable[Span], *, acronyms: bool = False) -> Iterator[str]:
    """The words that a note writes in lower case and outside of all spans, and that are no listed words or names.

    `acronyms`: also what it writes in two to five capitals and is no usual name, in capitals.
    """
    if acronyms:
        short = {text for text in note.words.texts if text.isupper() and 2 <= len(text) <= _LONGEST_ACRONYM}
        yield from (text for text in short if not lexical_classes(text) & _USUAL)
    taken = "\n".join({note.text[span.start : span.end].lower() for span in spans})
    for word in {note.words.texts[at] for at in note.words.marked(_SMALL_IN_NO_LIST)}:
        if word not in taken:
            yield word


def _in_no_list(written: str) -> bool:
    """Whether a word in small letters is no listed word or usual name."""
    word, lower, _ = look_up(written)
    listed = lexical_classes(word) & (_USUAL | LexicalClass.WORD)
    return word == lower and len(word) > 2 and not listed and not is_word(word)


_SMALL_IN_NO_LIST = mark(_in_no_list)


def names_in(text: str, spans: Iterable[Span]) -> frozenset[Name]:
    """The full names that some spans of a note are sure of, as name forms."""
    return frozenset(name for span in spans if (name := _name(text, span)))


def staff_in(text: str, spans: Iterable[Span]) -> frozenset[str]:
    """The unambiguous forms of names beside a title of a doctor, a credential or a signature."""
    return frozenset(
        form
        for span in spans
        if _sure(span) and (_CREDENTIAL.match(text, span.end) or _of_one_who_treats(text, span.start))
        for form in map(name_form, _name(text, span))
        if len(form) >= _SHORTEST_STAFF and not _ambiguous(form)
    )


def _of_one_who_treats(text: str, start: int) -> bool:
    """Whether a title of staff, or a word for signing, stands before a place."""
    before = text[max(0, start - 40) : start]
    return before.rstrip(" \t:.").casefold().endswith(_STAFF_ENDS) and _STAFF.search(before) is not None


def _sure(span: Span) -> bool:
    return span.label == "NAME" and span.score >= SURE


def _name(text: str, span: Span) -> Name:
    return _said_in(text[span.start : span.end]) if _sure(span) else ()


@lru_cache(maxsize=1 << 11)  # a note says most of its names more than once, and is asked again
def _said_in(text: str) -> Name:
    words = _PIECE.findall(plain(text).text)
    parts = tuple(word.removesuffix("'s").lower() for word in words)
    return parts if any(len(name_form(part)) >= _SHORTEST and part not in PARTICLES for part in parts) else ()


@lru_cache(maxsize=1 << 12)
def _ambiguous(form: str) -> bool:
    return bool(lexical_classes(form) & _AMBIGUOUS) or is_word(form)


def mentions(note: NoteView, names: frozenset[Name], staff: frozenset[str], found: Sequence[Span]) -> Iterator[Span]:
    """The places of a note that names of its patient, or of staff, account for and no span covers yet.

    Args:
        names: full names heard of the note's patient. staff: forms of the names of staff. found: sorted spans.
    """
    forms = NameVariants.of(*sorted(names))
    if any(f"{first}." in note.plain for first in forms.firsts):
        yield from _outside(note, forms.initialled(note.plain, bare=False), found, "initials")
    wanted = _wanted(note, forms, staff)
    if wanted and not _all_found(note, wanted, found):
        yield from _Lookup(note, wanted, found).spans()


def _wanted(note: NoteView, forms: NameVariants, staff: frozenset[str]) -> dict[str, str]:
    """Lower-case word of the note -> how it is one of the names; most notes have none that was not found before."""
    said = set(note.words.column(_CAPITALISED if note.plain.isascii() else _ALL).tolist())
    written, odd = (set(chain.from_iterable(some)) for some in zip(*said, ((), ()), strict=True))
    wanted = dict.fromkeys(_of_staff(written, odd, staff), HEARD) | forms.among(written, odd)
    lower = note.plain.lower()
    return wanted | {form: OWN for form in forms.exact if form not in wanted and form in lower}


def _of_staff(words: set[str], odd: set[str], staff: frozenset[str]) -> set[str]:
    bent = (word for word in odd if not (word.isascii() and word.isalpha()))
    return (words & staff).union(word for word in bent if name_form(word) in staff)


def _said_by(pattern: re.Pattern[str], word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What may be a name in a word, in lower case, and what of it is not `plainly_no_name`."""
    said = tuple(part.lower().removesuffix("'s") for part in pattern.findall(word))
    return said, tuple(filterfalse(plainly_no_name, said))


_CAPITALISED = Column(lambda word: _said_by(_CAPITALS, word))
_ALL = Column(lambda word: _said_by(_PIECE, word))


def _all_found(note: NoteView, wanted: Iterable[str], found: Sequence[Span]) -> bool:
    """Whether spans cover all that is wanted: mostly so, and then the note is not taken apart into words again."""
    left = lower = note.plain.lower()
    if note.aligned.starts is not None or len(lower) != len(note.text):
        return False
    for span in reversed(found):
        left = f"{left[: span.start]}\n{left[span.end :]}"
    return not any(word in left for word in wanted)


def _outside(note: NoteView, places: Iterable[tuple[int, int]], found: Sequence[Span], why: str) -> Iterator[Span]:
    for start, end in places:
        span = note.span(start, end, "NAME", HEARD, SCORE, why)
        if not any(other.start <= span.start and span.end <= other.end for other in found):
            yield span


class _Lookup:
    """The words of one note that are wanted."""

    def __init__(self, note: NoteView, wanted: Mapping[str, str], found: Sequence[Span]) -> None:
        self.note, self.words, self.text, self.found = note, note.words, note.plain, found
        self.hits = {at: wanted[lower] for at, lower in enumerate(note.words.lowers) if lower in wanted}

    def spans(self) -> Iterator[Span]:
        """One a word."""
        sure = {at for at, why in self.hits.items() if self._unambiguous(self.words[at], at, why)}
        for at, why in self.hits.items():
            if at in sure or (why == OWN and self._word_as_name(self.words[at], at, sure)):
                word = self.words[at]
                yield from _outside(self.note, [(word.start, word.end)], self.found, f"{why} of another mention")

    def _unambiguous(self, word: Word, at: int, why: str) -> bool:
        if word.classes & _AMBIGUOUS or len(word.text) < _SHORTEST or self._before_noun(at):
            return False
        if word.capital:
            return why not in (MISSPELT, NICKNAME, HEARD) or not word.shouted or word.listed
        return why == OWN and (word.listed or len(word.text) >= _SHORTEST_LOWER) and len(word.text) > _SHORTEST

    def _word_as_name(self, word: Word, at: int, sure: set[int]) -> bool:
        """White, May, Foley: beside a name, before a verb of saying, or alone within a sentence."""
        if not word.classes & _AMBIGUOUS or self._before_noun(at):
            return False
        if not word.capital:
            return is_met(self.text, word.start)
        if any(self._beside_found(at, other, sure) for other in (at - 1, at + 1)):
            return True
        if word.shouted:
            return False
        if _SAYS.match(self.text, word.end) or self._has_people(word, at):
            return True
        return self._within_sentence(word, at)

    def _has_people(self, word: Word, at: int) -> bool:
        """Whether somebody belongs to it: White's wife."""
        following = self.words[at + 1].lower if at + 1 < len(self.words) else ""
        return self.text[word.end : word.end + 2] == "'s" and following in _KIN

    def _beside_found(self, at: int, other: int, sure: set[int]) -> bool:
        if not 0 <= other < len(self.words):
            return False
        first, second = self.words[min(at, other)], self.words[max(at, other)]
        if not _NEXT.fullmatch(self.text, first.end, second.start):
            return False
        full = self.hits.get(other) == OWN and first.capital and second.capital and not first.shouted
        return other in sure or full or self._named(self.words[other])

    def _named(self, word: Word) -> bool:
        """Whether the detectors took a word for a name and it can be nothing else."""
        start, end = self.note.aligned.source_offsets(word.start, word.end)
        taken = any(span.label == "NAME" and span.start <= start and end <= span.end for span in self.found)
        return taken and not word.classes & _AMBIGUOUS

    def _within_sentence(self, word: Word, at: int) -> bool:
        """Where no noun follows; an eponym only where people are met."""
        if not at or word.lower in _MONTHS:
            return False
        last, following = self.words[at - 1], self.text[word.end : word.end + 1]
        if word.classes & LexicalClass.EPONYM and last.lower not in _MEETS:
            return False
        if last.capital or last.lower in _ARTICLES or self.text[last.end : word.start] not in (" ", ", "):
            return False
        if following in ",.;:)'?!\n" or not following:
            return True
        return at + 1 < len(self.words) and self.words[at + 1].lower in word_list("function")

    def _before_noun(self, at: int) -> bool:
        """Whether the next word makes an eponym of this one: Smith fracture, Foley's catheter."""
        if at + 1 >= len(self.words):
            return False
        gap = self.text[self.words[at].end : self.words[at + 1].start]
        return (
            len(gap) <= 4 and gap.strip("'s \n") in ("", "-") and self.words[at + 1].lower in word_list("eponym_nouns")
        )
