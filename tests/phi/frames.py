"""Sentence frames of `frames/`, filled with names that no part of clinveil is trained on."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from clinveil.lexicons import (
    LexicalClass,
    given_names,
    held_out,
    is_word,
    lexical_classes,
    surnames,
    word_list,
    world_surnames,
)

FOLDER = Path(__file__).with_name("frames")
_SLOT = re.compile(r"\{(full|last)\}")
_STARTS = [
    "b",
    "br",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "sh",
    "st",
    "t",
    "th",
    "tr",
    "v",
    "w",
    "y",
    "z",
]
_MIDDLES = [
    "a",
    "ae",
    "ai",
    "e",
    "ee",
    "ei",
    "i",
    "ia",
    "io",
    "o",
    "oa",
    "oo",
    "ou",
    "u",
    "ua",
    "y",
]
_ENDS = [
    "ck",
    "d",
    "ff",
    "g",
    "k",
    "l",
    "ll",
    "m",
    "mb",
    "n",
    "nd",
    "ng",
    "nk",
    "p",
    "r",
    "rd",
    "rk",
    "rsk",
    "s",
    "sh",
    "sk",
    "t",
    "th",
    "tz",
    "v",
    "x",
    "z",
]


def lines(name: str) -> list[str]:
    """Return the frames of a file, without its comments."""
    rows = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [row.replace("\\n", "\n") for row in rows if row and not row.startswith("#")]


def _capital(name: str) -> str:
    return name.capitalize()


@cache
def _given(words: bool) -> list[str]:
    usual = {
        name
        for sex in ("female", "male")
        for name, share in given_names(sex).items()
        if share >= 0.01
    }
    named = sorted(name for name in usual if held_out(name) and len(name) > 2)
    function = word_list("function")
    return [name for name in named if is_word(name) == words and name not in function]


@cache
def _family(kind: str) -> list[str]:
    if kind == "foreign":
        rare = sorted(form for form in world_surnames() if surnames().get(form, 0.0) < 0.005)
        return [form for form in rare if len(form) > 3 and held_out(form) and not _ordinary(form)]
    usual = [form for form, share in surnames().items() if share >= 0.002 and held_out(form)]
    return [form for form in usual if not _ordinary(form) and len(form) > 2]


def _ordinary(form: str) -> bool:
    return bool(lexical_classes(form) & (LexicalClass.WORD | LexicalClass.EPONYM))


def _unlisted(rng: random.Random) -> str:
    """Return a name of two or three syllables that is in no list of names or words."""
    while True:
        parts = [rng.choice(_STARTS) + rng.choice(_MIDDLES) for _ in range(1 + rng.randrange(2))]
        name = "".join(
            [*parts, rng.choice(_STARTS)[:1] + rng.choice(_MIDDLES)[:1] + rng.choice(_ENDS)]
        )
        if not lexical_classes(name):
            return name


def family(kind: str, rng: random.Random) -> str:
    """Return a family name: usual, foreign or unlisted."""
    return _capital(_unlisted(rng) if kind == "unlisted" else rng.choice(_family(kind)))


def full(kind: str, rng: random.Random) -> str:
    """Return a full name whose given name is usual, or a word (kinds `word …`)."""
    given = rng.choice(_given(kind.startswith("word")))
    return f"{_capital(given)} {family(kind.split()[-1], rng)}"


KINDS = {
    "full": ("usual", "foreign", "unlisted"),
    "word": ("word usual", "word unlisted"),
    "last": ("usual", "foreign", "unlisted"),
}
"""Kinds of names of each measure: full names, given names that are words, and family names
alone.
"""


def cases(
    measure: str, kind: str, *, names: int = 4, seed: int = 33
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield (text, offsets of the names) for each frame of a measure, `names` times."""
    slot = "last" if measure == "last" else "full"
    make: Callable[[str, random.Random], str] = family if slot == "last" else full
    rng = random.Random(f"{seed} {kind}")
    for frame in lines("names"):
        if f"{{{slot}}}" not in frame:
            continue
        for _ in range(names):
            text = ""
            offsets = []
            position = 0
            for match in _SLOT.finditer(frame):
                name = make(kind, rng)
                text += frame[position : match.start()]
                offsets.append((len(text), len(text) + len(name)))
                text += name
                position = match.end()
            yield text + frame[position:], offsets
