"""What an attacker makes who has released notes only: n-grams of them (paper C, footnote 6)."""

from __future__ import annotations

from collections.abc import Sequence

from clinveil.corpus.medtext import dictionary
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.vocabulary import Vocabulary, WordVocabulary


def model_of_text(notes: PlainNotes, vocabulary: Vocabulary | None = None) -> Ngram:
    """An n-gram model of notes; its vocabulary is theirs, rare words too, unless one is given."""
    if vocabulary is None:
        vocabulary = WordVocabulary(words_of(notes.texts))
    return Ngram(encode(notes.texts, vocabulary), vocabulary)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """All words of notes, in the order of first appearance."""
    return dictionary(texts, [""] * len(texts), min_count=1).words
