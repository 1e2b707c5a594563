"""How what several detectors found is put together: all of it, what enough agree on, or more than they found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.words import is_word, word_list
from clinveil.phi.detector import words
from clinveil.phi.name_index import SURE
from clinveil.phi.note import NoteView, Word

Combination = Literal["union", "vote", "recall-first"]
LISTED = "include-list"
_SCORE = 0.3
_STOPS = frozenset(".!?:;\n-*•")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY


def agreed(spans: Iterable[Span], votes: int) -> list[Span]:
    """Those that are sure by themselves, or on whose place so many detectors agree; a detector has one vote."""
    every = sorted(spans)
    return [span for span in every if span.score >= SURE or _votes(span, every) >= votes]


def _votes(span: Span, every: list[Span]) -> int:
    return len({other.detector for other in every if other.overlaps(span)})


def off_list(note: NoteView, vocabulary: AbstractSet[str]) -> Iterator[Span]:
    """Every word that is no common or clinical one, however it is written, as a name that may be.

    A word that is also a usual name (White, May) goes too where it has a capital within a sentence of small letters.

    Args:
        vocabulary: lower-case words that are let through beside those of the lists.
    """
    for at, lower in enumerate(note.words.lowers):
        if len(lower) > 1 and _is_off(note, at, lower, vocabulary):
            word = note.words[at]
            yield note.span(word.start, word.end, "NAME", LISTED, _SCORE, "no clinical word")


_UNITS = words(
    "mg mm cm ml mcg ug kg lb lbs oz cc dl iu meq mmhg mmol mol hz mhz khz kcal cal hr hrs min mins sec secs wk wks yr"
    " yrs am pm vs st nd rd th id ii iii iv vi vii viii ix xi xii bid tid qid qd prn po"
)
_PREFIXES = re.compile(
    r"(?:ab|ad|anti|auto|bi|bio|cardio|co|contra|de|dys|endo|epi|extra|gastro|hemi|hyper|hypo|in|infra|inter|intra|micro"
    r"|mid|mono|multi|neuro|non|ortho|osteo|pan|para|peri|poly|post|pre|pseudo|psycho|re|retro|semi|sub|super|supra"
    r"|tachy|thoraco|trans|tri|ultra|un|uni)(?=.{4})"
)


@cache
def demo_vocabulary() -> frozenset[str]:
    """The words of the invented notes' diseases, drugs and terms, which hold no names."""
    root = files("clinveil.corpus.demo").joinpath("language")
    texts = [root.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in ("drugs", "terms", "misspellings")]
    texts += [one.read_text(encoding="utf-8") for one in root.joinpath("diagnoses").iterdir()]
    usual = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
    found = {word.lower() for text in texts for word in re.findall(r"[^\W\d_]{3,}", text)}
    return frozenset(word for word in found if not lexical_classes(word) & usual)


def _is_off(note: NoteView, at: int, lower: str, vocabulary: AbstractSet[str]) -> bool:
    if not _known(lower, vocabulary):
        return not _names_a_thing(note, at, lower)
    word = note.words[at]
    if lower in word_list("function"):
        return False
    return bool(word.classes & _USUAL) and word.capital and not word.shouted and _within(note, at, word)


def _known(lower: str, vocabulary: AbstractSet[str]) -> bool:
    """Whether a word is known whole, or all its hyphened parts are."""
    return lower in vocabulary or all(
        len(part) == 1 or part in vocabulary or _is_listed(part) for part in lower.replace("'", "").split("-") if part
    )


@lru_cache(maxsize=1 << 16)
def _is_listed(part: str) -> bool:
    """Common, clinical and demo words, units, and these behind a prefix; a usual name is none by its prefix."""
    if is_word(part) or part in _UNITS or part in demo_vocabulary():
        return True
    rest = _PREFIXES.sub("", part, count=1)
    return rest != part and not lexical_classes(part) & _USUAL and (is_word(rest) or rest in demo_vocabulary())


def _names_a_thing(note: NoteView, at: int, lower: str) -> bool:
    """Whether an eponym has its noun behind it: Foley catheter, Kerrison rongeur."""
    following = note.words.lowers[at + 1] if at + 1 < len(note.words) else ""
    return lower in word_list("eponyms") and following in word_list("eponym_nouns")


def _within(note: NoteView, at: int, word: Word) -> bool:
    """Whether a word stands in a sentence of small letters: a capital at its start, or in a heading, says nothing."""
    before = note.plain[: word.start].rstrip(" \t")[-1:]
    if not at or not before or before in _STOPS or note.words[at - 1].capital:
        return False
    return at + 1 == len(note.words) or not note.words[at + 1].capital
