"""A small tagger of names, learnt from a release: a conditional random field over the words of a line of text.

Features are what a word looks like, the lists that it stands in, and its neighbours. Surrogates all stand in lists, and
a leaked name need not: in training the word and its lists are left out as often as not, so that places are learnt too,
and a word is read both with them and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.random import Generator

from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.phi.note import Word
from clinveil.phi.tagger.crfsuite import file_of

Sentence = Sequence[Word]
Scores = Callable[[Sentence], list[float]]
NAME, OTHER = "N", "O"
ITERATIONS = 40


def learnt(sentences: Iterable[tuple[Sentence, Sequence[bool]]], rng: Generator) -> Scores:
    """A tagger of names from sentences with their names, as a function from a sentence to each word's P(name).

    Source: Lafferty, McCallum & Pereira 2001, ICML; the parrot of Carrell et al. 2020, J. Am. Med. Inform. Assoc. 27.
    """
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": 0.05, "c2": 0.05, "max_iterations": ITERATIONS, "feature.minfreq": 2})
    for words, names in sentences:
        if words:
            features = _features(words, hidden=(rng.random(len(words)) < 0.5).tolist())
            trainer.append(features, [NAME if name else OTHER for name in names])
    tagger, model = pycrfsuite.Tagger(), _trained(trainer)
    tagger.open_inmemory(model)

    def scores(words: Sentence) -> list[float]:
        if not words:
            return []
        assert model  # the tagger reads from these bytes and does not keep them
        if NAME not in tagger.labels():
            return [0.0] * len(words)
        read = []
        for hidden in (False, True):
            tagger.set(_features(words, hidden=[hidden] * len(words)))
            read.append([float(tagger.marginal(NAME, i)) for i in range(len(words))])
        return [max(both) for both in zip(*read, strict=True)]

    return scores


def _trained(trainer: Any) -> bytes:
    """The model; its file holds words of notes."""
    return file_of(lambda file: trainer.train(str(file)))


def _features(words: Sentence, hidden: Sequence[bool]) -> list[list[str]]:
    lowers = [word.lower for word in words]
    shapes = [_shape(word) for word in words]
    made = []
    for i, word in enumerate(words):
        own = ["bias", f"s={shapes[i]}", f"o={word.ordinary}"]
        if not hidden[i]:
            own += [f"k={_class(word)}", f"e={lowers[i][-3:]}", f"w={lowers[i]}"]
        for step in (-2, -1, 1, 2):
            there = 0 <= i + step < len(words)
            own.append(f"{step}w={lowers[i + step] if there else '|'}")
            own.append(f"{step}s={shapes[i + step] if there else '|'}")
        if i and i + 1 < len(words):
            own.append(f"around={lowers[i - 1]}_{lowers[i + 1]}")
        if i > 1:
            own.append(f"before={lowers[i - 2]}_{lowers[i - 1]}")
        made.append(own)
    return made


def _shape(word: Word) -> str:
    return "X" if word.shouted else "Xx" if word.capital else "x"


def _class(word: Word) -> int:
    return word.classes & (LexicalClass.WORD | LexicalClass.EPONYM | LexicalClass.NAME)
