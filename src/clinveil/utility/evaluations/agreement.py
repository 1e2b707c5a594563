"""Measure the agreement of two reviewers (clinveil review --reviewer).

Cohen's kappa over words, and F1 of spans. Both reviewers saw the detections, but not each other's
decisions, so they agree more than on unmarked notes. Only notes that both have finished count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from clinveil.core import (
    Doubles,
    Finding,
    InputError,
    Ints,
    Say,
    Span,
    UsageError,
    setting,
    word_spans,
)
from clinveil.phi import (
    FOLDER,
    DecisionFile,
    NoteDecisions,
    Reviewable,
    ReviewEntry,
    decisions_of,
    read_file,
    review_of,
    revised,
    text_hash,
)
from clinveil.stats import MeasureSpec, clopper_pearson, jackknife_t
from clinveil.utility.evaluations import Evaluated, Evaluation, EvaluationInput

METHOD = "jackknife over notes, 95 %"
EXACT = "exact over notes (Clopper-Pearson) where all agree, 95 %"
SOURCE = (
    "Cohen 1960, Educ. Psychol. Meas. 20:37; Hripcsak & Rothschild 2005, J. Am. Med. Inform. Assoc."
    " 12:296"
)

WORDS = MeasureSpec(
    measure="utility.agreement",
    unit="words",
    better="higher",
    source=SOURCE,
    chance_is="two reviewers who hide as many words at random",
)
SPANS = MeasureSpec(measure="utility.agreement_f1", unit="spans", better="higher", source=SOURCE)


def two_files(run: Reviewable, reviewers: Sequence[str] = ()) -> tuple[DecisionFile, DecisionFile]:
    """Return the decisions of the two named reviewers, or of the only two. Raises UsageError if
    there are not two.
    """
    names = list(reviewers) or sorted(path.stem for path in (run.vault / FOLDER).glob("*.jsonl"))
    if len(names) != 2 or names[0] == names[1]:
        hint = (
            "pass --set reviewer=A --set reviewer=B"
            if len(names) > 2
            else "run clinveil review --reviewer SECOND"
        )
        raise UsageError(
            f"agreement requires two reviewers, and there are {len(set(names))}", hint=hint
        )
    one, other = (read_file(decisions_of(run.vault, name)) for name in names)
    if one.key != other.key:
        raise InputError(
            "the two files of decisions belong to different runs", hint="review the same run twice"
        )
    return one, other


def agreement(run: Reviewable, one: DecisionFile, other: DecisionFile) -> list[Finding]:
    """Return kappa over words and F1 of spans, with intervals over notes.

    Raises InputError if no note was finished by both, or a note has changed since the review.
    """
    tables = np.array(list(_tables(run.entries(), one, other)), dtype=np.int64).reshape(-1, 7)
    if not len(tables):
        raise InputError(
            "no note was finished by both reviewers", hint="let both finish the same notes"
        )
    words = tables[:, :4]
    spans = tables[:, 4:]
    numbers = {"notes": len(tables), "same_notes": int((tables[:, 1:3].sum(axis=1) == 0).sum())}
    in_words = WORDS.missing(
        "the reviewers hide no word, or all words", int(words.sum()), chance=0.0, numbers=numbers
    )
    n_spans = int(spans[:, 1:].sum() - spans[:, 0].sum())
    in_spans = SPANS.missing("the reviewers marked no span", n_spans, numbers=numbers)
    return [
        _measured(in_words, words, kappa),
        _measured(replace(in_spans, count=int(spans[:, 0].sum())), spans, f1),
    ]


def _measured(
    undefined: Finding,
    table: Ints,
    statistic: Callable[[Ints], float],
) -> Finding:
    """Return the finding with the value of a statistic and its interval over notes; the unchanged
    one if the statistic is undefined.
    """
    value = statistic(table.sum(axis=0))
    if np.isnan(value):
        return undefined
    finding = replace(undefined, value=value, why="")
    if value == 1:  # all notes agree, so the jackknife has no variance
        low, high = clopper_pearson(len(table), len(table))
        return replace(finding, low=low, high=high, method=EXACT)
    try:
        low, high = jackknife_t(table, statistic)
    except InputError:  # too few notes
        return finding
    return replace(finding, low=max(low, -1.0), high=min(high, 1.0), method=METHOD)


def kappa(sums: Ints | Doubles) -> float:
    """Return Cohen's kappa from counts of both, only first, only second, neither; NaN if chance
    agreement is 1.
    """
    both, first, second, neither = (float(x) for x in sums)
    total = both + first + second + neither
    if not total:
        return float("nan")
    by_chance = (
        (both + first) * (both + second) + (second + neither) * (first + neither)
    ) / total**2
    return (
        ((both + neither) / total - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")
    )


def f1(sums: Ints | Doubles) -> float:
    """Return F1 of spans with equal offsets and label, from the number of equal spans and of spans
    of each reviewer.
    """
    same, one, other = (float(x) for x in sums)
    return 2 * same / (one + other) if one + other else float("nan")


def _tables(
    entries: Iterable[ReviewEntry], one: DecisionFile, other: DecisionFile
) -> Iterator[tuple[int, ...]]:
    """Yield counts of each note: words hidden by both, the first, the second, neither; spans of
    both and of each.
    """
    decided = one.notes, other.notes
    for entry in entries:
        pair = [notes.get(entry.note.note_id) for notes in decided]
        if all(decisions is not None and decisions.done for decisions in pair):
            yield _compared(
                entry, one.key, [decisions for decisions in pair if decisions is not None]
            )


def _compared(entry: ReviewEntry, key: str, pair: Sequence[NoteDecisions]) -> tuple[int, ...]:
    text = entry.note.text
    if any(decisions.text != text_hash(key, text) for decisions in pair):
        raise InputError(
            "a note has changed since it was reviewed", hint="pass the reviewed notes with --notes"
        )
    first, second = (revised(entry.spans, decisions.verdicts) for decisions in pair)
    words = list(word_spans(text))
    hidden = np.array(
        [list(_hidden(words, spans)) for spans in (first, second)], dtype=bool
    ).reshape(2, len(words))
    table = np.bincount(2 * (1 - hidden[0]) + (1 - hidden[1]), minlength=4).tolist()
    marked = [{(span.start, span.end, span.label) for span in spans} for spans in (first, second)]
    return (*table, len(marked[0] & marked[1]), *map(len, marked))


def _hidden(words: Iterable[tuple[int, int]], spans: Sequence[Span]) -> Iterator[bool]:
    """Yield for each word whether a span overlaps it; both inputs are sorted."""
    at = 0
    for start, end in words:
        while at < len(spans) and spans[at].end <= start:
            at += 1
        yield at < len(spans) and spans[at].start < end


class Agreement(Evaluation):
    """Measure the agreement of two reviewers: kappa over words and F1 of spans, with intervals over
    notes.
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "out": EvaluationInput(
            "Output of clinveil deidentify or validate that both reviewed.", required=True
        ),
        "notes": EvaluationInput("The notes, if they were moved.", "--notes"),
        "vault": EvaluationInput("Vault of the run (default: OUT.vault).", "--vault"),
    }
    shown = ""
    reviewer: tuple[str, ...] = setting((), "Name of a reviewer; pass two if there are more.")

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return kappa and F1."""
        past = review_of(
            arguments["out"], vault=arguments.get("vault"), notes=arguments.get("notes")
        )
        one, other = two_files(past, self.reviewer)
        title = f"{arguments['out'].name}: reviewers {one.reviewer} and {other.reviewer}"
        return Evaluated(agreement(past, one, other), title, seed=0)
