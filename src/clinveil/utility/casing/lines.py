"""Cased lines from a text file or from notes, and their split into training, dev and test lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import PATIENT_ID, TEXT
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.open import open_corpus
from clinveil.corpus.streams import ByteReader, wrong_encoding

TEST_SHARE, DEV_SHARE = 0.1, 0.05
_GUESS = NotesSettings()


@dataclass(frozen=True)
class Lines:
    """Lines that hold more than white space, stripped, in order.

    Attributes:
        name: of the file. lines: (n_lines). owners: (n_lines) patients, where they come from notes.
    """

    name: str
    lines: Sequence[str] = field(repr=False)
    owners: Sequence[str] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, chosen: NDArray[np.int64]) -> Lines:
        """Some of the lines."""
        owners = None if self.owners is None else [self.owners[row] for row in chosen]
        return Lines(self.name, [self.lines[row] for row in chosen], owners)


def read_lines(path: Path, settings: NotesSettings = _GUESS) -> Lines:
    """Read a text file of a sentence a line (gzip or zstd by name), or notes in any format.

    Raises:
        InputError: missing or damaged, not in the encoding, or without a line of text.
    """
    if path.is_dir() or suffix_of(path):
        found = _of_notes(path, settings)
    else:
        found = Lines(path.name, _kept(_text(path, settings.encoding).split("\n")))
    if not len(found):
        raise InputError("holds no line of text", where=path.name)
    return found


def split_lines(train: Lines, dev: Lines | None, test: Lines | None, rng: Generator) -> tuple[Lines, Lines, Lines]:
    """Training, dev and test lines: what is not given is split off, a tenth to test and a twentieth as dev lines.

    Lines of one patient stay on one side; of a text file, those that are equal but for case. (Headers and phrases that
    many patients' notes share stand on every side: real notes do so too.)

    Raises:
        InputError: too few lines that are independent of each other.
    """
    if test is None or dev is None:
        place = _shuffled(_groups(train), rng)
        tested = place < (TEST_SHARE * len(train) if test is None else 0)
        picked = ~tested & (place < tested.sum() + (DEV_SHARE * len(train) if dev is None else 0))
        test = test or train.rows(np.flatnonzero(tested))
        dev = dev or train.rows(np.flatnonzero(picked))
        train = train.rows(np.flatnonzero(~tested & ~picked))
    if not (len(train) and len(dev) and len(test)):
        raise InputError("too few lines to split in three parts", where=train.name, remedy="give --dev and --test")
    return train, dev, test


def _text(path: Path, encoding: str) -> str:
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, remedy="check the path")
    with ByteReader(path, encoding) as stream:
        data = b"".join(iter(stream.read, b""))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise wrong_encoding(f"{path.name}, line {line}", encoding) from None


def _of_notes(path: Path, settings: NotesSettings) -> Lines:
    lines, owners = [], []
    for batch in open_corpus(path, settings).batches():
        for text, patient in zip(batch[TEXT].to_pylist(), batch[PATIENT_ID].to_pylist(), strict=True):
            kept = _kept((text or "").splitlines())
            lines += kept
            owners += [patient] * len(kept)
    return Lines(path.name, lines, owners)


def _kept(lines: Sequence[str]) -> list[str]:
    return [bare for line in lines if (bare := line.strip())]


def _groups(lines: Lines) -> NDArray[np.int64]:
    """(n_lines,) what stays together."""
    keys = [line.casefold() for line in lines.lines] if lines.owners is None else lines.owners
    return np.unique(np.array(keys, dtype=object), return_inverse=True)[1].astype(np.int64)


def _shuffled(group: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """(n_lines,) where the group of each line begins when groups are laid out in random order."""
    sizes = np.bincount(group)
    order = rng.permutation(sizes.size)
    begins = np.empty_like(sizes)
    begins[order] = np.cumsum(sizes[order]) - sizes[order]
    return begins[group]
