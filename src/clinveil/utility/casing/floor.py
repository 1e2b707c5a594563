"""What letter case costs nothing to restore: each word's most frequent casing, and casings dealt out anew."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from numpy.random import Generator


def usual_casings(lines: Sequence[str]) -> dict[str, str]:
    """The most frequent casing of each lowered word of the training lines; of equally frequent ones the first seen."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for word in line.split():
            seen[word.lower()][word] += 1
    return {lowered: casings.most_common(1)[0][0] for lowered, casings in seen.items()}


def restore_usual(lowered: Sequence[str], usual: Mapping[str, str]) -> list[str]:
    """Lines with each word in its usual casing; unknown words stay lower case, white space becomes one space."""
    return [" ".join(usual.get(word, word) for word in line.split()) for line in lowered]


def dealt_anew(restored: Sequence[str], rng: Generator) -> list[str]:
    """The same words in lower case with the words' casings (places of capitals) dealt out anew among them (control)."""
    words = [line.split() for line in restored]
    patterns = [tuple(i for i, c in enumerate(w) if c != c.lower()) for line in words for w in line]
    order = iter(rng.permutation(len(patterns)).tolist())
    return [" ".join(_cased(word.lower(), patterns[next(order)]) for word in line) for line in words]


def _cased(word: str, places: Sequence[int]) -> str:
    chosen = set(places)
    cased = (c.upper() if i in chosen and len(c.upper()) == 1 else c for i, c in enumerate(word))
    return "".join(cased)


def lowered_lines(lines: Sequence[str]) -> list[str]:
    """Lines in lower case: what the model gets to see."""
    return [line.lower() for line in lines]


__all__ = ["dealt_anew", "lowered_lines", "restore_usual", "usual_casings"]
