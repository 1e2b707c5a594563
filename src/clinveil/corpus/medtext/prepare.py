"""Split notes in MedText format by patient or note, count them (paper C, Table 1), and write the
corpus.

Writes the parts as tables and in paper C's layout, the vocabulary, the counts, and a hash of every
file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.files import sha256
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus, memory_corpus, rows
from clinveil.corpus.medtext.form import EON, EOS, UNK, Splitter, Tags, medtext, sentences
from clinveil.corpus.roles import UNWANTED, selected
from clinveil.corpus.write import write_corpus

PARTS = ("train", "valid", "test")
MIN_COUNT = 3
NO_WORD = "no word in it"
SCHEMA = "clinveil.medtext/1"
SECRET = """SECRET: all of this folder. It must not leave.

The parts contain the notes in another format; only rare words are replaced, with <unk>. The vocabulary also comes from
the notes. counts.json and hashes.json contain numbers only. Anyone with the notes and the seed can recompute the hashes
and verify that these notes were used.
"""
_COLUMNS = Columns(text=TEXT, note_id=NOTE_ID, patient_id=PATIENT_ID)


@dataclass(frozen=True)
class SplitSizes:
    """The sizes of the parts; training gets all remaining notes unless `train` or `words` limits
    it.

    Attributes:
        valid, test: minimum number of notes (patients are not split). train: minimum number of
            notes, or None.
        words: minimum number of words, or None.
    """

    valid: int = 128
    test: int = 128
    train: int | None = None
    words: int | None = None


# Paper C, Table 1.
SMALL = SplitSizes(train=1280)
LARGE = SplitSizes()


def split_notes(
    patients: Sequence[str],
    lengths: Sequence[int],
    sizes: SplitSizes,
    rng: Generator,
    *,
    by_note: bool = False,
) -> dict[str, list[int]]:
    """Return the rows of each part, in random order; a patient's notes are in one part unless
    `by_note`.

    For the same generator, validation and test parts do not depend on the size of the training
    part, and a smaller training part is a subset of a larger one.

    Args:
        patients: the patient of each note. lengths: words of each note.
        by_note: paper C's split, in which a patient may be in several parts.

    Raises:
        InputError: too few notes or words for the parts.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(patients):
        groups.setdefault(str(row) if by_note else patient, []).append(row)
    order = sorted(groups)
    shuffled = [groups[order[i]] for i in rng.permutation(len(order))]
    parts: dict[str, list[int]] = {name: [] for name in PARTS}
    for name, wanted in (("test", sizes.test), ("valid", sizes.valid)):
        while shuffled and len(parts[name]) < wanted:
            parts[name] += shuffled.pop()
    words = 0
    while (
        shuffled
        and (sizes.train is None or len(parts["train"]) < sizes.train)
        and (sizes.words is None or words < sizes.words)
    ):
        group = shuffled.pop()
        words += sum(lengths[row] for row in group)
        parts["train"] += group
    _refuse_short(parts, words, sizes, len(patients))
    # Training last, so that its size does not change the order of the other parts.
    for name in reversed(PARTS):
        parts[name] = [parts[name][i] for i in rng.permutation(len(parts[name]))]
    return parts


def _refuse_short(parts: dict[str, list[int]], words: int, sizes: SplitSizes, n: int) -> None:
    enough_words = sizes.words is not None and words >= sizes.words
    train = 1 if enough_words or sizes.train is None else sizes.train
    wanted = {"train": train, "valid": sizes.valid, "test": sizes.test}
    hint = "reduce --train, --words, --valid or --test"
    if any(len(parts[name]) < wanted[name] for name in PARTS):
        raise InputError(f"{n} notes are too few; the parts need {sum(wanted.values())}", hint=hint)
    if sizes.train is None and sizes.words is not None and not enough_words:
        raise InputError(f"only {words} of {sizes.words} words are left for training", hint=hint)


@dataclass(frozen=True)
class Dictionary:
    """The vocabulary of a corpus.

    Attributes:
        words: frequent words, in order of first occurrence.
        counts: occurrences of every word, including rare ones.
        patients: number of patients per word.
    """

    words: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(repr=False)
    patients: Counter[str] = field(repr=False)

    @property
    def unknown_share(self) -> float:
        """Share of running words that are rare (OOV in Table 1)."""
        total = sum(self.counts.values())
        return (total - sum(self.counts[word] for word in self.words)) / total if total else 0.0

    @property
    def size(self) -> int:
        """The vocabulary size as in paper C's code: frequent words, `<unk>` if there are rare ones,
        `<eos>`.
        """
        return len(self.words) + (len(self.words) < len(self.counts)) + 1


def dictionary(
    notes: Iterable[str],
    patients: Sequence[str],
    *,
    min_count: int = MIN_COUNT,
    min_patients: int = 1,
) -> Dictionary:
    """Count the words of notes in MedText format.

    Args:
        min_count: words with fewer occurrences are rare (paper C: below 3 in all parts).
        min_patients: words with fewer patients are rare too (not in the paper).
    """
    counts: Counter[str] = Counter()
    seen: dict[str, set[str]] = {}
    for text, patient in zip(notes, patients, strict=True):
        row = text.split()
        counts.update(row)
        for word in set(row):
            seen.setdefault(word, set()).add(patient)
    n_patients = Counter({word: len(owners) for word, owners in seen.items()})
    frequent = (w for w in counts if counts[w] >= min_count and n_patients[w] >= min_patients)
    return Dictionary(tuple(w for w in frequent if w not in (UNK, EOS, EON)), counts, n_patients)


def with_unknown(text: str, kept: frozenset[str]) -> str:
    """Return a note in MedText format with all words outside the vocabulary replaced with
    `<unk>`.
    """
    return "\n".join(
        " ".join(w if w in kept else UNK for w in line.split(" ")) for line in text.split("\n")
    )


@dataclass(frozen=True)
class PartCounts:
    """Counts of one part: notes, patients, lines, and words without line ends."""

    notes: int
    patients: int
    lines: int
    words: int


@dataclass(frozen=True)
class CorpusCounts:
    """One column of Table 1.

    Attributes:
        parts: by name.
        vocabulary: frequent words, `<unk>` if there are rare ones, and `<eos>`.
        oov: share of running words that are rare.
    """

    name: str
    parts: dict[str, PartCounts]
    vocabulary: int
    oov: float


def table_rows(columns: Sequence[CorpusCounts]) -> list[tuple[str, ...]]:
    """Return the rows of Table 1, starting with the column names."""
    rows = [("", *(column.name for column in columns))]
    for what in ("notes", "patients", "lines", "words"):
        for part in PARTS:
            rows.append(
                (
                    f"{what}, {part}",
                    *(f"{getattr(column.parts[part], what):,}" for column in columns),
                )
            )
    rows.append(("vocabulary", *(f"{column.vocabulary:,}" for column in columns)))
    return [*rows, ("OOV", *(f"{column.oov:.1%}" for column in columns))]


@dataclass(frozen=True)
class MedTextNotes:
    """Notes in MedText format, in source order. The repr shows no content.

    Attributes:
        skipped: notes left out, by reason.
    """

    texts: tuple[str, ...] = field(repr=False)
    note_ids: tuple[str, ...] = field(repr=False)
    patients: tuple[str, ...] = field(repr=False)
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> list[int]:
        """Words of each note, without line ends."""
        return [len(text.split()) for text in self.texts]


def read_medtext(
    corpus: Corpus,
    *,
    only: Mapping[str, str] | None = None,
    tags: Tags = "all",
    split: Splitter = sentences,
) -> MedTextNotes:
    """Read the selected notes of a corpus into memory.

    Args:
        only: column -> value; the corpus must keep these columns.

    Raises:
        InputError: no note is left.
    """
    skipped: Counter[str] = Counter()
    read: list[tuple[str, str, str]] = []
    for batch in corpus.batches():
        wanted = batch.filter(pa.array(selected(batch, only or {}), pa.bool_()))
        before = len(read)
        for note, patient, raw in rows([wanted]):
            if text := medtext(raw, tags=tags, split=split):
                read.append((text, note, patient))
        skipped[UNWANTED] += batch.num_rows - wanted.num_rows
        skipped[NO_WORD] += wanted.num_rows - (len(read) - before)
    skipped += corpus.skipped  # adding Counters also removes zero counts
    if not read:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped.most_common())
        raise InputError(f"no note is left ({reasons})", hint="check --text and --only")
    texts, notes, patients = zip(*read, strict=True)
    return MedTextNotes(texts, notes, patients, skipped)


@dataclass(frozen=True)
class MedTextPlan:
    """Options for converting notes to MedText.

    Attributes:
        sizes: per corpus name; a corpus with an empty name is written to the folder itself.
        by_note: split by note as in paper C. seed: of the split.
        min_count, min_patients: words with fewer occurrences in all parts, or with fewer patients,
            are rare.
    """

    sizes: Mapping[str, SplitSizes]
    seed: int
    by_note: bool = False
    min_count: int = 3
    min_patients: int = 1


def write_medtext(notes: MedTextNotes, plan: MedTextPlan, folder: Path) -> list[CorpusCounts]:
    """Write every corpus of a plan into an existing folder; the output depends only on notes and
    plan.

    Raises:
        InputError: fewer notes or words than the parts need.
    """
    lengths = notes.lengths
    counts = []
    for name, sizes in plan.sizes.items():
        # New each time: all corpora share validation and test notes.
        rng = np.random.default_rng(plan.seed)
        parts = split_notes(notes.patients, lengths, sizes, rng, by_note=plan.by_note)
        target = folder / name
        target.mkdir(mode=0o700, exist_ok=True)
        counts.append(
            replace(_write_corpus(notes, parts, plan, target), name=f"MedText {name}".strip())
        )
    return counts


def _write_corpus(
    notes: MedTextNotes, parts: Mapping[str, Sequence[int]], plan: MedTextPlan, folder: Path
) -> CorpusCounts:
    rows = [row for part in PARTS for row in parts[part]]
    texts = (notes.texts[row] for row in rows)
    patients = [notes.patients[row] for row in rows]
    words = dictionary(texts, patients, min_count=plan.min_count, min_patients=plan.min_patients)
    kept = frozenset(words.words)
    _write_lines(folder / "vocabulary.txt", _vocabulary((notes.texts[row] for row in rows), kept))
    for part in PARTS:
        written = [
            (notes.note_ids[r], notes.patients[r], with_unknown(notes.texts[r], kept))
            for r in parts[part]
        ]
        write_corpus(
            memory_corpus(written).batches(), folder / f"{part}.parquet", _COLUMNS, ".parquet"
        )
        _write_lines(folder / f"{part}.txt", (f"{text}\n" for _, _, text in written))
    counts = {
        part: PartCounts(
            notes=len(of_part),
            patients=len({notes.patients[row] for row in of_part}),
            lines=sum(notes.texts[row].count("\n") + 1 for row in of_part),
            words=sum(len(notes.texts[row].split()) for row in of_part),
        )
        for part, of_part in parts.items()
    }
    return CorpusCounts("", counts, words.size, words.unknown_share)


def _vocabulary(texts: Iterable[str], kept: frozenset[str]) -> Iterable[str]:
    """Return the vocabulary of paper C's code: all words after replacing rare ones, in order of
    first occurrence.
    """
    lines = (line for text in texts for line in text.split("\n"))
    return dict.fromkeys(
        word for line in lines for word in (*with_unknown(line, kept).split(" "), EOS)
    )


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_records(folder: Path, corpora: Sequence[CorpusCounts], about: Mapping[str, Any]) -> None:
    """Write `SECRET.txt`, `counts.json` and finally `hashes.json` with the SHA-256 of every other
    file.
    """
    (folder / "SECRET.txt").write_text(SECRET, encoding="utf-8")
    counts = {"schema": SCHEMA, **about, "corpora": [asdict(corpus) for corpus in corpora]}
    _write_json(folder / "counts.json", counts)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    _write_json(
        folder / "hashes.json",
        {path.relative_to(folder).as_posix(): sha256(path) for path in files},
    )


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
