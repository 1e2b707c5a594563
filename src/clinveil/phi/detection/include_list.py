"""The include-list of policies that prefer recall: every word that is not a common or clinical word may be a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from importlib.resources import files

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.words import is_word, word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.note import NoteView, Word

_STOPS = frozenset(".!?:;\n-*•")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY


def off_list(note: NoteView, vocabulary: AbstractSet[str]) -> Iterator[Span]:
    """Yield every word that is not a common or clinical word as a possible name, in any case.

    A word that is also a usual name (White, May) is included if it is capitalised inside a sentence in lower case.

    Args:
        vocabulary: further lower-case words that are accepted in addition to the word lists.
    """
    for index, lower in enumerate(note.words.lowers):
        if len(lower) > 1 and _is_off(note, index, lower, vocabulary):
            word = note.words[index]
            yield note.span(word.start, word.end, "NAME", "include-list", 0.3, "no clinical word")


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
    """Return the words of the synthetic notes' diseases, drugs and terms, without usual names."""
    root = files("clinveil.corpus.demo").joinpath("language")
    texts = [root.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in ("drugs", "terms", "misspellings")]
    texts += [file.read_text(encoding="utf-8") for file in root.joinpath("diagnoses").iterdir()]
    vocabulary = {word.lower() for text in texts for word in re.findall(r"[^\W\d_]{3,}", text)}
    return frozenset(word for word in vocabulary if not lexical_classes(word) & _USUAL)


def _is_off(note: NoteView, index: int, lower: str, vocabulary: AbstractSet[str]) -> bool:
    if not _known(lower, vocabulary):
        return not _is_eponym(note, index, lower)
    word = note.words[index]
    if lower in word_list("function"):
        return False
    return bool(word.classes & _USUAL) and word.capital and not word.shouted and _within(note, index, word)


def _known(lower: str, vocabulary: AbstractSet[str]) -> bool:
    """Whether a word is accepted, or all its hyphenated parts are."""
    return lower in vocabulary or all(
        len(part) == 1 or part in vocabulary or _is_listed(part) for part in lower.replace("'", "").split("-") if part
    )


@lru_cache(maxsize=1 << 16)
def _is_listed(part: str) -> bool:
    """Whether a word is a common, clinical or demo word or a unit, also after a prefix (except for usual names)."""
    if is_word(part) or part in _UNITS or part in demo_vocabulary():
        return True
    rest = _PREFIXES.sub("", part, count=1)
    return rest != part and not lexical_classes(part) & _USUAL and (is_word(rest) or rest in demo_vocabulary())


def _is_eponym(note: NoteView, index: int, lower: str) -> bool:
    """Whether the word is an eponym followed by its noun: Foley catheter, Kerrison rongeur."""
    following = note.words.lowers[index + 1] if index + 1 < len(note.words) else ""
    return lower in word_list("eponyms") and following in word_list("eponym_nouns")


def _within(note: NoteView, index: int, word: Word) -> bool:
    """Whether a word is inside a lower-case sentence; at its start or in a heading, a capital is not informative."""
    before = note.plain[: word.start].rstrip(" \t")[-1:]
    if not index or not before or before in _STOPS or note.words[index - 1].capital:
        return False
    return index + 1 == len(note.words) or not note.words[index + 1].capital
