"""Labelled sentence pairs in the layouts of MedNLI, SICK and RQE or any table; training, dev and test pairs.

Parts are the files given, or a split of one in which no sentence stands on two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.tokens import tokens
from clinveil.core.types import Ints
from clinveil.corpus.file_format import open_source
from clinveil.utility.split import group_folds, groups

Sentence = tuple[str, ...]
# premise, hypothesis, label: the first layout whose columns are all there counts.
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
TEST, DEV = 2, 1  # tenths of what is split
LARGEST = 0.2  # a larger group cannot be kept on one side of such a split
NO_LABEL = "-"  # MedNLI's mark where the annotators did not agree


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of sentences of a file as tokens, each with its label; `dropped`: rows without a label or a sentence."""

    name: str
    premises: Sequence[Sentence] = field(repr=False)
    hypotheses: Sequence[Sentence] = field(repr=False)
    labels: Sequence[str] = field(repr=False)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, chosen: Ints) -> SentencePairs:
        """The pairs of some rows."""
        premises, hypotheses = ([side[row] for row in chosen] for side in (self.premises, self.hypotheses))
        return SentencePairs(self.name, premises, hypotheses, [self.labels[row] for row in chosen])


def read_sentence_pairs(path: Path, *, encoding: str = "utf-8") -> SentencePairs:
    """Read CSV, TSV, JSONL (gzip or zstd by name) or Parquet; columns by name, see `LAYOUTS`.

    Raises InputError: missing, damaged or empty, not in the encoding, no known columns, no labelled pair.
    """
    source, _ = open_source(path, encoding)
    columns = next((layout for layout in LAYOUTS if set(layout) <= set(source.names)), None)
    if columns is None:
        hint = "columns sentence1, sentence2, label; or the layout of MedNLI, SICK or RQE"
        raise InputError("holds no sentence pairs in a known layout", where=path.name, hint=hint)
    split = _leaves if columns[0].endswith("_parse") else _plain
    rows, found = 0, []
    for batch in source.read((columns[2],), columns[:2]):
        rows += batch.num_rows
        found += list(_pairs([batch.column(name).to_pylist() for name in columns], split))
    if not found:
        raise InputError("holds no labelled sentence pair", where=path.name)
    premises, hypotheses, labels = zip(*found, strict=True)
    return SentencePairs(path.name, premises, hypotheses, labels, rows - len(found))


def _pairs(columns: list[list[Any]], split: Callable[[str], Sentence]) -> Iterator[tuple[Sentence, Sentence, str]]:
    for premise, hypothesis, label in zip(*columns, strict=True):
        name = "" if label is None else str(label).strip()
        if premise is not None and hypothesis is not None and name not in ("", NO_LABEL):
            yield split(premise), split(hypothesis), name


def _leaves(parse: str) -> Sentence:
    """The leaves of a binary parse, without characters beyond ASCII (jgc128/mednli)."""
    words = (_BRACKETS.get(word, word) for word in parse.replace("(", " ").replace(")", " ").split())
    bare = (word.encode("ascii", "ignore").decode() for word in words)
    return tuple(word for word in bare if word)


def _plain(text: str) -> Sentence:
    return tuple(token for token in tokens(text) if not token.isspace())


@dataclass(frozen=True)
class NliParts:
    """The three parts; `detail` counts them and says what they share."""

    train: SentencePairs
    dev: SentencePairs
    test: SentencePairs
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> list[str]:
        """The labels of the training pairs, sorted."""
        return sorted(set(self.train.labels))

    def targets(self, pairs: SentencePairs) -> Ints:
        """(n_pairs,) the class of each pair. Raises InputError for a label that no training pair has."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        unknown = sum(label not in numbers for label in pairs.labels)
        if unknown:
            raise InputError(f"{unknown} pairs have a label that no training pair has", where=pairs.name)
        return np.array([numbers[label] for label in pairs.labels], dtype=np.int64)


def nli_parts(train: SentencePairs, dev: SentencePairs | None, test: SentencePairs | None, rng: Generator) -> NliParts:
    """What is not given is split off from the training pairs: two tenths to test, one tenth as dev pairs.

    Pairs that share a sentence stay on one side, whichever of the two it is. Where so many are linked that this
    cannot be (RQE: 84 % of its pairs hang together through its answers), only pairs of one premise do.
    `detail["grouping"]` says which; `test_hypotheses_seen` and `test_premises_seen` are the shares of test pairs whose
    sentence stands in a training pair too, `test_pairs_seen` those with both in one.

    Raises InputError: one label only, or too few groups to split.
    """
    if len(set(train.labels)) < 2:
        raise InputError("all its pairs have one label; there is nothing to learn", where=train.name)
    detail: dict[str, Any] = {"dropped": sum(part.dropped for part in (train, dev, test) if part)}
    if test is None or dev is None:
        group, detail["grouping"], detail["largest_group"] = _groups(train)
        tenth = _tenths(train, group, rng)
        tested = tenth < (TEST if test is None else 0)
        picked = ~tested & (tenth < (TEST if test is None else 0) + (DEV if dev is None else 0))
        test = test or train.rows(np.flatnonzero(tested))
        dev = dev or train.rows(np.flatnonzero(picked))
        train = train.rows(np.flatnonzero(~tested & ~picked))
    else:
        detail["grouping"] = "files as given"
    if not len(test) or not len(dev) or len(set(train.labels)) < 2:
        raise InputError("too few pairs to split in three parts", where=train.name, hint="give --dev and --test")
    detail |= {"train": len(train), "dev": len(dev), "test": len(test), "classes": len(set(train.labels))}
    return NliParts(train, dev, test, detail | _shared(train, test))


def premise_groups(pairs: SentencePairs) -> Ints:
    """(n_pairs,) the premise of each pair, numbered."""
    return _numbered([_key(sentence) for sentence in pairs.premises])


def _groups(pairs: SentencePairs) -> tuple[Ints, str, int]:
    """What stays together, how it was found, and the size of the largest group."""
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


def _tenths(pairs: SentencePairs, group: Ints, rng: Generator) -> Ints:
    """(n_pairs,) a number below ten: groups whole, labels in about equal shares."""
    few = InputError("too few pairs to split in three parts", where=pairs.name, hint="give --dev and --test")
    tenth = np.zeros(len(pairs), dtype=np.int64)
    for number, (_, rows) in enumerate(group_folds(pairs.labels, group, TENTHS, rng, few)):
        tenth[rows] = number
    return tenth


def _shared(train: SentencePairs, test: SentencePairs) -> dict[str, float]:
    """Shares of test pairs that meet a sentence of training, or the whole pair."""
    premises, hypotheses = (set(map(_key, side)) for side in (train.premises, train.hypotheses))
    both = set(zip(map(_key, train.premises), map(_key, train.hypotheses), strict=True))
    keys = list(zip(map(_key, test.premises), map(_key, test.hypotheses), strict=True))
    return {
        "test_premises_seen": sum(one in premises or one in hypotheses for one, _ in keys) / len(keys),
        "test_hypotheses_seen": sum(one in premises or one in hypotheses for _, one in keys) / len(keys),
        "test_pairs_seen": sum(key in both for key in keys) / len(keys),
    }
