"""`Finder`: detect the identifiers of a note with all detectors and with names found in other
notes.

Spans that share a character become one span that covers them all, so that no part of an identifier
remains. Its label is that of the longest span, then of the one with the highest score. A name that
ends inside a word or before a hyphenated part is extended to the end of the word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from clinveil.core import Span, UsageError
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, word_list
from clinveil.phi.detection.adapters import adapters_for
from clinveil.phi.detection.detector import Detector, words
from clinveil.phi.detection.detectors import DETECTORS
from clinveil.phi.detection.detectors.tagger import TaggerDetector
from clinveil.phi.detection.note import NoteView
from clinveil.phi.detection.second_opinion import SecondOpinion
from clinveil.phi.detection.staff import StaffNames, read_staff_names
from clinveil.phi.detection.word_list import WordList, cut
from clinveil.phi.name_index import NameIndex, mentions, names_in

_LISTS = frozenset({"known", "find-words"})  # a keep word does not hide their spans
_STOPS = frozenset(".!?:;\n-*•")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY


def off_list(note: NoteView, vocabulary: AbstractSet[str]) -> Iterator[Span]:
    """Yield every word that is not a common or clinical word as a possible name, in any case.

    A word that is also a usual name (White, May) is included if it is capitalised inside a sentence
    in lower case.

    Args:
        vocabulary: further lower-case words that are accepted in addition to the word lists.
    """
    for index, lower in enumerate(note.words.lowers):
        if len(lower) > 1 and _is_off(note, index, lower, vocabulary):
            word = note.words[index]
            yield note.span(word.start, word.end, "NAME", "include-list", 0.3, "no clinical word")


_UNITS = words(
    "mg mm cm ml mcg ug kg lb lbs oz cc dl iu meq mmhg mmol mol hz mhz khz kcal cal hr hrs min mins"
    " sec secs wk wks yr yrs am pm vs st nd rd th id ii iii iv vi vii viii ix xi xii bid tid qid qd"
    " prn po"
)
_PREFIXES = re.compile(
    r"(?:ab|ad|anti|auto|bi|bio|cardio|co|contra|de|dys|endo|epi|extra|gastro|hemi|hyper|hypo|in"
    r"|infra|inter|intra|micro"
    r"|mid|mono|multi|neuro|non|ortho|osteo|pan|para|peri|poly|post|pre|pseudo|psycho|re|retro"
    r"|semi|sub|super|supra"
    r"|tachy|thoraco|trans|tri|ultra|un|uni)(?=.{4})"
)


@cache
def demo_vocabulary() -> frozenset[str]:
    """Return the words of the synthetic notes' diseases, drugs and terms, without usual names."""
    root = files("clinveil.corpus.demo").joinpath("language")
    texts = [
        root.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        for name in ("drugs", "terms", "misspellings")
    ]
    texts += [file.read_text(encoding="utf-8") for file in root.joinpath("diagnoses").iterdir()]
    vocabulary = {word.lower() for text in texts for word in re.findall(r"[^\W\d_]{3,}", text)}
    return frozenset(word for word in vocabulary if not lexical_classes(word) & _USUAL)


def _is_off(note: NoteView, index: int, lower: str, vocabulary: AbstractSet[str]) -> bool:
    parts = filter(None, lower.replace("'", "").split("-"))
    if lower not in vocabulary and not all(
        len(p) == 1 or p in vocabulary or _is_listed(p) for p in parts
    ):
        # An eponym followed by its noun stays: Foley catheter, Kerrison rongeur.
        following = note.words.lowers[index + 1] if index + 1 < len(note.words) else ""
        return lower not in word_list("eponyms") or following not in word_list("eponym_nouns")
    word = note.words[index]
    if (
        lower in word_list("function")
        or not word.classes & _USUAL
        or not word.capital
        or word.shouted
    ):
        return False
    # Inside a lower-case sentence; at its start or in a heading, a capital is not informative.
    before = note.plain[: word.start].rstrip(" \t")[-1:]
    if not index or not before or before in _STOPS or note.words[index - 1].capital:
        return False
    return index + 1 == len(note.words) or not note.words[index + 1].capital


@lru_cache(maxsize=1 << 16)
def _is_listed(part: str) -> bool:
    """Whether a word is a common, clinical or demo word or a unit, also after a prefix (except for
    usual names).
    """
    if is_word(part) or part in _UNITS or part in demo_vocabulary():
        return True
    rest = _PREFIXES.sub("", part, count=1)
    return (
        rest != part
        and not lexical_classes(part) & _USUAL
        and (is_word(rest) or rest in demo_vocabulary())
    )


if TYPE_CHECKING:
    from clinveil.corpus import Patient
    from clinveil.phi.settings import PhiSettings

Revise = Callable[[str, str, list[Span]], list[Span]]
"""(note id, text, spans) -> final spans of a note, such as those after a reviewer's decisions."""
Propagate = Literal["patient", "note", "none"]


class Finder:
    """Detects identifiers; `Deidentifier` treats them.

    Args:
        finders: detectors to use instead of `DETECTORS`; the default of `propagate` is then
            `none`.
        patients: known patients by patient id.
        revise: returns the final spans of a note.
        propagate: where to search for a name detected with a high score: in all notes of its
            patient (collected by a pass over the corpus; for a single note, only its own names are
            known), in its note, or nowhere.
        recall_first: whether every word that is not a common or clinical word is a possible name.
        kept: labels that the policy keeps unchanged; any other label that overlaps one of them
            wins.
        second_opinion: reads the sentences with words that the detectors left unsettled.
        staff: names of the staff list. find_words, keep_words: those of the policy. A keep word is
            cut out of the spans of all detectors, except those of the patient list, the staff list
            and the find words.
    """

    def __init__(
        self,
        finders: Sequence[Detector] | None = None,
        *,
        patients: Mapping[str, Patient] | None = None,
        revise: Revise | None = None,
        propagate: Propagate | None = None,
        recall_first: bool = False,
        kept: Collection[str] = (),
        staff: StaffNames | None = None,
        find_words: WordList | None = None,
        keep_words: WordList | None = None,
        second_opinion: SecondOpinion | None = None,
    ) -> None:
        self.second_opinion = second_opinion
        self.staff = staff
        self.find_words = find_words
        self.keep_words = keep_words
        self.detectors = DETECTORS if finders is None else tuple(finders)
        self.patients = patients or {}
        self.revise = revise
        self.kept = kept
        self.propagate: Propagate = propagate or ("patient" if finders is None else "none")
        self.recall_first = recall_first
        self.name_index = NameIndex()

    @classmethod
    def of(
        cls,
        settings: PhiSettings,
        patients: Mapping[str, Patient] | None = None,
        revise: Revise | None = None,
    ) -> Finder:
        """Return the finder for some settings."""
        policy = settings.policy()
        detectors = adapters_for([settings.engine]) if settings.engine else with_tagger(settings)
        return cls(
            [*detectors, *adapters_for(settings.also)],
            patients=patients,
            revise=revise,
            propagate=settings.propagate,
            recall_first=policy.recall_first,
            kept=policy.kept,
            second_opinion=_second_opinion(settings),
            staff=read_staff_names(settings.staff) if settings.staff else None,
            find_words=policy.find_words,
            keep_words=policy.keep_words,
        )

    @property
    def uses_other_notes(self) -> bool:
        """Whether the result for a note depends on other notes."""
        return self.propagate == "patient" or self.recall_first

    def find(
        self, text: str, patient_id: str = "", note_id: str = "", detected: list[Span] | None = None
    ) -> list[Span]:
        """Return the spans of one note: sorted, without overlaps, in code points of `text`.

        Args:
            detected: result of `detect` for this note, if known.
        """
        view = self.view(text, patient_id, note_id)
        further = list[Span]()
        spans = self.detect(view) if detected is None else detected
        if self.propagate != "none":
            names = names_in(*view.within(spans)) | self.name_index.patients.get(
                patient_id, frozenset()
            )
            further += mentions(view, names, self.name_index.staff, spans)
        if self.recall_first:
            further += off_list(view, self.name_index.vocabulary)
        further = self._without_kept(view, further)
        spans = resolve(text, [*spans, *further], self.kept) if further else spans
        return spans if self.revise is None else self.revise(note_id, text, spans)

    def view(self, text: str, patient_id: str = "", note_id: str = "") -> NoteView:
        """Return the detectors' view of a note, with the known data of its patient."""
        return NoteView(text, note_id, self.patients.get(patient_id), self.staff)

    def detect(self, view: NoteView) -> list[Span]:
        """Return the spans of the detectors in one note, without names of other notes and without
        revision.
        """
        spans = [span for detector in self.detectors for span in detector.find(view)]
        if self.find_words is not None:
            spans += self.find_words.spans(view)
        spans_of_rules = resolve(view.text, self._without_kept(view, spans), self.kept)
        opinions = (
            []
            if self.second_opinion is None
            else list(self.second_opinion.find(view, spans_of_rules))
        )
        return (
            resolve(view.text, [*spans_of_rules, *self._without_kept(view, opinions)], self.kept)
            if opinions
            else spans_of_rules
        )

    def kept_ranges_of(self, view: NoteView) -> list[tuple[int, int]]:
        """Return the ranges of a note that are never replaced."""
        if self.keep_words is None:
            return []
        row = (
            ()
            if view.patient is None
            else (part for name in view.patient.name for part in name.split("-"))
        )
        return self.keep_words.kept(view, (part.casefold() for part in row))

    def _without_kept(self, view: NoteView, spans: list[Span]) -> list[Span]:
        """Cut the keep words out of spans, except those of lists of the site."""
        if not (kept_ranges := self.kept_ranges_of(view)):
            return spans
        sure = [span for span in spans if span.detector in _LISTS]
        return [
            *sure,
            *cut(view.text, (span for span in spans if span.detector not in _LISTS), kept_ranges),
        ]

    def for_patients(self, patient_ids: Iterable[str]) -> Finder:
        """Return a copy restricted to the data of some patients, as sent to a worker with its
        batch.
        """
        ids = set(patient_ids)
        other = copy(self)
        other.patients = {
            patient_id: self.patients[patient_id]
            for patient_id in ids
            if patient_id in self.patients
        }
        other.name_index = self.name_index.for_patients(ids)
        return other

    def with_context(self, name_index: NameIndex) -> Finder:
        """Return a copy with the names of other notes."""
        other = copy(self)
        other.name_index = name_index
        return other


def with_tagger(settings: PhiSettings) -> tuple[Detector, ...]:
    """Return all detectors with the configured tagger, or without one.

    Raises UsageError if the settings both name and disable a tagger, and InputError for an invalid
    model file.
    """
    if settings.tagger and settings.no_tagger:
        raise UsageError("settings no_tagger and tagger exclude each other")
    others = tuple(detector for detector in DETECTORS if not isinstance(detector, TaggerDetector))
    if settings.no_tagger:
        return others
    chosen = TaggerDetector(settings.tagger)
    chosen.tagger()  # fail here, not in a worker
    return (*others, chosen)


def _second_opinion(settings: PhiSettings) -> SecondOpinion | None:
    """Return the second opinion if the settings ask for it; a missing package is reported now, not
    in a worker.
    """
    if settings.second_opinion != "on" or settings.engine:
        return None
    opinion = SecondOpinion()
    opinion.check()
    return opinion


def resolve(text: str, spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Return sorted spans without overlaps that cover every character of the given ones, in any
    input order.

    Args:
        kept: labels that the policy keeps unchanged. A span of any other label that overlaps one of
            them wins, so that no name is kept because it may also be a town.
    """
    return united(
        (_to_word_edges(text, span) if span.label == "NAME" else span for span in spans), kept
    )


def united(spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Return sorted spans with overlapping ones merged; the input order has no effect."""
    # runs in which each span overlaps an earlier one
    clusters = list[list[Span]]()
    reach = 0
    for span in sorted(spans):
        if span.start >= reach or not clusters:
            clusters.append([])
        clusters[-1].append(span)
        reach = max(reach, span.end)
    return [_union(cluster, kept) for cluster in clusters]


def _union(spans: list[Span], kept: Collection[str]) -> Span:
    if len(spans) == 1:
        return spans[0]
    winner = max(
        spans, key=lambda s: (s.label not in kept, s.end - s.start, s.score, s.label, s.detector)
    )
    return winner.with_range(spans[0].start, max(s.end for s in spans))


# The generation of a person; the point of an abbreviation, but not the end of a sentence.
_GENERATION = re.compile(
    r"(?:,?[ \t]+(?:(?i:jn?r|sn?r)(?![^\W_])|(?:II|III"
    r"|IV)(?![^\W_])(?!\.\d)))?(?:(?<=[jJsS][rR])\.(?=[,;:)]|\s+[a-z(]))?"
)


def _to_word_edges(text: str, span: Span) -> Span:
    """Extend a name to the boundaries of its words, including hyphenated parts and a generation
    (Jr.).

    A possessive ending is left out.
    """
    start = span.start
    end = span.end
    while start > 0 and text[start - 1].isalpha() and text[start].isalpha():
        start -= 1
    while end < len(text):
        last = text[end - 1]
        hyphen = text[end] == "-" and text[end + 1 : end + 2].isalpha()
        if not (last.isalpha() and (hyphen or text[end].isalpha())) and not (
            last == "-" and text[end].isalpha()
        ):
            break
        end += 1
    if end < len(text) and text[end] in ",. \t" and (match := _GENERATION.match(text, end)):
        end = match.end()
    return span if (start, end) == (span.start, span.end) else span.with_range(start, end)
