"""What the shape of a note gives away: how many released notes are alone with their layout, or with their length.

An attacker who holds a copy of the source note finds a unique layout without reading a word. The skeleton of a note
keeps punctuation and line breaks and writes `a` for a word and `0` for a number; under `--layout plain` it is the
number of words.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from clinveil.core.finding import Finding
from clinveil.core.tokens import Kind, tokenize
from clinveil.corpus.corpus import TEXT

_WORD, _NUMBER, _SPACE = re.compile("[A-Za-z]+"), re.compile("[0-9]+"), re.compile(r"\s+")
_OTHER = dict.fromkeys(c for c in range(128) if not chr(c).isprintable() and chr(c) != "\n")
SMALL = 5


def _space(run: str) -> str:
    return "\n" * run.count("\n") or " "


def skeleton(text: str) -> str:
    """The layout of a text: `a` a word, `0` a number, punctuation and line breaks as they are."""
    if text.isascii():
        text = _NUMBER.sub("0", _WORD.sub("a", text))
        return _SPACE.sub(lambda match: _space(match[0]), text).translate(_OTHER)
    return "".join(_shape(kind, text[start:end]) for start, end, kind in tokenize(text))


def _shape(kind: Kind, token: str) -> str:
    shapes = {Kind.WORD: "a", Kind.NUMBER: "0", Kind.PUNCT: token, Kind.OTHER: ""}
    return _space(token) if kind == Kind.SPACE else shapes[kind]


def layout(released: Iterable[pa.RecordBatch]) -> list[Finding]:
    """The share of released notes with a layout skeleton, and with a number of tokens, that no other note has.

    Streams; 16 bytes a note are kept. Counted over the whole release, so there is no sampling interval.
    Source: linkage by layout; k-anonymity: Sweeney 2002.
    """
    shapes, lengths = array("Q"), array("Q")
    for batch in released:
        for text in batch[TEXT].to_pylist():
            if text is not None:
                shape = skeleton(text)
                digest = hashlib.blake2b(shape.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                shapes.append(int.from_bytes(digest, "little"))
                lengths.append(shape.count("a") + shape.count("0"))
    return [_unique("attack.layout_unique", shapes), _unique("attack.length_unique", lengths)]


def _unique(measure: str, keys: array[int]) -> Finding:
    n = len(keys)
    if not n:
        return Finding(measure, None, 0, "lower", unit="notes", detail={"why": "no released notes"})
    _, sizes = np.unique(np.frombuffer(keys, dtype=np.uint64), return_counts=True)
    detail: dict[str, float | int | str] = {
        "why": "no guess is made, so there is no chance",
        "distinct": len(sizes),
        f"below_{SMALL}": float(sizes[sizes < SMALL].sum() / n),
        "largest": int(sizes.max()),
    }
    alone = int((sizes == 1).sum())
    return Finding(
        measure,
        alone / n,
        n,
        "lower",
        source="k-anonymity: Sweeney 2002",
        detail=detail,
        unit="notes",
        count=alone,
        method="none: counted over the whole release",
    )
