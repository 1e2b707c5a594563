"""Notes that stand alone: with their layout, with their length, or with their combination of kept values.

An attacker who holds a copy of the source note finds a unique layout without reading a word. The skeleton of a note
keeps punctuation and line breaks and writes `a` for a word and `0` for a number; under `--layout plain` it is the
number of words. Whoever knows the kept values of a person finds the one note that has them.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.core.finding import Detail, Finding
from clinveil.core.tokens import Kind, tokenize
from clinveil.core.types import Ints
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows
from clinveil.stats.findings import unmeasured

_WORD, _NUMBER, _SPACE = re.compile("[A-Za-z]+"), re.compile("[0-9]+"), re.compile(r"\s+")
_OTHER = dict.fromkeys(c for c in range(128) if not chr(c).isprintable() and chr(c) != "\n")
SMALL = 5
SOURCE = "k-anonymity: Sweeney 2002"


@attacks.register("uniqueness")
class Uniqueness(Attack):
    """Count released notes that are alone with their layout, their length, or their kept values."""

    needs = frozenset({"released"})
    words = words_beside(__file__)
    on_release = True
    sees_all = True
    order = 900

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Nothing is drawn at random."""
        assert context.released is not None
        return [*layout(context.released), *kept_columns(context.released, context.keep)]


def layout(released: Corpus) -> list[Finding]:
    """The share of released notes with a layout skeleton, and with a number of tokens, that no other note has.

    Streams; 16 bytes a note are kept. Counted over the whole release, so there is no sampling interval.
    """
    shapes, lengths = array("Q"), array("Q")
    for _, _, text in rows(released):
        shape = skeleton(text)
        shapes.append(_hash(shape))
        lengths.append(shape.count("a") + shape.count("0"))
    found = []
    for measure, keys in (("attack.layout_unique", shapes), ("attack.length_unique", lengths)):
        sizes = _sizes(keys)
        detail: dict[str, Any] = {"why": "no guess is made, so there is no chance"}
        if sizes.size:
            few = float(sizes[sizes < SMALL].sum() / len(keys))
            detail |= {"distinct": len(sizes), f"below_{SMALL}": few, "largest": int(sizes.max())}
        found.append(_unique(measure, sizes, detail))
    return found


def skeleton(text: str) -> str:
    """The layout of a text: `a` a word, `0` a number, punctuation and line breaks as they are."""
    if text.isascii():
        text = _NUMBER.sub("0", _WORD.sub("a", text))
        return _SPACE.sub(lambda match: _space(match[0]), text).translate(_OTHER)
    return "".join(_shape(kind, text[start:end]) for start, end, kind in tokenize(text))


def _space(run: str) -> str:
    return "\n" * run.count("\n") or " "


def _shape(kind: Kind, token: str) -> str:
    shapes = {Kind.WORD: "a", Kind.NUMBER: "0", Kind.PUNCT: token, Kind.OTHER: ""}
    return _space(token) if kind == Kind.SPACE else shapes[kind]


def kept_columns(released: Corpus, keep: Sequence[str]) -> list[Finding]:
    """The share of notes whose kept values, taken together, no other note has; nothing where no column is kept.

    Streams; 8 bytes a note are kept. Source: k-anonymity with k = 1, Sweeney 2002.
    """
    if not keep:
        return []
    keys = array("Q")
    for batch in released.batches():
        columns = [batch.column(name).to_pylist() for name in keep]
        keys.extend(_hash(repr(values)) for values in zip(*columns, strict=True))
    sizes = _sizes(keys)
    more = {"combinations": int(sizes.size), "smallest": int(sizes.min())} if sizes.size else {}
    return [_unique("attack.kept_columns_unique", sizes, {"columns": len(keep), **more})]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _sizes(keys: array[int]) -> Ints:
    """How many notes have each key."""
    return np.unique(np.frombuffer(keys, dtype=np.uint64), return_counts=True)[1].astype(np.int64)


def _unique(measure: str, sizes: Ints, detail: Detail) -> Finding:
    n, alone = int(sizes.sum()), int((sizes == 1).sum())
    if not n:
        return unmeasured(measure, "no released notes", detail=detail, unit="notes")
    about: dict[str, Any] = {"source": SOURCE, "detail": detail, "unit": "notes"}
    return Finding(measure, alone / n, n, "lower", count=alone, method="none: counted over the whole release", **about)
