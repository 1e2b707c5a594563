"""The rare-word floor of synthetic notes: a word that too few training patients used is written as `<unk>`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from clinveil.corpus.medtext import DEIDENTIFIED, UNK, dictionary, with_unknown
from clinveil.lm.notes import PlainNotes

ALWAYS = frozenset({UNK, DEIDENTIFIED})


@dataclass
class Floor:
    """What may be written.

    Attributes:
        allowed: words of at least so many patients. words, replaced: counted while notes pass.
    """

    allowed: frozenset[str] = field(repr=False)
    words: int = 0
    replaced: int = 0

    @classmethod
    def of(cls, training: PlainNotes, min_patients: int) -> Floor:
        """The floor that training notes set; words that a model makes up stand below it."""
        kept = dictionary(training.texts, training.patients, min_count=1, min_patients=min_patients).words
        return cls(ALWAYS | frozenset(kept))

    def apply(self, text: str) -> str:
        """A note with all other words as `<unk>`."""
        lines = []
        for line in text.split("\n"):
            row = line.split(" ")
            self.words += len(row)
            self.replaced += sum(word not in self.allowed for word in row)
            lines.append(" ".join(word if word in self.allowed else UNK for word in row))
        return "\n".join(lines)

    def plain(self, notes: PlainNotes) -> PlainNotes:
        """Real notes as `apply` would write them; nothing is counted."""
        return PlainNotes(tuple(with_unknown(t, self.allowed) for t in notes.texts), notes.note_ids, notes.patients)

    def below(self, texts: Iterable[str]) -> int:
        """Words that stand below the floor all the same: what reading the release back must not find."""
        return sum(1 for word in _words(texts) if word not in self.allowed)


def _words(texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in text.split())
