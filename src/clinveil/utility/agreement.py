"""How far two reviewers of the same notes agree (`clinveil review`): Cohen's kappa over words, and F1 of spans.

Both saw what the detectors had found, though nothing of one another: they agree more readily than two who mark blank
notes. Only notes that both have done count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.spans import Span
from clinveil.core.tokens import word_spans
from clinveil.core.types import Doubles, Ints
from clinveil.phi.decisions import DecisionFile, NoteDecisions, read_file, revised, text_hash
from clinveil.phi.review.desk import FOLDER, decisions_of
from clinveil.phi.review.queue import Entry, PastRun
from clinveil.stats import clopper_pearson, jackknife_t

METHOD = "jackknife over notes, 95 %"
EXACT = "exact over notes (Clopper-Pearson) where all agree, 95 %"
SOURCE = "Cohen 1960, Educ. Psychol. Meas. 20:37; Hripcsak & Rothschild 2005, J. Am. Med. Inform. Assoc. 12:296"


class Counts(NamedTuple):
    """Of one note: words that both hide, the first alone, the second alone, neither; spans of both, of each."""

    both: int
    first: int
    second: int
    neither: int
    same_spans: int
    first_spans: int
    second_spans: int


def two_files(run: PastRun, reviewers: Sequence[str] = ()) -> tuple[DecisionFile, DecisionFile]:
    """The decisions of two reviewers: those named, or the two that there are. Raises UsageError where it is not two."""
    names = list(reviewers) or sorted(path.stem for path in (run.vault / FOLDER).glob("*.jsonl"))
    if len(names) != 2 or names[0] == names[1]:
        hint = "name two of them: --reviewer A --reviewer B" if len(names) > 2 else "clinveil review --reviewer SECOND"
        raise UsageError(f"agreement is between two reviewers, and there are {len(set(names))}", hint=hint)
    one, other = (read_file(decisions_of(run.vault, name)) for name in names)
    if one.key != other.key:
        raise InputError("the two files of decisions are of two runs", hint="review one run twice")
    return one, other


def agreement(run: PastRun, one: DecisionFile, other: DecisionFile) -> list[Finding]:
    """Kappa over words and F1 of spans, with intervals by note.

    Raises InputError where no note was done by both, or a note has changed since.
    """
    tables = np.array(list(_tables(run.entries(), one, other)), dtype=np.int64).reshape(-1, len(Counts._fields))
    if not len(tables):
        raise InputError("no note was done by both reviewers", hint="let both review the same notes to the end")
    words, spans = tables[:, :4], tables[:, 4:]
    detail = {"notes": len(tables), "same_notes": int((tables[:, 1:3].sum(axis=1) == 0).sum())}
    by_chance = {"chance": 0.0, "chance_is": "two who hide as many words, at random"}
    in_words = _finding(words, kappa, "the reviewers hide no word, or all", detail, unit="words", **by_chance)
    both, either = int(spans[:, 0].sum()), int(spans[:, 1:].sum() - spans[:, 0].sum())
    in_spans = _finding(spans, f1, "the reviewers have no span", detail, unit="spans", count=both)
    return [
        Finding("utility.agreement", n=int(words.sum()), **in_words),
        Finding("utility.agreement_f1", n=either, **in_spans),
    ]


def _finding(
    table: Ints, statistic: Callable[[Ints], float], why: str, detail: Mapping[str, int], **more: Any
) -> dict[str, Any]:
    """The fields of a finding over notes; `why` there is no number, where there is none."""
    common = {"better": "higher", "source": SOURCE, **more}
    value = statistic(table.sum(axis=0))
    if np.isnan(value):
        return common | {"value": None, "detail": {**detail, "why": why}}
    return common | {"value": value, "detail": detail, **_ends(table, statistic, value)}


def _ends(table: Ints, statistic: Callable[[Ints], float], value: float) -> dict[str, Any]:
    """The interval by note and how it was made; nothing where there are too few notes."""
    if value == 1:  # every note is alike, and leaving one out says nothing: what as many notes can tell
        return {**clopper_pearson(len(table), len(table))._asdict(), "method": EXACT}
    try:
        low, high = jackknife_t(table, statistic)
    except InputError:
        return {}
    return {"low": max(low, -1.0), "high": min(high, 1.0), "method": METHOD}


def kappa(sums: Ints | Doubles) -> float:
    """Cohen's kappa of both, first alone, second alone, neither; NaN where chance alone gives full agreement."""
    both, first, second, neither = (float(x) for x in sums)
    total = both + first + second + neither
    if not total:
        return float("nan")
    by_chance = ((both + first) * (both + second) + (second + neither) * (first + neither)) / total**2
    return ((both + neither) / total - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")


def f1(sums: Ints | Doubles) -> float:
    """F1 of spans alike in place and label, from the same ones, those of one and those of the other."""
    same, one, other = (float(x) for x in sums)
    return 2 * same / (one + other) if one + other else float("nan")


def _tables(entries: Iterable[Entry], one: DecisionFile, other: DecisionFile) -> Iterator[Counts]:
    decided = one.notes(), other.notes()
    for entry in entries:
        pair = [notes.get(entry.note.note_id) for notes in decided]
        if all(told is not None and told.done for told in pair):
            yield _compared(entry, one.key, [told for told in pair if told is not None])


def _compared(entry: Entry, key: str, pair: Sequence[NoteDecisions]) -> Counts:
    text = entry.note.text
    if any(told.text != text_hash(key, text) for told in pair):
        raise InputError("a note has changed since it was reviewed", hint="name the notes that were reviewed: --notes")
    first, second = (revised(entry.spans, told.verdicts) for told in pair)
    words = list(word_spans(text))
    hidden = np.array([list(_hidden(words, spans)) for spans in (first, second)], dtype=bool).reshape(2, len(words))
    table = np.bincount(2 * (1 - hidden[0]) + (1 - hidden[1]), minlength=4).tolist()
    places = [{(span.start, span.end, span.label) for span in spans} for spans in (first, second)]
    return Counts._make([*table, len(places[0] & places[1]), *map(len, places)])


def _hidden(words: Iterable[tuple[int, int]], spans: Sequence[Span]) -> Iterator[bool]:
    """Of each word whether a span covers a part of it; both sorted."""
    at = 0
    for start, end in words:
        while at < len(spans) and spans[at].end <= start:
            at += 1
        yield at < len(spans) and spans[at].start < end
