"""What was seen in training, to hold test notes against; and whether notes are in MedText's form already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from clinveil.corpus.corpus import TEXT, Corpus
from clinveil.corpus.medtext import UNK
from clinveil.lm.notes import PlainNotes

ALL = "all {n:,} notes are, word for word, notes that the model was trained on: this is how well it remembers them"
SOME = "{some:,} of {n:,} notes are, word for word, notes that the model was trained on"
UNK_IN_TEST = "rare words are <unk> in these notes and are not in the training notes; prepare both alike"
UNK_IN_TRAINING = "rare words are <unk> in the training notes and are not in these; prepare both alike"


@dataclass(frozen=True)
class Seen:
    """Training notes, as hashes. Secret, like the model that they stand beside: a guessed note can be looked up.

    Attributes:
        fingerprints: of the text of each note. has_unk: whether a word stands as `<unk>` in them.
    """

    fingerprints: frozenset[str] = field(repr=False)
    has_unk: bool

    @classmethod
    def of(cls, notes: PlainNotes) -> Seen:
        """Those of notes at hand."""
        return cls(frozenset(map(fingerprint, notes.texts)), _has_unk(notes))

    @classmethod
    def from_dict(cls, data: Any) -> Seen | None:
        """What `as_dict` made; None for anything else: a model of an earlier version says nothing."""
        if not isinstance(data, Mapping) or not isinstance(data.get("fingerprints"), list):
            return None
        return cls(frozenset(map(str, data["fingerprints"])), bool(data.get("blotted")))

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"blotted": self.has_unk, "fingerprints": sorted(self.fingerprints)}

    def warnings(self, test: PlainNotes) -> list[str]:
        """What a figure of these test notes has to be read with."""
        n, some = len(test), sum(fingerprint(text) in self.fingerprints for text in test.texts)
        said = [(ALL if some == n else SOME).format(n=n, some=some)] if some else []
        has_unk = _has_unk(test)
        return said + ([UNK_IN_TEST if has_unk else UNK_IN_TRAINING] if has_unk != self.has_unk else [])


def fingerprint(text: str) -> str:
    """64 bits of a note in MedText's form, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _has_unk(notes: PlainNotes) -> bool:
    return any(UNK in text.split() for text in notes.texts)


@dataclass(frozen=True)
class Form:
    """Signs of MedText's form in notes as they stand in their file.

    Attributes:
        has_unk: words `<unk>`, a sure sign. alone, attached: commas by themselves, and at the end of a word.
    """

    has_unk: int
    alone: int
    attached: int

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Form:
        """Count."""
        has_unk = alone = attached = 0
        for text in texts:
            for word in (text or "").split():
                has_unk += word == UNK
                alone += word == ","
                attached += len(word) > 1 and word.endswith(",")
        return cls(has_unk, alone, attached)

    @property
    def prepared(self) -> bool | None:
        """Whether notes are in MedText's form; None where nothing tells."""
        if self.has_unk or self.alone > self.attached:
            return True
        return False if self.attached > self.alone else None


def form_of(corpus: Corpus) -> Form:
    """The form of the notes of a corpus."""
    return Form.of(text for batch in corpus.batches() for text in batch.column(TEXT).to_pylist())
