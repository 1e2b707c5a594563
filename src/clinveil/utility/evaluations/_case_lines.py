"""Lines of text for letter-case restoration: reading, splitting, encoding as characters, and
scoring by words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import WordIds
from clinveil.core.types import Doubles, Ints
from clinveil.corpus.corpus import rows
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.open import open_corpus
from clinveil.corpus.streams import ByteReader, wrong_encoding

TEST_SHARE = 0.1
DEV_SHARE = 0.05
# numbers of characters
UNKNOWN = 0
NEWLINE = 1
_GUESS = NotesSettings()
Counts = Ints
CORRECT, PROPOSED, GOLD, WORDS = range(4)


@dataclass(frozen=True)
class Lines:
    """Stripped lines without empty ones, in order.

    name: name of the file. lines: (n_lines). owners: (n_lines) patients, for lines of notes.
    """

    name: str
    lines: Sequence[str] = field(repr=False)
    owners: Sequence[str] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, chosen: Ints) -> Lines:
        """Return some of the lines."""
        owners = None if self.owners is None else [self.owners[row] for row in chosen]
        return Lines(self.name, [self.lines[row] for row in chosen], owners)


def read_lines(path: Path, settings: NotesSettings = _GUESS) -> Lines:
    """Read a text file with one sentence per line (gzip or zstd by name), or notes in any format.

    Raises InputError: missing or damaged, another encoding, or no line of text.
    """
    if path.is_dir() or suffix_of(path):
        pairs = [
            (line, n.patient_id)
            for n in rows(open_corpus(path, settings))
            for line in _kept(n.text.splitlines())
        ]
        lines = Lines(path.name, [line for line, _ in pairs], [owner for _, owner in pairs])
    else:
        lines = Lines(path.name, _kept(_text(path, settings.encoding).split("\n")))
    if not len(lines):
        raise InputError("has no line of text", where=path.name)
    return lines


def split_lines(
    train: Lines, dev: Lines | None, test: Lines | None, rng: Generator
) -> tuple[Lines, Lines, Lines]:
    """Return training, dev and test lines; missing parts are split off (a tenth for testing, a
    twentieth for dev).

    Lines of one patient, or equal lines of a text file (ignoring case), stay in one part. Headers
    and phrases that notes of many patients share occur in all parts.

    Raises InputError for too few independent lines.
    """
    if test is None or dev is None:
        keys = [line.casefold() for line in train.lines] if train.owners is None else train.owners
        group = np.unique(np.array(keys, dtype=object), return_inverse=True)[1]
        sizes = np.bincount(group)  # groups in random order, each line at the start of its group
        order = rng.permutation(sizes.size)
        begins = np.empty_like(sizes)
        begins[order] = np.cumsum(sizes[order]) - sizes[order]
        position = begins[group]
        tested = position < (TEST_SHARE * len(train) if test is None else 0)
        picked = ~tested & (
            position < tested.sum() + (DEV_SHARE * len(train) if dev is None else 0)
        )
        test = test or train.rows(np.flatnonzero(tested))
        dev = dev or train.rows(np.flatnonzero(picked))
        train = train.rows(np.flatnonzero(~tested & ~picked))
    if not (len(train) and len(dev) and len(test)):
        raise InputError(
            "too few lines to split in three parts", where=train.name, hint="pass --dev and --test"
        )
    return train, dev, test


def _text(path: Path, encoding: str) -> str:
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    with ByteReader(path, encoding) as stream:
        data = b"".join(iter(stream.read, b""))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise wrong_encoding(f"{path.name}, line {line}", encoding) from None


def _kept(lines: Sequence[str]) -> list[str]:
    return [bare for line in lines if (bare := line.strip())]


def upper_of(character: str) -> str | None:
    """Return the upper-case form if it is one character that lowers back; otherwise None (`ß`,
    `7`).
    """
    upper = character.upper()
    return upper if len(upper) == 1 and upper != character and upper.lower() == character else None


def alphabet_of(lines: Iterable[str]) -> WordIds:
    """Return the characters of the training lines: 0 for unknown ones, 1 for the newline, the
    others sorted.
    """
    return WordIds.of(["\n", *sorted(set().union(*lines) - {"\n"})], first=NEWLINE)


def encoded(alphabet: WordIds, text: str) -> Ints:
    """Return the numbers of characters, (n_characters,); characters that are not in training are
    unknown.
    """
    return np.array(alphabet.encode(text, unknown=UNKNOWN), dtype=np.int64)


def stream(alphabet: WordIds, lines: Sequence[str]) -> Ints:
    """Encode lines as one text with a newline after each."""
    return encoded(alphabet, "".join(f"{line}\n" for line in lines))


def candidates(alphabet: WordIds, text: str) -> Ints:
    """Return each character and its upper case, (n_characters, 2); -1 if there is none or it is not
    in training.
    """
    known = {c: alphabet.ids.get(upper_of(c) or "", -1) for c in set(text)}
    return np.stack(
        [encoded(alphabet, text), np.array([known[c] for c in text], dtype=np.int64)], axis=1
    )


class Score(NamedTuple):
    """Scores; 0 where undefined."""

    precision: float
    recall: float
    f1: float


def count_words(reference: Sequence[str], restored: Sequence[str]) -> Counts:
    """Return for each line, (n_lines, 4): correct, proposed and true words with capitals, and
    words.

    Words are separated by white space; a capital is a character that lowering changes.

    Raises ValueError if a line has another number of words than its reference.
    Source: word_eval.py of raymondhs/char-rnn-truecase.
    """
    return np.array(
        [_line(*pair) for pair in zip(reference, restored, strict=True)], dtype=np.int64
    ).reshape(-1, 4)


def _line(reference: str, restored: str) -> tuple[int, int, int, int]:
    true = reference.split()
    guessed = restored.split()
    if len(true) != len(guessed):
        raise ValueError("a restored line has another number of words than its reference")
    gold = [word != word.lower() for word in true]
    right = (one == other for one, other in zip(true, guessed, strict=True))
    proposed = sum(word != word.lower() for word in guessed)
    return sum(g and r for g, r in zip(gold, right, strict=True)), proposed, sum(gold), len(true)


def by_owner(counts: Counts, owners: Sequence[str] | None) -> Counts:
    """Return the sums of the lines of each owner, (n_owners, 4), or the counts of lines without
    owners.
    """
    if owners is None:
        return counts
    names, row = np.unique(np.array(owners, dtype=object), return_inverse=True)
    sums = np.zeros((len(names), counts.shape[1]), dtype=np.int64)
    np.add.at(sums, row, counts)
    return sums


def f1_shares(counts: Counts) -> Doubles:
    """Return numerator and denominator of F1, (n_owners, 2): correct words, and the mean of
    proposed and true ones.
    """
    return np.stack([counts[:, CORRECT], (counts[:, PROPOSED] + counts[:, GOLD]) / 2], axis=1)


def score(counts: Counts) -> Score:
    """Return the score of all lines, from `count_words`."""
    totals = counts.sum(axis=0)
    precision = _share(totals[CORRECT], totals[PROPOSED])
    recall = _share(totals[CORRECT], totals[GOLD])
    return Score(precision, recall, _share(2 * precision * recall, precision + recall))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def usual_casings(lines: Sequence[str]) -> dict[str, str]:
    """Return the most frequent casing of each lowered word of the training lines; the first one of
    equal counts.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for word in line.split():
            seen[word.lower()][word] += 1
    return {lowered: casings.most_common(1)[0][0] for lowered, casings in seen.items()}


def restore_usual(lowered: Sequence[str], usual: Mapping[str, str]) -> list[str]:
    """Return lines with each word in its usual casing; unknown words stay in lower case."""
    return [" ".join(usual.get(word, word) for word in line.split()) for line in lowered]


def permuted(restored: Sequence[str], rng: Generator) -> list[str]:
    """Return the words with their casings (positions of capitals) permuted among them (control)."""
    words = [line.split() for line in restored]
    capitals = [{i for i, c in enumerate(w) if c != c.lower()} for line in words for w in line]
    order = iter(rng.permutation(len(capitals)).tolist())

    def cased(word: str) -> str:
        chosen = capitals[next(order)]
        return "".join(
            c.upper() if i in chosen and len(c.upper()) == 1 else c
            for i, c in enumerate(word.lower())
        )

    return [" ".join(map(cased, line)) for line in words]
