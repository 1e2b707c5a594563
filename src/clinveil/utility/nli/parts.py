"""Training, dev and test pairs: the files given, or a split of one in which no sentence stands on two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.utility.duplicates import groups
from clinveil.utility.nli.sentence_pairs import Sentence, SentencePairs

TENTHS = 10
TEST, DEV = 2, 1  # tenths of what is split
LARGEST = 0.2  # a larger group cannot be kept on one side of such a split
Groups = NDArray[np.int64]


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

    def targets(self, pairs: SentencePairs) -> NDArray[np.int64]:
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

    Raises:
        InputError: one label only, or too few groups to split.
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
        raise InputError("too few pairs to split in three parts", where=train.name, remedy="give --dev and --test")
    detail |= {"train": len(train), "dev": len(dev), "test": len(test), "classes": len(set(train.labels))}
    return NliParts(train, dev, test, detail | _shared(train, test))


def premise_groups(pairs: SentencePairs) -> Groups:
    """(n_pairs,) the premise of each pair, numbered."""
    return _numbered([_key(sentence) for sentence in pairs.premises])


def _groups(pairs: SentencePairs) -> tuple[Groups, str, int]:
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


def _numbered(keys: Sequence[Sentence]) -> Groups:
    numbers: dict[Sentence, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _tenths(pairs: SentencePairs, group: Groups, rng: Generator) -> Groups:
    """(n_pairs,) a number below ten: groups whole, labels in about equal shares."""
    from sklearn.model_selection import StratifiedGroupKFold

    labels = np.unique(np.array(pairs.labels, dtype=object), return_inverse=True)[1]
    if np.unique(group).size < TENTHS or np.bincount(labels).max() < TENTHS:
        raise InputError("too few pairs to split in three parts", where=pairs.name, remedy="give --dev and --test")
    folds = StratifiedGroupKFold(n_splits=TENTHS, shuffle=True, random_state=int(rng.integers(2**31)))
    tenth = np.zeros(len(pairs), dtype=np.int64)
    for number, (_, rows) in enumerate(folds.split(np.zeros(len(pairs)), labels, group)):
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
