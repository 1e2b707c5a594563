"""Split a MedText corpus by patient or note, build its vocabulary, and count it (paper C, Table 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.corpus.medtext.form import EON, EOS, UNK

PARTS = ("train", "valid", "test")
MIN_COUNT = 3


@dataclass(frozen=True)
class SplitSizes:
    """The sizes of the parts; training gets all remaining notes unless `train` or `words` limits it.

    Attributes:
        valid, test: minimum number of notes (patients are not split). train: minimum number of notes, or None.
        words: minimum number of words, or None.
    """

    valid: int = 128
    test: int = 128
    train: int | None = None
    words: int | None = None


# Paper C, Table 1.
SMALL, LARGE = SplitSizes(train=1280), SplitSizes()


def split_notes(
    patients: Sequence[str], lengths: Sequence[int], sizes: SplitSizes, rng: Generator, *, by_note: bool = False
) -> dict[str, list[int]]:
    """Return the rows of each part, in random order; a patient's notes are in one part unless `by_note`.

    For the same generator, validation and test parts do not depend on the size of the training part, and a smaller
    training part is a subset of a larger one.

    Args:
        patients: the patient of each note. lengths: words of each note.
        by_note: paper C's split, in which a patient may be in several parts.

    Raises:
        InputError: too few notes or words for the parts.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(patients):
        groups.setdefault(str(row) if by_note else patient, []).append(row)
    order = sorted(groups)
    shuffled = [groups[order[i]] for i in rng.permutation(len(order))]
    parts: dict[str, list[int]] = {name: [] for name in PARTS}
    for name, wanted in (("test", sizes.test), ("valid", sizes.valid)):
        while shuffled and len(parts[name]) < wanted:
            parts[name] += shuffled.pop()
    words = 0
    while (
        shuffled
        and (sizes.train is None or len(parts["train"]) < sizes.train)
        and (sizes.words is None or words < sizes.words)
    ):
        group = shuffled.pop()
        words += sum(lengths[row] for row in group)
        parts["train"] += group
    _refuse_short(parts, words, sizes, len(patients))
    for name in reversed(PARTS):  # training last, so that its size does not change the order of the other parts
        parts[name] = [parts[name][i] for i in rng.permutation(len(parts[name]))]
    return parts


def _refuse_short(parts: dict[str, list[int]], words: int, sizes: SplitSizes, n: int) -> None:
    enough_words = sizes.words is not None and words >= sizes.words
    train = 1 if enough_words or sizes.train is None else sizes.train
    wanted = {"train": train, "valid": sizes.valid, "test": sizes.test}
    hint = "reduce --train, --words, --valid or --test"
    if any(len(parts[name]) < wanted[name] for name in PARTS):
        raise InputError(f"{n} notes are too few; the parts need {sum(wanted.values())}", hint=hint)
    if sizes.train is None and sizes.words is not None and not enough_words:
        raise InputError(f"only {words} of {sizes.words} words are left for training", hint=hint)


@dataclass(frozen=True)
class Dictionary:
    """The vocabulary of a corpus.

    Attributes:
        words: frequent words, in order of first occurrence.
        counts: occurrences of every word, including rare ones.
        patients: number of patients per word.
    """

    words: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(repr=False)
    patients: Counter[str] = field(repr=False)

    @property
    def unknown_share(self) -> float:
        """Share of running words that are rare (OOV in Table 1)."""
        total = sum(self.counts.values())
        return (total - sum(self.counts[word] for word in self.words)) / total if total else 0.0

    @property
    def size(self) -> int:
        """The vocabulary size as in paper C's code: frequent words, `<unk>` if there are rare ones, `<eos>`."""
        return len(self.words) + (len(self.words) < len(self.counts)) + 1


def dictionary(
    notes: Iterable[str], patients: Sequence[str], *, min_count: int = MIN_COUNT, min_patients: int = 1
) -> Dictionary:
    """Count the words of notes in MedText format.

    Args:
        min_count: words with fewer occurrences are rare (paper C: below 3 in all parts).
        min_patients: words with fewer patients are rare too (not in the paper).
    """
    counts: Counter[str] = Counter()
    seen: dict[str, set[str]] = {}
    for text, patient in zip(notes, patients, strict=True):
        row = text.split()
        counts.update(row)
        for word in set(row):
            seen.setdefault(word, set()).add(patient)
    n_patients = Counter({word: len(owners) for word, owners in seen.items()})
    frequent = (w for w in counts if counts[w] >= min_count and n_patients[w] >= min_patients)
    return Dictionary(tuple(w for w in frequent if w not in (UNK, EOS, EON)), counts, n_patients)


def with_unknown(text: str, kept: frozenset[str]) -> str:
    """Return a note in MedText format with all words outside the vocabulary replaced with `<unk>`."""
    return "\n".join(" ".join(w if w in kept else UNK for w in line.split(" ")) for line in text.split("\n"))


@dataclass(frozen=True)
class PartCounts:
    """Counts of one part: notes, patients, lines, and words without line ends."""

    notes: int
    patients: int
    lines: int
    words: int


@dataclass(frozen=True)
class CorpusCounts:
    """One column of Table 1.

    Attributes:
        parts: by name.
        vocabulary: frequent words, `<unk>` if there are rare ones, and `<eos>`.
        oov: share of running words that are rare.
    """

    name: str
    parts: dict[str, PartCounts]
    vocabulary: int
    oov: float


def table_rows(columns: Sequence[CorpusCounts]) -> list[tuple[str, ...]]:
    """Return the rows of Table 1, starting with the column names."""
    rows = [("", *(column.name for column in columns))]
    for what in ("notes", "patients", "lines", "words"):
        for part in PARTS:
            rows.append((f"{what}, {part}", *(f"{getattr(column.parts[part], what):,}" for column in columns)))
    rows.append(("vocabulary", *(f"{column.vocabulary:,}" for column in columns)))
    return [*rows, ("OOV", *(f"{column.oov:.1%}" for column in columns))]
