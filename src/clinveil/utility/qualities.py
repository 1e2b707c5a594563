"""What paper C's clinician saw in synthetic notes, as numbers: gender, lists, order of sections; and lengths and words.

Source: paper C, section 4.2, which counts nothing; the measures are ours. Each stands beside that of the real notes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core.finding import Better, Finding
from clinveil.core.types import Ints
from clinveil.corpus.medtext.form import DEIDENTIFIED, UNK
from clinveil.stats import bootstrap_clusters, ratio, share_by_patient, share_method

SOURCE = "paper C, section 4.2 (our measure)"
HEADING_WORDS = 6
PAIR_NOTES = 5  # real notes in which a pair of headings must stand
SHORT_LINE = 8  # tokens of a list entry that has no number
FIRST_TOKENS = 10_000
HALVINGS = 10

_PLACEHOLDERS = frozenset((UNK, DEIDENTIFIED))
_GENDERS = dict.fromkeys(("he", "him", "his", "himself"), 0) | dict.fromkeys(("she", "her", "hers", "herself"), 1)
_NUMBER = r"(?:, )?([1-9][0-9]?) [.)](?= |$)"
_NUMBERED = re.compile(_NUMBER)
_AT_END = re.compile(r"(?m)(?<!\d) (?=, [1-9][0-9]? \.$)")  # a number that belongs to the next line
_ALONE = re.compile(rf"(?m)^({_NUMBER})\n(?!,|{_NUMBER})")  # a number whose text is the next line

Pairs = Sequence[tuple[int, int]]  # of each note: what was found in it, and what was looked at


def qualities(notes: Sequence[str], real: Sequence[str], rng: Generator) -> list[Finding]:
    """Measure what a reader sees at once in synthetic notes; the control is the same of the real notes.

    Args:
        notes: synthetic notes in MedText's form. real: those that they should look like, in the same form and, where
            the synthetic ones have `<unk>`, with the same words unknown; in a random order, for the type-token ratio.

    Returns:
        `study.pronoun_switch` (share of notes), `study.pronoun_switches` (per 1,000 pronouns),
        `study.repeated_entries` (share of list entries), `study.section_order` (share of pairs of headings),
        `study.repeated_headings` (per note), `study.note_length` (tokens), `study.type_token_ratio`,
        `study.unigram_divergence` (bits). A value is None where there was nothing to count.
    """
    return [
        *_pronouns(notes, real, rng),
        _repeated_entries(notes, real, rng),
        *_sections(notes, real, rng),
        _note_length(notes, real, rng),
        _type_token_ratio(notes, real),
        _unigram_divergence(notes, real, rng),
    ]


def pronouns(note: str) -> list[int]:
    """The gendered pronouns of a note in sequence, 0 male and 1 female; "he / she" and "his or her" are neither."""
    row = [token.casefold() for token in note.split()]
    either = [
        i
        for i, (first, middle, last) in enumerate(zip(row, row[1:], row[2:], strict=False))
        if middle in ("/", "or") and {_GENDERS.get(first), _GENDERS.get(last)} == {0, 1}
    ]
    neither = {place for i in either for place in (i, i + 2)}
    return [_GENDERS[token] for i, token in enumerate(row) if token in _GENDERS and i not in neither]


def lists(note: str) -> list[list[str]]:
    """The lists of a note, of at least two entries each, as case-folded text without punctuation at its ends.

    Numbered: from a line that begins with "2 ." or ", 2 ." (or "2 )"), or follows one that ends so, to a line that ends
    with ":" or a new number 1; an entry is the first line after its number. Without numbers: lines of at most 8 tokens
    right below a line that ends with ":", up to the first longer line or one that ends with . ? or !
    """
    found: list[list[str]] = []
    last: int | None = None  # the number before; 0 where a list without numbers may go on, None outside lists
    for line in _ALONE.sub(r"\1 ", _AT_END.sub("\n", note)).split("\n"):
        if mark := _NUMBERED.match(line):
            number = int(mark[1])
            if not last or (number == 1 and last != 1):
                found.append([])
            found[-1].append(_bare(line[mark.end() :]))
            last = number
        elif line.endswith(":"):
            found.append([])
            last = 0
        elif last == 0 and len(line.split()) <= SHORT_LINE and not line.endswith((".", "?", "!")):
            found[-1].append(_bare(line))
        elif last == 0:
            last = None
    entries = ([entry for entry in entries if entry] for entries in found)
    return [row for row in entries if len(row) > 1]


def _bare(text: str) -> str:
    return text.casefold().strip(" .,;:")


def headings(note: str) -> list[str]:
    """The headings of a note in sequence: lines that end with ":" and have 1 to 6 words, case-folded, words alone.

    A heading with a placeholder in it is left out: nobody knows which it is.
    """
    rows = (line.casefold().split() for line in note.split("\n") if line.endswith(":"))
    words = ([t for t in row if any(c.isalpha() for c in t)] for row in rows if not _PLACEHOLDERS & set(row))
    return [" ".join(row) for row in words if 0 < len(row) <= HEADING_WORDS]


class Precedence:
    """Which of two headings stands first in the most of the real notes that have both, by where each first stands."""

    def __init__(self, orders: Sequence[Sequence[str]]) -> None:
        """Learn from the headings of real notes, each heading once."""
        notes_with = Counter(chain.from_iterable(orders))
        self._usual = frozenset(heading for heading, n in notes_with.items() if n >= PAIR_NOTES)
        self._before = Counter(pair for order in orders for pair in self._pairs(order))

    def score(self, order: Sequence[str], own: Sequence[str] = ()) -> tuple[int, int]:
        """Pairs of a note that stand in the order of the majority, and all pairs for which there is a majority.

        Args:
            own: the headings that this note gave when we learned, which are taken out again (leave-one-out). Of a pair
                that is as often one way as the other this leaves a majority against the note, so a real note's score
                is, if anything, too low.
        """
        right = known = 0
        taken = set(self._pairs(own))
        for first, second in self._pairs(order):
            forward = self._before[first, second] - ((first, second) in taken)
            backward = self._before[second, first] - ((second, first) in taken)
            if forward + backward >= PAIR_NOTES and forward != backward:
                known += 1
                right += forward > backward
        return right, known

    def _pairs(self, order: Sequence[str]) -> Iterator[tuple[str, str]]:
        return combinations([heading for heading in order if heading in self._usual], 2)


def shuffled_control(real: Sequence[str], rng: Generator) -> float | None:
    """The section-order share of the real notes with the headings of each shuffled; None where no pair is known."""
    rows = [headings(note) for note in real]
    precedence = Precedence([_once(row) for row in rows])
    shuffled = ([row[i] for i in rng.permutation(len(row))] for row in rows)
    pairs = [precedence.score(_once(mixed), _once(row)) for mixed, row in zip(shuffled, rows, strict=True)]
    return ratio(np.array(pairs)) if any(known for _, known in pairs) else None


def jensen_shannon(first: Ints, second: Ints) -> float:
    """The Jensen-Shannon divergence in bits of two distributions, from counts of the same words, shape (n_words,).

    Source: Lin 1991, IEEE Trans. Inf. Theory 37:145.
    """
    p, q = first / first.sum(), second / second.sum()
    middle = (p + q) / 2
    ends = [float((r[r > 0] * np.log2(r[r > 0] / middle[r > 0])).sum()) for r in (p, q)]
    return min(1.0, max(0.0, sum(ends) / 2))


def _once(row: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(row))


def _finding(
    name: str,
    both: Iterable[Pairs],
    rng: Generator,
    unit: str,
    *,
    better: Better | None = "lower",
    chance: float | None = None,
    chance_is: str = "",
    per: float = 0,
    **more: Any,
) -> Finding:
    """The pooled ratio of the synthetic notes and of the real ones; `per` marks a rate, which may pass 1."""
    sides = [np.array(pairs, dtype=np.int64).reshape(-1, 2) for pairs in both]
    (value, low, high), (control, control_low, control_high) = (_measured(rows, rng, per) for rows in sides)
    n, control_n = (int(rows[:, 1].sum()) for rows in sides)
    detail: dict[str, Any] = {"notes": len(sides[0]), **more, "per": per or 1, "control_n": control_n}
    detail |= {"control_low": control_low, "control_high": control_high}
    if value is None:
        detail["why"] = f"no {unit} to count"
    return Finding(
        *(f"study.{name}", value, n, better, low, high, chance, control, SOURCE, detail),
        unit=unit,
        method="bootstrap over notes, 95 %" if per or value is None else share_method(sides[0], "notes"),
        chance_is=chance_is,
        control_is="real notes",
        control_kind=None if better is None else "negative" if better == "lower" else "positive",
    )


def _measured(rows: Ints, rng: Generator, per: float) -> tuple[float, float, float] | tuple[None, None, None]:
    """The ratio and its interval; None where there was nothing to look at."""
    if not rows[:, 1].any():
        return None, None, None
    low, high = bootstrap_clusters(rows, ratio, rng) if per else share_by_patient(rows)
    scale = per or 1.0
    return scale * ratio(rows), scale * low, scale * high


def _pronouns(notes: Sequence[str], real: Sequence[str], rng: Generator) -> Iterator[Finding]:
    own, control = ([row for row in map(pronouns, side) if len(row) > 1] for side in (notes, real))
    both = ([(int(len(set(row)) == 2), 1) for row in side] for side in (own, control))
    switches = ([(sum(a != b for a, b in pairwise(row)), len(row)) for row in side] for side in (own, control))
    share, rate = _by_chance(own)
    said: dict[str, Any] = {"chance_is": "pronouns dealt out anew over the synthetic notes"}
    yield _finding("pronoun_switch", both, rng, "notes with at least two gendered pronouns", chance=share, **said)
    unit = "gendered pronouns of notes with at least two"
    yield _finding("pronoun_switches", switches, rng, unit, chance=rate, per=1000.0, **said)


def _by_chance(rows: Sequence[Sequence[int]]) -> tuple[float, float] | tuple[None, None]:
    """Share of notes with both genders, and switches per 1,000, were each pronoun drawn from all (with replacement)."""
    if not rows:
        return None, None
    lengths = np.array([len(row) for row in rows])
    female = sum(map(sum, rows)) / int(lengths.sum())
    both = 1 - female**lengths - (1 - female) ** lengths
    return float(both.mean()), float(2000 * female * (1 - female) * (lengths - 1).sum() / lengths.sum())


def _repeated_entries(notes: Sequence[str], real: Sequence[str], rng: Generator) -> Finding:
    sides = ([_repeats(lists(note)) for note in side] for side in (notes, real))
    return _finding("repeated_entries", sides, rng, "list entries", left_out="those with <unk> or <deidentified>")


def _repeats(found: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Entries that stood in the same list before, and all; those with a placeholder cannot be told apart."""
    told = [[entry for entry in entries if not _PLACEHOLDERS & set(entry.split())] for entries in found]
    return sum(len(row) - len(set(row)) for row in told), sum(map(len, told))


def _sections(notes: Sequence[str], real: Sequence[str], rng: Generator) -> Iterator[Finding]:
    own, control = ([headings(note) for note in side] for side in (notes, real))
    precedence = Precedence([_once(row) for row in control])
    order = [precedence.score(_once(row)) for row in own]
    of_real = [precedence.score(_once(row), _once(row)) for row in control]
    more: dict[str, Any] = {"chance_is": "headings of real notes shuffled", "chance": shuffled_control(real, rng)}
    more |= {"control_is_leave_one_out": True}
    more |= {"notes_scored": sum(known > 0 for _, known in order), "headings": sum(map(len, own))}
    unit = "pairs of headings with a usual order"
    yield _finding("section_order", (order, of_real), rng, unit, better="higher", **more)
    again = ([(len(row) - len(set(row)), 1) for row in side] for side in (own, control))
    yield _finding("repeated_headings", again, rng, "notes", per=1.0)


def _note_length(notes: Sequence[str], real: Sequence[str], rng: Generator) -> Finding:
    own, control = ([len(note.split()) for note in side] for side in (notes, real))
    sides = ([(n, 1) for n in side] for side in (own, control))
    both = {"median": own, "control_median": control}
    medians: dict[str, Any] = {name: float(np.median(side)) if side else None for name, side in both.items()}
    return _finding("note_length", sides, rng, "notes", better=None, per=1.0, **medians)


def _type_token_ratio(notes: Sequence[str], real: Sequence[str]) -> Finding:
    """As many tokens of either side, for the ratio falls with their number."""
    sides = [[token for note in side for token in note.split()] for side in (notes, real)]
    size = min([FIRST_TOKENS, *(len(side) for side in sides if side)])
    value, control = (len(set(side[:size])) / size if side else None for side in sides)
    detail: dict[str, Any] = {"first": FIRST_TOKENS}
    if value is None:
        size, detail["why"] = 0, "no tokens to count"
    return Finding(
        *("study.type_token_ratio", value, size, None, None, None, None, control, SOURCE, detail),
        unit="tokens",
        method="none: a note drawn twice adds tokens but no types",
        control_is="real notes",
    )


def _unigram_divergence(notes: Sequence[str], real: Sequence[str], rng: Generator) -> Finding:
    """From one half of the real notes, of the synthetic notes and, as a control, of the other half; as many tokens.

    The divergence of small samples is large, so the number over all notes has nothing to stand beside; see `whole`.
    A value below the control says that the synthetic notes follow these very real notes, as those sampled from a model
    of them do, and not that they are better than real; notes that the model never saw are the stricter `real`.
    """
    ids: dict[str, int] = {}
    own, control = ([_ids(note, ids) for note in side] for side in (notes, real))
    name = "study.unigram_divergence"
    detail: dict[str, Any] = {"halvings": HALVINGS}
    said: dict[str, Any] = {"unit": "tokens", "method": "95 % of random halves of the real notes"}
    said |= {"control_is": "the other half of the real notes", "control_kind": "negative"}
    draws = [_of_halves(own, control, len(ids), rng) for _ in range(HALVINGS)]
    if any(draw is None for draw in draws):
        detail["why"] = "too few tokens to halve"
        return Finding(name, None, 0, "lower", source=SOURCE, detail=detail, **said)
    values = np.array(draws, dtype=np.float64)
    low, high = np.quantile(values[:, 0], [0.025, 0.975])
    whole = (np.bincount(np.concatenate(side), minlength=len(ids)) for side in (own, control))
    detail["whole"] = jensen_shannon(*whole)
    mean, of_real, n = values.mean(axis=0)
    return Finding(name, mean, round(n), "lower", low, high, None, of_real, SOURCE, detail, **said)


def _ids(note: str, ids: dict[str, int]) -> Ints:
    return np.array([ids.setdefault(token, len(ids)) for token in note.split()], dtype=np.int64)


def _of_halves(
    own: Sequence[Ints], real: Sequence[Ints], n_words: int, rng: Generator
) -> tuple[float, float, int] | None:
    """Divergence of synthetic notes and of half the real ones from the other half, and the tokens of each sample."""
    order, half = rng.permutation(len(real)), len(real) // 2
    samples = _joined(own, rng.permutation(len(own))), _joined(real, order[:half]), _joined(real, order[half:])
    size = min(map(len, samples))
    if not size:
        return None
    synthetic, held_out, other = (np.bincount(tokens[:size], minlength=n_words) for tokens in samples)
    return jensen_shannon(synthetic, other), jensen_shannon(held_out, other), size


def _joined(side: Sequence[Ints], order: Ints) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(side[i] for i in order)])
