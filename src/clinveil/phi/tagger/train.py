"""A tagger from texts with marked places: labels of tokens, the fit, and a threshold that keeps to a bound."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.phi.note import plain
from clinveil.phi.tagger.crfsuite import ITERATIONS, fit
from clinveil.phi.tagger.features import Features, word_hash
from clinveil.phi.tagger.invent import Labelled
from clinveil.phi.tagger.model import TaggerModel
from clinveil.phi.tagger.tag import Tagger
from clinveil.phi.tagger.tokens import places, tokens

LEAST_TEXTS = 2
_SMALL = re.compile(r"(?<![\w'-])[^\W\d_A-Z]{3,}(?![\w'-])")


def labels_of(kinds: Sequence[str]) -> tuple[str, ...]:
    """The labels of tokens for some PHI labels."""
    return ("O", *(f"{part}-{kind}" for kind in sorted(set(kinds)) for part in "BI"))


def labelled_tokens(text: Labelled, kinds: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tokens of a text and the label of each: B for the first of a place, I for the others, else O."""
    copy = plain(text.text)
    found = tokens(copy.text)
    labels = ["O"] * len(found)
    spans = sorted(span for span in text.spans if span.label in kinds)
    last: Span | None = None
    at = 0
    for index, (start, end) in enumerate(places(copy.text, found, range(len(found)))):
        begin, stop = copy.source_offsets(start, end)
        while at < len(spans) and spans[at].end <= begin:
            at += 1
        if at < len(spans) and spans[at].start < stop:
            labels[index] = ("I-" if spans[at] is last else "B-") + spans[at].label
            last = spans[at]
    return found, labels


def train_tagger(
    texts: Iterable[Labelled],
    kinds: Sequence[str],
    threshold: float,
    card: Mapping[str, Any],
    words: Mapping[str, int],
    known: AbstractSet[int] = frozenset(),
    iterations: int = ITERATIONS,
) -> TaggerModel:
    """A model of texts. The same texts in the same order give the same bits. Raises InputError where none is marked.

    Args:
        kinds: the PHI labels to learn. threshold: the chance from which a token counts.
        words: in how many texts a word stands in small letters (`written_small`).
        known: hashes of more words that are no names, counted on other texts.
        iterations: steps of the fit at most.
    """
    labels = labels_of(kinds)
    counted = {"texts": 0, "tokens": 0, "marked": 0}

    def examples() -> Iterator[tuple[list[str], list[str]]]:
        for text in texts:
            found, given = labelled_tokens(text, kinds)
            counted["texts"] += 1
            counted["tokens"] += len(found)
            counted["marked"] += sum(label[0] == "B" for label in given)
            if found:
                yield found, given

    # A word is known to the fit if it is so without the text that is looked at: new texts have unknown words too.
    weights = fit(examples(), labels, Features(known | _hashes(words, LEAST_TEXTS + 1)), iterations)
    if not counted["marked"]:
        raise InputError("none of the notes has a span to learn from")
    hashes = np.array(sorted(known | _hashes(words, LEAST_TEXTS)), np.uint32)
    return TaggerModel(labels, *weights, hashes, threshold, {**card, **counted})


def _hashes(words: Mapping[str, int], least: int) -> frozenset[int]:
    return frozenset(word_hash(word) for word, texts_with in words.items() if texts_with >= least)


def written_small(texts: Iterable[str]) -> Counter[str]:
    """In how many texts a word that is no name stands in small letters."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({word for word in _SMALL.findall(plain(text).text) if _may_be_known(word)})
    return counts


def _may_be_known(word: str) -> bool:
    classes = lexical_classes(word)
    return not classes & LexicalClass.NAME or bool(classes & LexicalClass.FOREIGN_ONLY)


def threshold_within(model: TaggerModel, texts: Iterable[Labelled], most: float, least: float = 0.05) -> float:
    """The lowest chance from which at most a share `most` of words outside all marked places is taken.

    Args:
        texts: that the model was not trained on; all that the rules find is marked too.
        most: a share of their words. least: a threshold is never lower.
    """
    tagger, chances, words = Tagger(model), [np.empty(0)], 0
    for text in texts:
        found, given = labelled_tokens(text, [*{span.label for span in text.spans}])
        words += sum(token[0].isalpha() for token in found)
        free = [at for at, label in enumerate(given) if label == "O" and found[at][0].isalpha()]
        chances.append(1 - tagger.chances(found)[free, 0])
    highest = np.sort(np.concatenate(chances))[::-1]
    allowed = int(most * words)
    return float(max(least, np.nextafter(highest[allowed], 1) if allowed < len(highest) else least))


def judged(model: TaggerModel, texts: Iterable[Labelled]) -> dict[str, int]:
    """How many places of texts that the model was not trained on it finds wholly, and of how many words and texts."""
    tagger, counts = Tagger(model), Counter(tuned_notes=0, tuned_words=0, tuned_places=0, tuned_found=0)
    for text in texts:
        found, given = labelled_tokens(text, [*tagger.labels])
        taken = 1 - tagger.chances(found)[:, 0] >= model.threshold
        starts = [at for at, label in enumerate(given) if label[0] == "B"]
        ends = [
            next((at for at in range(start + 1, len(given)) if given[at][0] != "I"), len(given)) for start in starts
        ]
        counts["tuned_notes"] += 1
        counts["tuned_words"] += sum(
            token[0].isalpha() and label == "O" for token, label in zip(found, given, strict=True)
        )
        counts["tuned_places"] += len(starts)
        counts["tuned_found"] += sum(_whole(found, taken, *place) for place in zip(starts, ends, strict=True))
    return dict(counts)


def _inner(labels: Sequence[str]) -> int:
    return next((at for at, label in enumerate(labels) if label[0] != "I"), len(labels))


def _whole(found: Sequence[str], taken: NDArray[np.bool_], start: int, end: int) -> bool:
    return all(taken[at] or not found[at][0].isalnum() for at in range(start, end))
