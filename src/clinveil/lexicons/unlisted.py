"""Generate names that are in no word or name list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clinveil.lexicons.ambiguity import lexical_classes

Below = Callable[[int], int]
"""Return a random integer in [0, n)."""


def _split(syllables: str) -> tuple[str, ...]:
    return tuple(syllables.split())


_STARTS = _split("b br ch d dr f g gr h j k kr l m n p r s sh st t th tr v w y z")
_MIDDLES = _split("a ae ai e ee ei i ia io o oa oo ou u ua y")
_ENDS = _split("ck d ff g k l ll m mb n nd ng nk p r rd rk rsk s sh sk t th tz v x z")


def unlisted_name(below: Below) -> str:
    """Return a capitalised name of two or three syllables that is in no list of names or words."""

    def choice(items: Sequence[str]) -> str:
        return items[below(len(items))]

    while True:
        parts = [choice(_STARTS) + choice(_MIDDLES) for _ in range(1 + below(2))]
        name = "".join([*parts, choice(_STARTS)[:1] + choice(_MIDDLES)[:1] + choice(_ENDS)])
        if not lexical_classes(name):
            return name.capitalize()
