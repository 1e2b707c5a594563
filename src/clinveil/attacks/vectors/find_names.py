"""The step that paper B assumes: which words of the vocabulary are name tokens.

First the words that the census or other lists of names hold and that are no ordinary or clinical word; eponyms stay
in, since nearly all of them are surnames. Then words near to those: at least half of a word's ten nearest words are
listed names. Names that nobody listed come in by the second step, which is why a list of names to leave out does not
mend vectors.

Source: the paper's second assumption (introduction: "malicious actors will be able to successfully identify these
tokens"), measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.name_tokens import NameTokens
from clinveil.core.finding import Finding
from clinveil.stats import clopper_pearson
from clinveil.vectors.exact import exact_search
from clinveil.vectors.nearest import Space
from clinveil.vectors.table import Vectors

NEIGHBOURS, SHARE = 10, 0.5
_SOURCE = "JMIR 2020;22(7):e18055, introduction: the assumption that name tokens are found"

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class NamesFound:
    """Words of a vocabulary that were taken for names.

    Attributes:
        listed: (n_words,) bool, by the lists.
        near: (n_words,) bool, by the lists or by nearness.
        words: the words of `near`.
    """

    listed: Mask = field(repr=False)
    near: Mask = field(repr=False)
    words: frozenset[str] = field(repr=False)


def listed_names(words: Sequence[str]) -> Mask:
    """Which words stand in a list of names and are no ordinary word, (n_words,)."""
    from clinveil.lexicons.ambiguity import Reading, reading  # reads its lists

    readings = (reading(word) if len(word) > 1 else Reading.NOTHING for word in words)
    return np.array([bool(r & Reading.NAME) and not r & Reading.WORD for r in readings], dtype=bool)


def near_names(vectors: Vectors, listed: Mask, *, threads: int = 2) -> Mask:
    """Which words are listed, or have listed names as at least half of their ten nearest words, (n_words,)."""
    k = min(NEIGHBOURS, len(vectors) - 1)
    if k < 1 or not listed.any():
        return listed.copy()
    return np.asarray(listed | (listed[_nearest(vectors, k, threads)].mean(axis=1) >= SHARE))


def _nearest(vectors: Vectors, k: int, threads: int) -> NDArray[np.int32]:
    rows = np.arange(len(vectors), dtype=np.int32)
    return exact_search(Space.of(vectors.matrix), rows, rows, k, threads=threads)[0]


def find_names(vectors: Vectors, *, threads: int = 2) -> NamesFound:
    """Pick the name tokens out of a vocabulary, without the truth."""
    listed = listed_names(vectors.words)
    near = near_names(vectors, listed, threads=threads)
    return NamesFound(listed, near, frozenset(vectors.words[row] for row in np.flatnonzero(near).tolist()))


def score_found(
    vectors: Vectors, found: NamesFound, names: NameTokens, rng: Generator, *, threads: int = 2
) -> list[Finding]:
    """Recall and precision of both steps against the true name tokens that have vectors.

    A clinician's or a relative's name that was found counts as wrong, for it is no patient's; precision is a lower
    bound of what a person would grant. Chance is as many words at random. The control runs the same steps from as
    many words at random in place of the lists.
    """
    forms = set(names.forms[token] for token in names.tokens.tolist())
    true = np.array([word in forms for word in vectors.words], dtype=bool)
    listed = np.zeros(len(vectors), dtype=bool)
    listed[rng.choice(len(vectors), size=int(found.listed.sum()), replace=False)] = True
    control = near_names(vectors, listed, threads=threads)
    steps = {"listed": (found.listed, listed), "near": (found.near, control)}
    return [
        finding
        for step, (picked, placebo) in steps.items()
        for finding in (_share("recall", step, true, picked, placebo), _share("precision", step, picked, true, placebo))
    ]


def _share(what: str, step: str, of: Mask, within: Mask, placebo: Mask) -> Finding:
    """The share of `of` that is `within`; the placebo stands for what was picked."""
    n, both = int(of.sum()), int((of & within).sum())
    recall = what == "recall"
    unit = "name tokens" if recall else "words picked"
    detail: dict[str, float | str] = {"step": step, "vocabulary": len(of)}
    measure = f"attack.find_names_{what}_{step}"
    if not n:
        detail["why"] = "no name token has a vector" if recall else "no word was taken for a name"
        return Finding(measure, None, 0, "lower", source=_SOURCE, detail=detail, unit=unit)
    top, bottom = (placebo & of, of) if recall else (placebo & within, placebo)
    return Finding(
        measure,
        both / n,
        n,
        "lower",
        *clopper_pearson(both, n),
        chance=float(within.mean()),
        control=float(top.sum() / bottom.sum()) if bottom.any() else None,
        source=_SOURCE,
        detail=detail,
        unit=unit,
        count=both,
        method="exact over tokens (Clopper-Pearson), 95 %",
        chance_is="as many words of the vocabulary at random",
        control_is="the same steps from as many words at random in place of the lists" if bottom.any() else "",
        control_kind="negative" if bottom.any() else None,
    )
