"""Labelled sentence pairs in the layouts of MedNLI, SICK, RQE or similar tables; training, dev and
test pairs.

Parts are separate files, or a split of one file that keeps each sentence in one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core import InputError, Ints, tokens
from clinveil.corpus import open_source
from clinveil.utility import group_folds, groups

Sentence = tuple[str, ...]
# Columns of premise, hypothesis and label; the first complete layout is used.
LAYOUTS = (
    ("sentence1_binary_parse", "sentence2_binary_parse", "gold_label"),
    ("sentence1", "sentence2", "gold_label"),
    ("sentence_A", "sentence_B", "entailment_judgment"),
    ("sentence_A", "sentence_B", "entailment_label"),
    ("chq", "faq", "label"),
    ("sentence1", "sentence2", "label"),
    ("premise", "hypothesis", "label"),
)
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}
TENTHS = 10
# tenths
TEST = 2
DEV = 1
LARGEST = 0.2  # a larger group cannot be kept in one part
NO_LABEL = "-"  # MedNLI's mark of pairs on which the annotators did not agree


@dataclass(frozen=True)
class SentencePairs:
    """Sentence pairs of a file as tokens, with labels; `dropped`: rows without a label or a
    sentence.
    """

    name: str
    premises: Sequence[Sentence] = field(repr=False)
    hypotheses: Sequence[Sentence] = field(repr=False)
    labels: Sequence[str] = field(repr=False)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, chosen: Ints) -> SentencePairs:
        """Return some of the pairs."""
        premises, hypotheses = (
            [side[row] for row in chosen] for side in (self.premises, self.hypotheses)
        )
        return SentencePairs(self.name, premises, hypotheses, [self.labels[row] for row in chosen])


def read_sentence_pairs(path: Path, *, encoding: str = "utf-8") -> SentencePairs:
    """Read CSV, TSV, JSONL (gzip or zstd by name) or Parquet with the columns of one of `LAYOUTS`.

    Raises InputError: missing, damaged or empty, another encoding, unknown columns, no labelled
    pair.
    """
    source, _ = open_source(path, encoding)
    columns = next((layout for layout in LAYOUTS if set(layout) <= set(source.names)), None)
    if columns is None:
        hint = "pass columns sentence1, sentence2, label, or the layout of MedNLI, SICK or RQE"
        raise InputError("has no sentence pairs in a known layout", where=path.name, hint=hint)
    split = _leaves if columns[0].endswith("_parse") else _plain
    rows = 0
    pairs = []
    for batch in source.read((columns[2],), columns[:2]):
        rows += batch.num_rows
        pairs += list(_pairs([batch.column(name).to_pylist() for name in columns], split))
    if not pairs:
        raise InputError("has no labelled sentence pair", where=path.name)
    premises, hypotheses, labels = zip(*pairs, strict=True)
    return SentencePairs(path.name, premises, hypotheses, labels, rows - len(pairs))


def _pairs(
    columns: list[list[Any]], split: Callable[[str], Sentence]
) -> Iterator[tuple[Sentence, Sentence, str]]:
    for premise, hypothesis, label in zip(*columns, strict=True):
        name = "" if label is None else str(label).strip()
        if premise is not None and hypothesis is not None and name not in ("", NO_LABEL):
            yield split(premise), split(hypothesis), name


def _leaves(parse: str) -> Sentence:
    """Return the leaves of a binary parse, without non-ASCII characters (jgc128/mednli)."""
    words = (
        _BRACKETS.get(word, word) for word in parse.replace("(", " ").replace(")", " ").split()
    )
    bare = (word.encode("ascii", "ignore").decode() for word in words)
    return tuple(word for word in bare if word)


def _plain(text: str) -> Sentence:
    return tuple(token for token in tokens(text) if not token.isspace())


@dataclass(frozen=True)
class NliParts:
    """The three parts; `numbers` has their sizes and overlaps, `grouping` the rule of the split."""

    train: SentencePairs
    dev: SentencePairs
    test: SentencePairs
    grouping: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def classes(self) -> list[str]:
        """Labels of the training pairs, sorted."""
        return sorted(set(self.train.labels))

    def targets(self, pairs: SentencePairs) -> Ints:
        """Return the class of each pair, (n_pairs,). Raises InputError for a label that no training
        pair has.
        """
        numbers = {name: number for number, name in enumerate(self.classes)}
        unknown = sum(label not in numbers for label in pairs.labels)
        if unknown:
            raise InputError(
                f"{unknown} pairs have a label that no training pair has", where=pairs.name
            )
        return np.array([numbers[label] for label in pairs.labels], dtype=np.int64)


def nli_parts(
    train: SentencePairs, dev: SentencePairs | None, test: SentencePairs | None, rng: Generator
) -> NliParts:
    """Return three parts; missing ones are split off from the training pairs (two tenths for
    testing, one for dev).

    Pairs with a common sentence stay in one part. If too many pairs are linked in this way (84 % of
    the pairs of RQE, by its answers), only pairs of one premise do. `grouping` names the
    rule. `test_hypotheses_seen` and `test_premises_seen` are the shares of test pairs with a
    sentence that is also in a training pair, and `test_pairs_seen` is the share of test pairs with
    both sentences in one training pair.

    Raises InputError: only one label, or too few groups to split.
    """
    if len(set(train.labels)) < 2:
        raise InputError("all its pairs have the same label", where=train.name)
    numbers: dict[str, float] = {
        "dropped": sum(part.dropped for part in (train, dev, test) if part)
    }
    grouping = "files as given"
    if test is None or dev is None:
        group, grouping, largest = _groups(train)
        numbers["largest_group"] = largest
        few = InputError(
            "too few pairs to split in three parts", where=train.name, hint="pass --dev and --test"
        )
        tenth = np.zeros(len(train), dtype=np.int64)
        for number, (_, fold) in enumerate(group_folds(train.labels, group, TENTHS, rng, few)):
            tenth[fold] = number
        tested = tenth < (TEST if test is None else 0)
        picked = ~tested & (tenth < (TEST if test is None else 0) + (DEV if dev is None else 0))
        test = test or train.rows(np.flatnonzero(tested))
        dev = dev or train.rows(np.flatnonzero(picked))
        train = train.rows(np.flatnonzero(~tested & ~picked))
    if not len(test) or not len(dev) or len(set(train.labels)) < 2:
        raise InputError(
            "too few pairs to split in three parts", where=train.name, hint="pass --dev and --test"
        )
    numbers |= {
        "train": len(train),
        "dev": len(dev),
        "test": len(test),
        "classes": len(set(train.labels)),
    }
    return NliParts(train, dev, test, grouping, numbers | _shared(train, test))


def premise_groups(pairs: SentencePairs) -> Ints:
    """Return the number of the premise of each pair, (n_pairs,)."""
    return _numbered([_key(sentence) for sentence in pairs.premises])


def _groups(pairs: SentencePairs) -> tuple[Ints, str, int]:
    """Return the group of each pair, the rule of grouping, and the size of the largest group."""
    keys = _numbered([_key(s) for s in (*pairs.premises, *pairs.hypotheses)])
    linked = groups(int(keys.max()) + 1, keys.reshape(2, -1).T)[keys[: len(pairs)]]
    largest = int(np.bincount(linked).max())
    if largest <= LARGEST * len(pairs):
        return linked, "either sentence", largest
    group = premise_groups(pairs)
    return group, "premise", int(np.bincount(group).max())


def _key(sentence: Sentence) -> Sentence:
    return tuple(token.casefold() for token in sentence)


def _numbered(keys: Sequence[Sentence]) -> Ints:
    numbers: dict[Sentence, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _shared(train: SentencePairs, test: SentencePairs) -> dict[str, float]:
    """Return the shares of test pairs with a sentence, or both sentences, of a training pair."""
    premises, hypotheses = (set(map(_key, side)) for side in (train.premises, train.hypotheses))
    both = set(zip(map(_key, train.premises), map(_key, train.hypotheses), strict=True))
    keys = list(zip(map(_key, test.premises), map(_key, test.hypotheses), strict=True))
    return {
        "test_premises_seen": sum(one in premises or one in hypotheses for one, _ in keys)
        / len(keys),
        "test_hypotheses_seen": sum(one in premises or one in hypotheses for _, one in keys)
        / len(keys),
        "test_pairs_seen": sum(key in both for key in keys) / len(keys),
    }
