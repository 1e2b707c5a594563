"""Two-sample test: how well does a classifier distinguish released notes from real ones?

For words, word trigrams and layout (characters with each word as one letter and each digit as 9), a
logistic regression is trained on half of the notes and tested on the other half. The share is 0 at
an AUC of 1 and 1 at .5. For comparison, `floor` is the AUC of notes of the same lengths whose words
are drawn independently from all real notes.

Source: Lopez-Paz & Oquab 2017 (classifier two-sample test).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from clinveil.core import Finding, GapScores, InputError, words
from clinveil.stats import RocScores
from clinveil.utility.tasks.notes import Texts

# notes of each side
LEAST = 40
MOST = 600
CEILING = 0.5
SOURCE = "docs/report.md"
METHOD = "DeLong's interval of the AUC, 95 %"
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")


def two_sample(texts: Texts, rng: Generator) -> list[Finding]:
    """Return `utility.two_sample` for words, trigrams and layout. Raises InputError for few
    notes, or notes without words.
    """
    unread = (
        texts.real
        if texts.tested is None
        else [texts.real[i] for i in np.flatnonzero(texts.tested).tolist()]
    )
    n = min(len(unread), len(texts.released), MOST)
    if n < LEAST:
        raise InputError(f"{n} notes on one side; {LEAST} are required")
    real, released = (
        [side[i] for i in rng.permutation(len(side))[:n]] for side in (unread, texts.released)
    )
    drawn = rng.permutation([word for text in real for word in words(text)]).tolist()
    ends = np.cumsum([len(words(text)) for text in real])
    floor = [
        " ".join(drawn[end - len(words(text)) : end])
        for text, end in zip(real, ends.tolist(), strict=True)
    ]
    features: dict[str, Callable[[str], Sequence[str]]] = {
        "words": words,
        "word trigrams": partial(_runs, 3),
        "layout": _layout,
    }
    return [_compared(name, analyzer, real, released, floor) for name, analyzer in features.items()]


def _runs(length: int, text: str) -> list[str]:
    """Return the runs of words of a length."""
    forms = words(text)
    return [" ".join(run) for run in zip(*(forms[i:] for i in range(length)), strict=False)]


def _layout(text: str) -> list[str]:
    """Return the runs of four characters, words and digits reduced to one character each."""
    form = _DIGIT.sub("9", _WORD.sub("w", text))
    return [form[i : i + 4] for i in range(len(form) - 3)]


def _compared(
    name: str,
    analyzer: Callable[[str], Sequence[str]],
    real: Sequence[str],
    released: Sequence[str],
    floor: Sequence[str],
) -> Finding:
    scores, lowest = (_scores(analyzer, real, side) for side in (released, floor))
    low, high = scores.auc_interval()
    value, worst, best = (2 * (1 - auc) for auc in (scores.auc, high, low))
    return Finding(
        "utility.two_sample",
        value,
        2 * len(real),
        "higher",
        low=worst,
        high=best,
        labels=(name, "lr"),
        numbers={"low_score": low, "high_score": high},
        scores=GapScores("AUC, .5 is best", score=scores.auc, floor=lowest.auc, ceiling=CEILING),
        unit="notes",
        source=SOURCE,
        method=METHOD,
    )


def _scores(
    analyzer: Callable[[str], Sequence[str]], real: Sequence[str], other: Sequence[str]
) -> RocScores:
    """Return the scores of the test halves: notes of the release are the members.

    Raises InputError for notes without features.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    half = len(real) // 2
    vectors = TfidfVectorizer(analyzer=analyzer, sublinear_tf=True, min_df=2)
    model = make_pipeline(vectors, LogisticRegression(C=10.0, max_iter=1_000))
    try:
        model.fit([*real[:half], *other[:half]], np.repeat([0, 1], half))
    except ValueError:
        raise InputError("no feature occurs in two notes") from None
    return RocScores(model.decision_function(other[half:]), model.decision_function(real[half:]))
