"""What an attacker makes who has released notes only: n-grams of them (paper C, footnote 6); and notes for audits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clinveil.core.keys import Key
from clinveil.corpus.medtext import dictionary
from clinveil.lm.model import LanguageModel
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.notes import EncodedNotes, PlainNotes, encode, joined
from clinveil.lm.sampling import SamplingConfig, generate
from clinveil.lm.vocabulary import END, Vocabulary, WordVocabulary


def model_of_text(notes: PlainNotes, vocabulary: Vocabulary | None = None) -> Ngram:
    """An n-gram model of notes; its vocabulary is theirs, rare words too, unless one is given."""
    if vocabulary is None:
        vocabulary = WordVocabulary(words_of(notes.texts))
    return Ngram(encode(notes.texts, vocabulary), vocabulary)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """All words of notes, in the order of first appearance."""
    return dictionary(texts, [""] * len(texts), min_count=1).words


def written(model: LanguageModel, tokens: int, seed: int, how: SamplingConfig, *, threads: int = 1) -> EncodedNotes:
    """Synthetic notes of about `tokens` tokens, under the key of a public seed: for audits, never for release."""
    end = np.array([END], dtype=np.int32)
    notes, made = [], 0
    with model.ready(threads=threads):
        for note in generate(model, Key.from_seed(seed), how):
            notes.append(np.concatenate([note.ids, end]))
            made += notes[-1].size  # with its end: notes without a word come to an end too
            if made >= tokens:
                break
    characters = [len(model.vocabulary.decode(note.tolist())) + 1 for note in notes]
    return joined(notes, np.array(characters, dtype=np.int64))
