"""A MedText corpus: training, validation and test by patient or by note, its dictionary and its rare words."""

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
    """How many notes each part gets; training takes all that is left unless `train` or `words` says where to stop.

    Attributes:
        valid, test: notes at least (whole patients). train: notes at least, or None. words: words at least, or None.
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
    """The rows of each part, in a random order; a patient's notes are all in one part unless `by_note`.

    The same generator gives the same validation and test parts whatever the size of the training part, and a smaller
    training part is a subset of a larger one.

    Args:
        patients: whose each note is. lengths: words of each note.
        by_note: paper C's split, in which a patient can be on both sides.

    Raises:
        InputError: fewer notes or words than the parts need.
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
    while shuffled and not _enough(len(parts["train"]), words, sizes):
        group = shuffled.pop()
        words += sum(lengths[row] for row in group)
        parts["train"] += group
    _refuse_short(parts, words, sizes, len(patients))
    for name in reversed(PARTS):  # training last: its size must not change the order of the others
        parts[name] = [parts[name][i] for i in rng.permutation(len(parts[name]))]
    return parts


def _enough(notes: int, words: int, sizes: SplitSizes) -> bool:
    wanted = (sizes.train is not None and notes >= sizes.train, sizes.words is not None and words >= sizes.words)
    return any(wanted)


def _refuse_short(parts: dict[str, list[int]], words: int, sizes: SplitSizes, n: int) -> None:
    enough_words = sizes.words is not None and words >= sizes.words
    train = 1 if enough_words or sizes.train is None else sizes.train
    wanted = {"train": train, "valid": sizes.valid, "test": sizes.test}
    hint = "smaller --train, --words, --valid or --test"
    if any(len(parts[name]) < wanted[name] for name in PARTS):
        raise InputError(f"{n} notes are too few: the parts need {sum(wanted.values())}", hint=hint)
    if sizes.train is None and sizes.words is not None and not enough_words:
        raise InputError(f"{words} words are left for training, not {sizes.words}", hint=hint)


@dataclass(frozen=True)
class Dictionary:
    """The words of a corpus.

    Attributes:
        words: those kept, in the order of first appearance.
        counts: occurrences of every word, the rare ones too.
        patients: of how many patients each word is.
    """

    words: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(repr=False)
    patients: Counter[str] = field(repr=False)

    @property
    def unknown_share(self) -> float:
        """Share of running words that are not kept (Table 1: OOV)."""
        total = sum(self.counts.values())
        return (total - sum(self.counts[word] for word in self.words)) / total if total else 0.0


def dictionary(
    notes: Iterable[str], patients: Sequence[str], *, min_count: int = MIN_COUNT, min_patients: int = 1
) -> Dictionary:
    """Count the words of notes in MedText's form.

    Args:
        min_count: fewer occurrences make a word rare (paper C: below 3, over all parts).
        min_patients: so do fewer patients, which the paper does not ask.
    """
    counts: Counter[str] = Counter()
    seen: dict[str, set[str]] = {}
    for text, patient in zip(notes, patients, strict=True):
        row = text.split()
        counts.update(row)
        for word in set(row):
            seen.setdefault(word, set()).add(patient)
    of = Counter({word: len(owners) for word, owners in seen.items()})
    kept = tuple(w for w in counts if counts[w] >= min_count and of[w] >= min_patients and w not in (UNK, EOS, EON))
    return Dictionary(kept, counts, of)


def with_unknown(text: str, kept: frozenset[str]) -> str:
    """A note in MedText's form with all words but those of the dictionary as `<unk>`."""
    return "\n".join(" ".join(w if w in kept else UNK for w in line.split(" ")) for line in text.split("\n"))
