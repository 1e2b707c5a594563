"""Names that stand in no list: syllables, until they make no word and no name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clinveil.lexicons.ambiguity import lexical_classes

Below = Callable[[int], int]
"""A whole number in [0, n), drawn at random."""


def _split(syllables: str) -> tuple[str, ...]:
    return tuple(syllables.split())


_STARTS = _split("b br ch d dr f g gr h j k kr l m n p r s sh st t th tr v w y z")
_MIDDLES = _split("a ae ai e ee ei i ia io o oa oo ou u ua y")
_ENDS = _split("ck d ff g k l ll m mb n nd ng nk p r rd rk rsk s sh sk t th tz v x z")


def unlisted_name(below: Below) -> str:
    """A name of two or three syllables, with a capital, that stands in no list and is no word."""

    def any_of(items: Sequence[str]) -> str:
        return items[below(len(items))]

    while True:
        parts = [any_of(_STARTS) + any_of(_MIDDLES) for _ in range(1 + below(2))]
        name = "".join([*parts, any_of(_STARTS)[:1] + any_of(_MIDDLES)[:1] + any_of(_ENDS)])
        if not lexical_classes(name):
            return name.capitalize()
