"""The tagger: a statistical model of names in context, trained on examples. Its findings are added
to those of the
rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from clinveil.core import Span
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names import cue_words
from clinveil.phi.detection.names.kinds import fills_section, is_phrase, is_term, label_of
from clinveil.phi.detection.names.mentions import SAYS
from clinveil.phi.detection.names.state import NameState
from clinveil.phi.detection.note import NoteView, Word

if TYPE_CHECKING:
    from clinveil.phi.tagger.tag import Hit, Tagger


_BRACKETS = re.compile(r"\([A-Z]+\)")  # Test of Variables of Attention (TOVA)
_CODE = re.compile(r"[\d^|]")  # BRCA1, HLA-B27, and HL7 fields, which have their own detector
_NUMBERED = re.compile(r"-\d")  # Omega-3
_LOW_THRESHOLD = 0.02
_SURE = 0.9
_CERTAIN = 0.95
_ALMOST_ONE = 0.985
_NEVER = 2.0  # above any probability
_NEAR = 5  # characters between two parts of one name: `Donal Mac an Bhaird`
_FAR = "\n" * _NEAR
_SEPARATES = re.compile(r"[,+;:/(]|\.\s")
_MOST_UNLISTED = 0.4
# letters
_ABBREVIATION = 4
_SHORTEST = 3
_PAIR = 2  # words: a verb and a preposition
_DETERMINERS = words("the a an two three french modified standard")
_NUMBER_BEFORE = re.compile(r"\d[ ]?\Z")
_PLURAL_VERB = re.compile(r"[ ](?:are|were|have)\b")
_STATE_OF_THING = re.compile(r"[ ](?:is|was|were|are)\b")
_STREET_KIND = re.compile(
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Terrace"
    r"|Circle|Square|Parkway|Pkwy)\.\s+"
)
_HOUSE_BEFORE = re.compile(r"\d[A-Za-z]?,?\s(?:[A-Z][\w']*\.?\s){1,3}\Z")
_ADDRESS = 60  # characters before the kind of a street
_INITIAL_ENDS = re.compile(r"[A-Z]\.[ ]{2,}(?P<next>[A-Z]\w*)")
_CLOSE = re.compile(r"\.?[ \t]*[,:(/\"']?[ \t]?")
_PREPOSITIONS = words("with by from of and or to per d w")
_SPOKEN = cue_words.SPOKEN | cue_words.MET | cue_words.TALKED
_POSSESSIVES = words("his her their my our your its")
_STRONG_CUES = (
    (
        cue_words.TITLES
        | cue_words.CALLED
        | cue_words.PEOPLE
        | cue_words.CLINICIANS
        | cue_words.NAMED
        | cue_words.MET
    )
    | (cue_words.NAMES | cue_words.PATIENTS | cue_words.RELATIVES | cue_words.PATIENT_FIELDS)
    | words("mw pn cpn dn dsn hv anp hca fcp msk sw reg physio pharm dtr")
) - _PREPOSITIONS
_CUES_BEFORE = _STRONG_CUES | _PREPOSITIONS
_TERMS = word_list("brands") | words(
    "gran nan nana grandad mum mummy mumma dad daddy poppa nanna gerd elisa timi alisa cabg aspen"
    " salina christ buddha allah krishna jehovah"
)
_CUES_AFTER = dict.fromkeys(cue_words.PEOPLE, (",", "(")) | dict.fromkeys(
    words("md rn np lpn crna pharmd phd msw lcsw dpt anp hca facs jr sr"), ("", ",", "(")
)
_ROLES = cue_words.CLINICIANS | cue_words.PEOPLE | cue_words.PATIENTS


@dataclass(frozen=True)
class TaggerDetector:
    """Detector based on a trained sequence model, loaded on first use.

    Attributes:
        model: a model file that replaces the bundled model. The bundled model detects NAME.
    """

    model: Path | None = None

    name = "tagger"
    examples = (
        "Handed over to {NAME:Ruvkunen} at noon. A Foley catheter was placed.",
        "Called {NAME:Ward}, who agrees; back to the ward.",
        "{NAME:Mary Smith} came. Retired from {HOSPITAL:Okafor} after years.",
        "His wife grew up in {CITY:Lindqvist}.",
    )

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of the model, and those of towns and institutions if it detects names."""
        labels = frozenset({"NAME"}) if self.model is None else _read(self.model).labels
        return labels | {"CITY", "HOSPITAL"} if "NAME" in labels else labels

    def tagger(self) -> Tagger:
        """Return the model, loaded on first use. Raises InputError for an invalid model file."""
        return _read(self.model)

    def suspect(self, note: NoteView) -> Iterator[Span]:
        """Yield also spans with a low probability, as candidates for manual review."""
        return self.find(note, _LOW_THRESHOLD)

    def find(self, note: NoteView, threshold: float | None = None) -> Iterator[Span]:
        """Yield one span per run of tokens above a threshold.

        Args:
            threshold: None for the model's, without parts of medical codes.
        """
        hits = [_trimmed(note, hit) for hit in self.tagger().hits(note.tokens, threshold)]
        state = NameState(note)
        gaps = [_FAR, *(note.plain[last.end : hit.start] for last, hit in pairwise(hits)), _FAR]
        for hit, *gaps_around in zip(hits, gaps, gaps[1:], strict=False):
            if (
                hit.label != "NAME"
                or threshold is not None
                or not _is_term(state, hit, gaps_around)
            ):
                label = _label(state, hit) if hit.label == "NAME" else hit.label
                yield note.span(hit.start, hit.end, label, self.name, hit.probability, why="tagger")


def _trimmed(note: NoteView, hit: Hit) -> Hit:
    """Return a hit without the street that ends the sentence before it, and without the sentence
    after an initial: `44 Elm Street. Todd came`, `Dr. X.  Currently`.
    """
    text = note.plain
    street = _STREET_KIND.match(text, hit.start, hit.end)
    if street and _HOUSE_BEFORE.search(text, max(0, hit.start - _ADDRESS), hit.start):
        return hit._replace(start=street.end())
    initial = _INITIAL_ENDS.match(text, hit.start, hit.end)
    if initial and not lexical_classes(initial["next"]) & LexicalClass.FAMILIAR:
        return hit._replace(end=hit.start + 1)
    return hit


def _label(state: NameState, hit: Hit) -> str:
    """Return NAME, or the label of a town or an institution, judged by the words next to a hit."""
    first = bisect_left(state.words.starts, hit.start)
    end = bisect_left(state.words.starts, hit.end)
    return "NAME" if _has_cue(state, first, end, _STRONG_CUES) else label_of(state, first, end)


def _is_term(state: NameState, hit: Hit, gaps_around: list[str]) -> bool:
    """Return whether a hit is rather a code, a test, a device, a drug or a common word than a name.

    A word that may be one of these counts only next to a second cue: a title, a relative, a
    credential, or another part of the name, judged by the text between this hit and those before
    and after it (`beside`).
    """
    first = bisect_left(state.words.starts, hit.start)
    end = bisect_left(state.words.starts, hit.end)
    if first == end or _is_code(state, hit) or _is_surely_term(state, hit, first, end):
        return True
    run = state.words[first:end]
    near = [gap for gap in gaps_around if len(gap) < _NEAR]
    if near and not (all(map(_SEPARATES.search, near)) and state.terse(first)):
        return False
    if _has_cue(state, first, end, _STRONG_CUES):
        return False
    if not any(word.capital for word in run) and not state.mostly_small:
        # In a text with capitals, only a usual first name.
        has_usual_given = any(
            word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary for word in run
        )
        return (
            hit.probability < _CERTAIN
            or not has_usual_given
            or _is_small_word(state, first, run[0])
        )
    if is_term(state, first, end):
        return True
    if len(run) == 1 and _is_word_in_context(state, first, run[0]):
        return True
    if _has_cue(state, first, end):
        return hit.probability < _least_after(state, first, run)
    return _is_doubtful(state, first, run, hit.probability)


def _is_word_in_context(state: NameState, index: int, word: Word) -> bool:
    """Return whether one word is an abbreviation, a thing that somebody owns, the entry of a
    section, or a plural: `with IDA`, `in her Honda`, `Reactions: Nome.`, `Winters are`.
    """
    words = state.words
    last = words.lowers[index - 1] if index else ""
    spoken = last in _PREPOSITIONS and index > 1 and words.lowers[index - 2] in _SPOKEN
    usual = word.classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY)
    if state.abbreviated(index):
        return not (spoken and usual and not word.ordinary)
    if word.classes & LexicalClass.USUAL_GIVEN:
        return False
    if last in _POSSESSIVES or fills_section(state, index):
        return True
    return last not in ("and", "or") and _PLURAL_VERB.match(state.text, word.end) is not None


def _is_small_word(state: NameState, index: int, word: Word) -> bool:
    """Return whether a word in lower case is an inflected word or the verb after `to`: `misty`."""
    words = state.words
    verb = index > 1 and words.lowers[index - 1] == "to"
    return is_word(word.lower) or (verb and words.lowers[index - 2] not in _SPOKEN)


def _is_code(state: NameState, hit: Hit) -> bool:
    """Return whether digits or signs of codes are in or next to a hit, or it is the ending of a
    file name.
    """
    if _NUMBERED.match(state.text, hit.end):
        return True
    if state.text[hit.start - 1 : hit.start] == "." and state.text[hit.start].islower():
        return True
    return _CODE.search(state.text[max(0, hit.start - 1) : hit.end + 1]) is not None


def _is_surely_term(state: NameState, hit: Hit, first: int, end: int) -> bool:
    """Return whether a run of words is a term whatever else is next to it."""
    run = state.words[first:end]
    if is_phrase(state, first, end):
        return True
    if len(run) > 1:
        initial = len(run) == _PAIR and len(run[0].text) == 1 and run[1].ordinary
        if initial and hit.probability < _MOST_UNLISTED:
            return True  # `A. General Practitioner`
        return hit.probability < _CERTAIN and state.before_noun(end - 1)
    if run[0].text.islower() and not run[0].listed and state.words.texts[first - 1] == "Dear":
        return True  # `Dear colleage`
    if not run[0].capital and is_word(run[0].lower) and _PLURAL_VERB.match(state.text, run[0].end):
        return True  # `per the patient, winters are worst`
    if run[0].lower in _TERMS or state.in_region(first) or run[0].lower in cue_words.NAMED:
        return True
    if run[0].lower in _STRONG_CUES and hit.probability < _SURE:
        return True
    if state.before_noun(end) or state.after_noun(first):
        return True
    if run[0].shouted and _BRACKETS.match(state.text, hit.start - 1):
        return True
    short = len(run[0].text) < _SHORTEST and hit.probability < _ALMOST_ONE
    return short and not SAYS.match(state.text, run[0].end) and not _has_cue(state, first, end)


def _least_after(state: NameState, first: int, run: list[Word]) -> float:
    """Return the least probability of a run after a preposition: more where no verb of meeting
    precedes it.
    """
    lowers = state.words.lowers
    kinds = state.words.classes
    if len(run) > 1 or first < _PAIR or lowers[first - 1] not in _PREPOSITIONS:
        return 0.0
    before = lowers[first - 2]
    if run[0].classes & LexicalClass.EPONYM:
        return _ALMOST_ONE
    # People send and receive, things do so rarely.
    sent = lowers[first - 1] in (
        "from",
        "to",
        "per",
    )
    if sent or before in _SPOKEN or (run[0].listed and not run[0].ordinary):
        return _MOST_UNLISTED / 2
    if kinds[first - 2] & LexicalClass.FUNCTION or lowers[first - 1] == "by":
        return _MOST_UNLISTED
    used = before.endswith("ed") or before in word_list("clinical") or before in word_list("icd")
    return _SURE if used else _MOST_UNLISTED


def _has_cue(state: NameState, first: int, end: int, cues: frozenset[str] = _CUES_BEFORE) -> bool:
    """Return whether a title, a relative or a verb of meeting precedes a run of words, or a
    credential follows it.
    """
    words = state.words
    if first and words.lowers[first - 1] in cues and _CLOSE.fullmatch(state.gap(first)):
        if words.lowers[first - 1] == "ms" and _NUMBER_BEFORE.search(
            state.text, 0, words.starts[first - 1]
        ):
            return False  # milliseconds
        verb = words.lowers[first - 1] == "to" and ":" not in state.gap(first)
        verb = verb and words[first].ordinary and not words[first].capital
        return words.lowers[first] not in _ROLES and not verb
    if end < len(words) and state.gap(end).strip() in _CUES_AFTER.get(words.lowers[end], ()):
        return True
    return end - 1 in state.before_credentials


def _is_doubtful(state: NameState, first: int, run: list[Word], probability: float) -> bool:
    """Return whether words without a cue are rather not a name."""
    end = first + len(run)
    terse = state.terse(first)
    if _is_eponym(state, first, run, terse=terse):
        return True
    if state.before_noun(end) or (first and state.words.lowers[first - 1] in _DETERMINERS):
        return len(run) == 1 or probability < _SURE
    if len(run) == 1 and state.before_adjectives_and_noun(first):
        return True
    if terse and "," in state.text[run[0].start : run[-1].end] and state.labelled_term(first):
        return True
    if len(run) > 1 and run[0].classes & LexicalClass.USUAL_GIVEN and run[0].capital:
        return False
    says = SAYS.match(state.text, run[-1].end) is not None
    if (
        len(run) == 1
        and run[0].lower in state.note.lower_case
        and (run[0].capital or (run[0].ordinary and not says))
    ):
        return True
    shouted = any(word.shouted and len(word.text) > _ABBREVIATION for word in run)
    if not shouted and any(map(state.abbreviated, range(first, end))):
        return probability < _CERTAIN
    return probability < _least_alone(state, first, run, terse=terse, says=says)


def _is_eponym(state: NameState, first: int, run: list[Word], *, terse: bool) -> bool:
    """Return whether words without a cue are eponyms, or a term in a list of terms."""
    initial_or_given = len(run[0].text) == 1 or any(
        word.classes & LexicalClass.GIVEN for word in run
    )
    if len(run) > 1 and _only_eponyms(run) and not initial_or_given:
        return True
    return terse and (_only_eponyms(run) or state.among_terms(first, first + len(run)))


def _least_alone(
    state: NameState, first: int, run: list[Word], *, terse: bool, says: bool
) -> float:
    """Return the least probability of words without a cue, by the lists and by what follows."""
    following = state.words.lowers[first + 1] if first + 1 < len(state.words) else ""
    owned = len(run) == 1 and state.text[run[0].end : run[0].end + 1] == "'"
    if owned and following in cue_words.PEOPLE:
        return _MOST_UNLISTED  # `Bark's wife`
    if all(word.ordinary for word in run):
        usual = run[-1].classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY)
        if terse or not any(word.listed for word in run):
            return _NEVER
        return _MOST_UNLISTED if usual and says else _ALMOST_ONE
    if not any(word.capital for word in run):
        return _SURE
    after = state.text[run[-1].end : run[-1].end + _NEAR]
    if says:
        usual = run[0].classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY)
        unsure = len(run) == 1 and not usual and _STATE_OF_THING.match(after)
        return _MOST_UNLISTED / 2 if unsure else 0.0
    if owned and not run[0].listed and following not in cue_words.CHARTED:
        return _SURE  # `Lugol's solution`
    unlisted = _MOST_UNLISTED if len(run) == 1 else _MOST_UNLISTED / 2
    return _SURE if terse else 0.0 if run[0].listed else unlisted


def _only_eponyms(run: list[Word]) -> bool:
    """Return whether the capitalised words are eponyms and ordinary words: `Dix-Hallpike`,
    `Holter`.
    """
    odd = [word for word in run if len(word.text) > 1 and word.capital]
    eponyms = [word for word in odd if word.classes & LexicalClass.EPONYM]
    return bool(eponyms) and all(word.ordinary for word in odd if word not in eponyms)


@lru_cache(maxsize=8)
def _read(model: Path | None) -> Tagger:
    from clinveil.phi.tagger.model import load_tagger, own_tagger
    from clinveil.phi.tagger.tag import Tagger

    return Tagger(own_tagger() if model is None else load_tagger(model))


TAGGER = TaggerDetector()
