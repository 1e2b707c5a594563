"""Convert notes to MedText format and write the corpus.

Writes the parts as tables and in paper C's layout, the vocabulary, the counts, and a hash of every file.
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

from clinveil.core.errors import InputError
from clinveil.core.files import sha256
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus, memory_corpus, rows
from clinveil.corpus.medtext.form import EOS, Splitter, Tags, medtext, sentences
from clinveil.corpus.medtext.parts import (
    PARTS,
    CorpusCounts,
    PartCounts,
    SplitSizes,
    dictionary,
    split_notes,
    with_unknown,
)
from clinveil.corpus.roles import UNWANTED, selected
from clinveil.corpus.write import write_corpus

NO_WORD = "no word in it"
SCHEMA = "clinveil.medtext/1"
SECRET = """SECRET: all of this folder. It must not leave.

The parts contain the notes in another format; only rare words are replaced, with <unk>. The vocabulary also comes from
the notes. counts.json and hashes.json contain numbers only. Anyone with the notes and the seed can recompute the hashes
and verify that these notes were used.
"""
_COLUMNS = Columns(text=TEXT, note_id=NOTE_ID, patient_id=PATIENT_ID)


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
    corpus: Corpus, *, only: Mapping[str, str] | None = None, tags: Tags = "all", split: Splitter = sentences
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
        min_count, min_patients: words with fewer occurrences in all parts, or with fewer patients, are rare.
    """

    sizes: Mapping[str, SplitSizes]
    seed: int
    by_note: bool = False
    min_count: int = 3
    min_patients: int = 1


def write_medtext(notes: MedTextNotes, plan: MedTextPlan, folder: Path) -> list[CorpusCounts]:
    """Write every corpus of a plan into an existing folder; the output depends only on notes and plan.

    Raises:
        InputError: fewer notes or words than the parts need.
    """
    lengths, counts = notes.lengths, []
    for name, sizes in plan.sizes.items():
        rng = np.random.default_rng(plan.seed)  # new each time: all corpora share validation and test notes
        parts = split_notes(notes.patients, lengths, sizes, rng, by_note=plan.by_note)
        target = folder / name
        target.mkdir(mode=0o700, exist_ok=True)
        counts.append(replace(_write_corpus(notes, parts, plan, target), name=f"MedText {name}".strip()))
    return counts


def _write_corpus(
    notes: MedTextNotes, parts: Mapping[str, Sequence[int]], plan: MedTextPlan, folder: Path
) -> CorpusCounts:
    rows = [row for part in PARTS for row in parts[part]]
    texts, patients = (notes.texts[row] for row in rows), [notes.patients[row] for row in rows]
    words = dictionary(texts, patients, min_count=plan.min_count, min_patients=plan.min_patients)
    kept = frozenset(words.words)
    _write_lines(folder / "vocabulary.txt", _vocabulary((notes.texts[row] for row in rows), kept))
    for part in PARTS:
        written = [(notes.note_ids[r], notes.patients[r], with_unknown(notes.texts[r], kept)) for r in parts[part]]
        write_corpus(memory_corpus(written).batches(), folder / f"{part}.parquet", _COLUMNS, ".parquet")
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
    """Return the vocabulary of paper C's code: all words after replacing rare ones, in order of first occurrence."""
    lines = (line for text in texts for line in text.split("\n"))
    return dict.fromkeys(word for line in lines for word in (*with_unknown(line, kept).split(" "), EOS))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_records(folder: Path, corpora: Sequence[CorpusCounts], about: Mapping[str, Any]) -> None:
    """Write `SECRET.txt`, `counts.json` and finally `hashes.json` with the SHA-256 of every other file."""
    (folder / "SECRET.txt").write_text(SECRET, encoding="utf-8")
    counts = {"schema": SCHEMA, **about, "corpora": [asdict(corpus) for corpus in corpora]}
    _write_json(folder / "counts.json", counts)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    _write_json(folder / "hashes.json", {path.relative_to(folder).as_posix(): sha256(path) for path in files})


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
