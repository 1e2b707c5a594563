"""The frequent words of notes in MedText format; all others are written as `<unk>` (paper C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clinveil.corpus.paper_c_form.form import EON, EOS, UNK

MIN_COUNT = 3


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
        """The vocabulary size as in paper C's code: frequent words, `<unk>` if there are rare ones,
        `<eos>`.
        """
        return len(self.words) + (len(self.words) < len(self.counts)) + 1


def dictionary(
    notes: Iterable[str],
    patients: Sequence[str],
    *,
    min_count: int = MIN_COUNT,
    min_patients: int = 1,
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
    """Return a note in MedText format with all words outside the vocabulary replaced with
    `<unk>`.
    """
    return "\n".join(
        " ".join(w if w in kept else UNK for w in line.split(" ")) for line in text.split("\n")
    )
