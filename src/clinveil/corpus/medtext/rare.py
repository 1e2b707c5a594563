"""The dictionary of a MedText corpus, and its rare words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clinveil.corpus.medtext.note import EON, EOS, UNK

MIN_COUNT = 3


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
