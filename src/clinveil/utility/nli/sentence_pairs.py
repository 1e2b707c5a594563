"""Labelled sentence pairs in the layouts of MedNLI, SICK and RQE, or in any table with usual column names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.tokens import tokens
from clinveil.corpus.file_format import open_source

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
NO_LABEL = "-"  # MedNLI's mark where the annotators did not agree


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of sentences as tokens, each pair with its label.

    Attributes:
        name: of the file.
        premises, hypotheses: (n_pairs) tokens. labels: (n_pairs).
        dropped: rows without a label (or `-`), or without a sentence.
    """

    name: str
    premises: Sequence[Sentence] = field(repr=False)
    hypotheses: Sequence[Sentence] = field(repr=False)
    labels: Sequence[str] = field(repr=False)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, chosen: NDArray[np.int64]) -> SentencePairs:
        """The pairs of some rows."""
        premises, hypotheses = ([side[row] for row in chosen] for side in (self.premises, self.hypotheses))
        return SentencePairs(self.name, premises, hypotheses, [self.labels[row] for row in chosen])


def read_sentence_pairs(path: Path, *, encoding: str = "utf-8") -> SentencePairs:
    """Read CSV, TSV, JSONL (gzip or zstd by name) or Parquet; columns by name, see `LAYOUTS`.

    Raises:
        InputError: missing, damaged or empty, not in the encoding, no known columns, no labelled pair.
    """
    source, _ = open_source(path, encoding)
    columns = next((layout for layout in LAYOUTS if set(layout) <= set(source.names)), None)
    if columns is None:
        remedy = "columns sentence1, sentence2, label; or the layout of MedNLI, SICK or RQE"
        raise InputError("holds no sentence pairs in a known layout", where=path.name, remedy=remedy)
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
