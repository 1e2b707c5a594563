"""Notes that stand alone: with their layout, with their length, or their patient with his combination of kept values.

An attacker who holds a copy of the source note finds a unique layout without reading a word. The skeleton of a note
keeps punctuation and line breaks and writes `a` for a word and `0` for a number; under `--layout plain` it is the
number of words. Whoever knows the kept values of a person finds the one note that has them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.threats import tagged
from clinveil.core.finding import Detail, Finding
from clinveil.core.tokens import Kind, character_classes, tokenize
from clinveil.core.types import Ints
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Corpus, rows
from clinveil.scale import Map, serial
from clinveil.stats.findings import unmeasured
from clinveil.vectors.count import over_words

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
        many = 0 if context.counts is None else context.counts.n_tokens
        over = over_words(many, context.workers)
        shapes = [tagged(f, "recipient", "layout", gated=False) for f in layout(context.released, over)]
        kept = kept_columns(context.released, context.keep)
        return [*shapes, *(tagged(f, "recipient", "kept columns", gated=False) for f in kept)]


def layout(released: Corpus, over: Map = serial) -> list[Finding]:
    """The share of released notes with a layout skeleton, and with a number of tokens, that no other note has.

    Streams; 16 bytes a note are kept. Counted over the whole release, so there is no sampling interval.
    """
    shapes, lengths = array("Q"), array("Q")
    for some, tokens in over(shapes_of, released.batches()):
        shapes.extend(some)
        lengths.extend(tokens)
    found = []
    for measure, keys in (("attack.layout_unique", shapes), ("attack.length_unique", lengths)):
        sizes = _sizes(keys)
        detail: dict[str, Any] = {"why": "no guess is made, so there is no chance"}
        if sizes.size:
            few = float(sizes[sizes < SMALL].sum() / len(keys))
            detail |= {"distinct": len(sizes), f"below_{SMALL}": few, "largest": int(sizes.max())}
        found.append(_unique(measure, len(keys), int((sizes == 1).sum()), detail))
    return found


def shapes_of(batch: pa.RecordBatch) -> tuple[array[int], array[int]]:
    """Of each note of a batch the hash of its skeleton, and its number of tokens."""
    shapes, lengths = array("Q"), array("Q")
    for note in rows([batch]):
        shape = skeleton(note.text)
        shapes.append(_hash(shape))
        lengths.append(shape.count("a") + shape.count("0"))
    return shapes, lengths


def skeleton(text: str) -> str:
    """The layout of a text: `a` a word, `0` a number, punctuation and line breaks as they are."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = character_classes()[codes]
    if (kinds == Kind.IGNORABLE).any():  # whose word they belong to, the tokenizer says
        return "".join(_shape(kind, text[start:end]) for start, end, kind in tokenize(text))
    return _collapsed(np.where((kinds == Kind.PUNCT) | (codes == _LINE), codes, _SHOWN[kinds]))


_A, _0, _BLANK, _LINE = (ord(c) for c in "a0 \n")
_SHOWN = np.zeros(len(Kind), dtype=np.uint32)  # 0: not at all
_SHOWN[[Kind.WORD, Kind.NUMBER, Kind.SPACE]] = _A, _0, _BLANK


def _collapsed(kind: NDArray[np.uint32]) -> str:
    """Runs of one kind as one character, of code points (n,) that are shown as they are but for runs."""
    first = np.ones(kind.size, dtype=np.bool_)  # of a run
    np.not_equal(kind[1:], kind[:-1], out=first[1:])
    kept = (first | ((kind != _A) & (kind != _0))) & (kind != 0)
    blank, line = kind == _BLANK, kind == _LINE
    if line.any():  # a run of white space is its line breaks, or one space where it has none
        gap = blank | line
        opens = gap.copy()
        opens[1:] &= ~gap[:-1]
        run = np.cumsum(opens)
        broken = np.bincount(run[line], minlength=int(run[-1]) + 1) > 0
        kept &= ~blank | (opens & ~broken[run])
    else:
        kept &= ~blank | first
    return kind[kept].tobytes().decode("utf-32-le", "surrogatepass")


def _space(run: str) -> str:
    return "\n" * run.count("\n") or " "


def _shape(kind: Kind, token: str) -> str:
    shapes = {Kind.WORD: "a", Kind.NUMBER: "0", Kind.PUNCT: token, Kind.OTHER: ""}
    return _space(token) if kind == Kind.SPACE else shapes[kind]


def kept_columns(released: Corpus, keep: Sequence[str]) -> list[Finding]:
    """The share of notes whose kept values, taken together, no other patient's note has; nothing where none is kept.

    A note without a patient is its own. Streams; 16 bytes a note are kept. Source: k-anonymity with k = 1, Sweeney
    2002.
    """
    if not keep:
        return []
    keys, people = array("Q"), array("Q")
    for batch in released.batches():
        columns = [batch.column(name).to_pylist() for name in keep]
        keys.extend(_hash(repr(values)) for values in zip(*columns, strict=True))
        whose = zip(*(batch.column(name).to_pylist() for name in (PATIENT_ID, NOTE_ID)), strict=True)
        people.extend(_hash(repr(patient or (note,))) for patient, note in whose)
    sizes, owners = _owners(keys, people)
    more = {"combinations": int(sizes.size), "smallest": int(owners.min())} if sizes.size else {}
    alone = int(sizes[owners == 1].sum())
    return [_unique("attack.kept_columns_unique", len(keys), alone, {"columns": len(keep), **more})]


def _owners(keys: array[int], people: array[int]) -> tuple[Ints, Ints]:
    """How many notes have each key, and how many people."""
    one, two = (np.frombuffer(values, dtype=np.uint64) for values in (keys, people))
    order = np.lexsort((two, one))
    new_key, new_one = (np.diff(values[order], prepend=~values[order][:1]) != 0 for values in (one, two))
    group = np.cumsum(new_key) - 1
    return np.bincount(group), np.bincount(group[new_key | new_one])


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _sizes(keys: array[int]) -> Ints:
    """How many notes have each key."""
    return np.unique(np.frombuffer(keys, dtype=np.uint64), return_counts=True)[1].astype(np.int64)


def _unique(measure: str, n: int, alone: int, detail: Detail) -> Finding:
    if not n:
        return unmeasured(measure, "no released notes", detail=detail, unit="notes")
    about: dict[str, Any] = {"source": SOURCE, "detail": detail, "unit": "notes"}
    return Finding(measure, alone / n, n, "lower", count=alone, method="none: counted over the whole release", **about)
