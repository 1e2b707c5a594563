"""Train a tagger from labelled texts: token labels, the fit, and a threshold for a bound on false
positives.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import InputError, Span, atomic
from clinveil.lexicons import LexicalClass, lexical_classes
from clinveil.phi import SCHEMA, VERSION, Features, Tagger, TaggerModel, arrays_of, plain, word_hash
from tagger_training.crfsuite import ITERATIONS, fit
from tagger_training.invent import Labelled
from tagger_training.tokens import offsets, tokens

MIN_TEXTS = 2
_SMALL = re.compile(r"(?<![\w'-])[^\W\d_A-Z]{3,}(?![\w'-])")


def labels_of(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the token labels for some PHI labels."""
    return ("O", *(f"{part}-{kind}" for kind in sorted(set(kinds)) for part in "BI"))


def labelled_tokens(text: Labelled, kinds: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tokens of a text and their labels: B for the first token of a span, I for the
    others, else O.
    """
    copy = plain(text.text)
    words = tokens(copy.text)
    labels = ["O"] * len(words)
    spans = sorted(span for span in text.spans if span.label in kinds)
    last: Span | None = None
    at = 0
    for index, (start, end) in enumerate(offsets(copy.text, words, range(len(words)))):
        begin, stop = copy.source_offsets(start, end)
        while at < len(spans) and spans[at].end <= begin:
            at += 1
        if at < len(spans) and spans[at].start < stop:
            labels[index] = ("I-" if spans[at] is last else "B-") + spans[at].label
            last = spans[at]
    return words, labels


def train_tagger(
    texts: Iterable[Labelled],
    kinds: Sequence[str],
    threshold: float,
    card: Mapping[str, Any],
    words: Mapping[str, int],
    known: AbstractSet[int] = frozenset(),
    iterations: int = ITERATIONS,
) -> TaggerModel:
    """Train a model. The same texts in the same order give the same bits. Raises InputError without
    labelled spans.

    Args:
        kinds: the PHI labels to learn.
        threshold: minimum probability of a token.
        words: number of texts in which a word is in lower case (`written_small`).
        known: hashes of further words that are not names, counted in other texts.
        iterations: maximum number of training iterations.
    """
    labels = labels_of(kinds)
    counted = {"texts": 0, "tokens": 0, "marked": 0}

    def examples() -> Iterator[tuple[list[str], list[str]]]:
        for text in texts:
            words_of_text, labels_of_text = labelled_tokens(text, kinds)
            counted["texts"] += 1
            counted["tokens"] += len(words_of_text)
            counted["marked"] += sum(label[0] == "B" for label in labels_of_text)
            if words_of_text:
                yield words_of_text, labels_of_text

    # In training, a word is known only if it occurs in another text too, because new texts contain
    # unknown words.
    weights = fit(examples(), labels, Features(known | _hashes(words, MIN_TEXTS + 1)), iterations)
    if not counted["marked"]:
        raise InputError("no span with a requested label in the training notes")
    hashes = np.array(sorted(known | _hashes(words, MIN_TEXTS)), np.uint32)
    return TaggerModel(labels, *weights, hashes, threshold, {**card, **counted})


def _hashes(words: Mapping[str, int], least: int) -> frozenset[int]:
    return frozenset(word_hash(word) for word, texts_with in words.items() if texts_with >= least)


def written_small(texts: Iterable[str]) -> Counter[str]:
    """Count, for each word that is not a name, the texts in which it is in lower case."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({word for word in _SMALL.findall(plain(text).text) if _may_be_known(word)})
    return counts


def _may_be_known(word: str) -> bool:
    classes = lexical_classes(word)
    return not classes & LexicalClass.NAME or bool(classes & LexicalClass.FOREIGN_ONLY)


def threshold_within(
    tagger: Tagger, texts: Iterable[Labelled], most: float, least: float = 0.05
) -> float:
    """Return the lowest threshold at which a tagger tags at most a share `most` of words outside
    labelled spans.

    Args:
        texts: held-out texts, in which the findings of the rules are also labelled.
        most: maximum share of their words.
        least: lower bound of the threshold.
    """
    scores = [np.empty(0)]
    words = 0
    for text in texts:
        text_tokens, given = labelled_tokens(text, [*{span.label for span in text.spans}])
        words += sum(token[0].isalpha() for token in text_tokens)
        free = [
            at for at, label in enumerate(given) if label == "O" and text_tokens[at][0].isalpha()
        ]
        scores.append(1 - tagger.probabilities(text_tokens)[free, 0])
    highest = np.sort(np.concatenate(scores))[::-1]
    allowed = int(most * words)
    return float(max(least, np.nextafter(highest[allowed], 1) if allowed < len(highest) else least))


def judged(model: TaggerModel, texts: Iterable[Labelled]) -> dict[str, int]:
    """Evaluate on held-out texts: count spans, fully detected spans, words and texts."""
    tagger = Tagger(model)
    counts = Counter(tuned_notes=0, tuned_words=0, tuned_places=0, tuned_found=0)
    for text in texts:
        text_tokens, given = labelled_tokens(text, [*tagger.labels])
        taken = 1 - tagger.probabilities(text_tokens)[:, 0] >= model.threshold
        starts = [at for at, label in enumerate(given) if label[0] == "B"]
        ends = [
            next((at for at in range(start + 1, len(given)) if given[at][0] != "I"), len(given))
            for start in starts
        ]
        counts["tuned_notes"] += 1
        counts["tuned_words"] += sum(
            token[0].isalpha() and label == "O"
            for token, label in zip(text_tokens, given, strict=True)
        )
        counts["tuned_places"] += len(starts)
        counts["tuned_found"] += sum(
            _detected(text_tokens, taken, *span) for span in zip(starts, ends, strict=True)
        )
    return dict(counts)


def _detected(tokens: Sequence[str], taken: NDArray[np.bool_], start: int, end: int) -> bool:
    return all(taken[at] or not tokens[at][0].isalnum() for at in range(start, end))


def save_tagger(model: TaggerModel, path: Path, *, force: bool = False) -> None:
    """Write a model atomically, readable by its owner only. The same model gives the same bytes.

    Raises UsageError if the file exists, unless `force`.
    """
    record = {
        "schema": SCHEMA,
        "features": VERSION,
        "labels": model.labels,
        "threshold": model.threshold,
        "sha256": model.digest,
        "card": dict(model.card),
    }
    header = np.frombuffer(json.dumps(record, sort_keys=True).encode(), np.uint8)
    with atomic(path, force=force) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, header=header, **arrays_of(model))  # type: ignore[arg-type]
