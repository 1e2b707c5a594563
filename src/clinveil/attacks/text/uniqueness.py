"""Notes that are unique in layout or length, or in their combination of kept column values.

An attacker with a copy of the source note can find a unique layout without reading a word. The
skeleton of a note keeps punctuation and line breaks and has `a` for a word and `0` for a number;
with `--layout plain` it is the number of words. With the kept values of a person, an attacker finds
the one note that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Corpus, rows
from clinveil.corpus.uniqueness import Hashes, hashes, joined
from clinveil.scale import Map, serial
from clinveil.scale.pieces import each_batch
from clinveil.stats.findings import unmeasured

SMALL = 5
SOURCE = "k-anonymity: Sweeney 2002"


@attacks.register("uniqueness")
class Uniqueness(Attack):
    """Count released notes that are unique in layout, length, or kept column values."""

    needs = frozenset({"released"})
    on_release = True
    sees_all = True
    order = 900

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; deterministic."""
        assert context.released is not None
        shapes = [
            tagged(f, "recipient", "layout", gated=False)
            for f in layout(context.released, context.over)
        ]
        kept = kept_columns(context.released, context.keep, context.over)
        return [*shapes, *(tagged(f, "recipient", "kept columns", gated=False) for f in kept)]


def layout(released: Corpus, over: Map = serial) -> list[Finding]:
    """Measure the share of released notes with a unique layout skeleton, or number of tokens.

    Streams; 16 bytes per note are kept. All notes of the release are counted, so there is no
    sampling interval.
    """
    batches = list(each_batch(over, shapes_of, released))
    shapes, lengths = (joined([batch[i] for batch in batches]) for i in (0, 1))
    found = []
    for measure, keys in (("attack.layout_unique", shapes), ("attack.length_unique", lengths)):
        sizes = np.unique(keys, return_counts=True)[1]
        detail: dict[str, Any] = {"why": "no guess is made, so there is no chance level"}
        if sizes.size:
            few = float(sizes[sizes < SMALL].sum() / len(keys))
            detail |= {"distinct": len(sizes), f"below_{SMALL}": few, "largest": int(sizes.max())}
        found.append(_unique(measure, len(keys), int((sizes == 1).sum()), detail))
    return found


def shapes_of(batch: pa.RecordBatch) -> tuple[Hashes, Hashes]:
    """Return a hash of the skeleton and the number of tokens for each note of a batch."""
    shapes = [skeleton(note.text) for note in rows([batch])]
    return hashes(shapes), np.array(
        [shape.count("a") + shape.count("0") for shape in shapes], dtype=np.uint64
    )


def skeleton(text: str) -> str:
    """Return the layout of a text: `a` for a word, `0` for a number, punctuation and line breaks
    unchanged.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = character_classes()[codes]
    if (kinds == Kind.IGNORABLE).any():  # the tokenizer assigns them to words
        return "".join(_shape(kind, text[start:end]) for start, end, kind in tokenize(text))
    return _collapsed(np.where((kinds == Kind.PUNCT) | (codes == _LINE), codes, _REPLACED[kinds]))


_A, _0, _BLANK, _LINE = (ord(c) for c in "a0 \n")
_REPLACED = np.zeros(len(Kind), dtype=np.uint32)  # 0: omitted
_REPLACED[[Kind.WORD, Kind.NUMBER, Kind.SPACE]] = _A, _0, _BLANK


def _collapsed(kind: NDArray[np.uint32]) -> str:
    """Collapse runs of words, numbers and spaces in code points (n,)."""
    first = np.ones(kind.size, dtype=np.bool_)  # first of a run
    np.not_equal(kind[1:], kind[:-1], out=first[1:])
    kept = (first | ((kind != _A) & (kind != _0))) & (kind != 0)
    blank = kind == _BLANK
    line = kind == _LINE
    if line.any():  # white space becomes its line breaks, or one space
        gap = blank | line
        run_starts = gap.copy()
        run_starts[1:] &= ~gap[:-1]
        run = np.cumsum(run_starts)
        broken = np.bincount(run[line], minlength=int(run[-1]) + 1) > 0
        kept &= ~blank | (run_starts & ~broken[run])
    else:
        kept &= ~blank | first
    return kind[kept].tobytes().decode("utf-32-le", "surrogatepass")


def _shape(kind: Kind, token: str) -> str:
    space = "\n" * token.count("\n") or " "
    return {Kind.WORD: "a", Kind.NUMBER: "0", Kind.PUNCT: token, Kind.OTHER: "", Kind.SPACE: space}[
        kind
    ]


def kept_columns(released: Corpus, keep: Sequence[str], over: Map = serial) -> list[Finding]:
    """Measure the share of notes with a combination of kept values that no other patient's note
    has.

    Empty if no column is kept. A note without a patient counts as a patient. Streams; 16 bytes per
    note are kept.
    Source: k-anonymity with k = 1, Sweeney 2002.
    """
    if not keep:
        return []
    batches = list(each_batch(over, partial(kept_values_of, keep), released))
    keys, people = (joined([batch[i] for batch in batches]) for i in (0, 1))
    sizes, owners = _owners(keys, people)
    more = {"combinations": int(sizes.size), "smallest": int(owners.min())} if sizes.size else {}
    n_unique = int(sizes[owners == 1].sum())
    return [
        _unique("attack.kept_columns_unique", len(keys), n_unique, {"columns": len(keep), **more})
    ]


def kept_values_of(keep: Sequence[str], batch: pa.RecordBatch) -> tuple[Hashes, Hashes]:
    """Return a hash of the kept values, and one of the patient, for each note of a batch."""
    values = zip(*(batch.column(name).to_pylist() for name in keep), strict=True)
    owners = zip(*(batch.column(name).to_pylist() for name in (PATIENT_ID, NOTE_ID)), strict=True)
    return hashes(map(repr, values)), hashes(repr(patient or (note,)) for patient, note in owners)


def _owners(keys: Hashes, people: Hashes) -> tuple[Ints, Ints]:
    """Return the number of notes and of patients for each key."""
    order = np.lexsort((people, keys))
    new_key, new_one = (
        np.diff(values[order], prepend=~values[order][:1]) != 0 for values in (keys, people)
    )
    group = np.cumsum(new_key) - 1
    return np.bincount(group), np.bincount(group[new_key | new_one])


def _unique(measure: str, n: int, n_unique: int, detail: Detail) -> Finding:
    if not n:
        return unmeasured(measure, "no released notes", detail=detail, unit="notes")
    about: dict[str, Any] = {"source": SOURCE, "detail": detail, "unit": "notes"}
    return Finding(
        measure,
        n_unique / n,
        n,
        "lower",
        count=n_unique,
        method="none: all notes of the release are counted",
        **about,
    )
