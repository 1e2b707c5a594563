"""Detect negated content words with a short list of triggers, similar to NegEx.

Source: Chapman, Bridewell, Hanbury, Cooper & Buchanan 2001, J. Biomed. Inform. 34:301. Scope: five words, within the
sentence, up to a conjunction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clinveil.core.tokens import lookup_form, word_spans

SCOPE = 5
AFFIRMED, NEGATED, NEITHER = 0, 1, -1

_BEFORE = """no; not; without; never; cannot; denies; denied; deny; denying; negative for; no evidence of; no sign of;
no signs of; free of; absence of; lack of; lacks; rule out; rules out; ruled out for; unremarkable for; nor; neither"""
_AFTER = "absent; was ruled out; were ruled out; is ruled out; are ruled out; not seen; not appreciated; not present"
_PSEUDO = """no increase; no change; no interval change; no significant change; not only; not necessarily; not certain;
not cause; not extend; not drain; without difficulty; without further; no further; gram negative"""
_CONJUNCTIONS = "but however except although though yet still which because secondary aside apart nevertheless"
_FUNCTION = """a about above after all also an and any are as at be been before being both by can could did do does done
due during each for from had has have having he her him his how if in into is it its may more most of off on one or
other our out over own per she should since so some such than that the their them then there these they this those
through to two under until up upon was we were what when where while who will with would year old patient noted there
significant evidence sign signs history known"""
_BREAK = re.compile(r"[.;:?!\n]")


def _phrases(listed: str) -> dict[str, list[tuple[str, ...]]]:
    """Return phrases by first word, longest first."""
    made: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(listed.split(";"), key=len, reverse=True):
        forms = tuple(phrase.split())
        made.setdefault(forms[0], []).append(forms)
    return made


_TRIGGERS = {"pseudo": _phrases(_PSEUDO), "after": _phrases(_AFTER), "before": _phrases(_BEFORE)}
_FIRST = frozenset(first for listed in _TRIGGERS.values() for first in listed)
_STOP = frozenset(_CONJUNCTIONS.split())
_WITHIN = frozenset(word for listed in _TRIGGERS.values() for some in listed.values() for p in some for word in p)
_NO_CONTENT = frozenset(_FUNCTION.split()) | _STOP | _WITHIN


def negation_labels(text: str) -> tuple[list[str], list[tuple[int, int]], NDArray[np.int8]]:
    """Return the words of a text (lookup forms), their spans, and a label each: NEGATED, AFFIRMED, or NEITHER.

    NEITHER is for function words, triggers and words of fewer than three letters.
    """
    spans = list(word_spans(text))
    forms = [lookup_form(text[start:end]) for start, end in spans]
    breaks = [bool(_BREAK.search(text, one[1], other[0])) for one, other in pairwise(spans)]
    labels = np.array([NEITHER if len(form) < 3 or form in _NO_CONTENT else AFFIRMED for form in forms], dtype=np.int8)
    at = 0
    while at < len(forms):
        kind, length = _trigger(forms, at) if forms[at] in _FIRST else ("", 1)
        if kind == "before":
            _negate(labels, forms, breaks, at + length, 1)
        elif kind == "after":
            _negate(labels, forms, breaks, at - 1, -1)
        at += length
    return forms, spans, labels


def _trigger(forms: Sequence[str], at: int) -> tuple[str, int]:
    """Return kind and number of words of the trigger that starts here; "" and 1 if there is none."""
    for kind, listed in _TRIGGERS.items():
        for phrase in listed.get(forms[at], ()):
            if tuple(forms[at : at + len(phrase)]) == phrase:
                return kind, len(phrase)
    return "", 1


def _negate(labels: NDArray[np.int8], forms: Sequence[str], breaks: Sequence[bool], start: int, step: int) -> None:
    """Negate content words from `start` on, in the direction of `step`, to the end of the scope."""
    for at in range(start, start + step * SCOPE, step):
        inside = 0 <= at < len(forms)
        border = min(at, at - step)  # the gap between this word and the one nearer to the trigger
        if not inside or (0 <= border < len(breaks) and breaks[border]) or forms[at] in _STOP:
            return
        if labels[at] == AFFIRMED:
            labels[at] = NEGATED
