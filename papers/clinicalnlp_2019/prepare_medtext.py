"""Make MedText, the corpus of paper C, from your notes:
`python -m papers.clinicalnlp_2019.prepare_medtext NOTES -o OUT --seed 1`.

Writes one sentence per line, rare words as <unk>, split by patient into three parts: the parts as
tables and in paper C's layout, the vocabulary, the counts (Table 1), and a hash of every file. All
of OUT is as secret as the notes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clinveil import Columns, Corpus, InputError, UsageError, open_corpus
from clinveil.core import MissingExtra, NotesSettings, atomic, sha256
from clinveil.corpus import (
    DEIDENTIFIED,
    EOS,
    NOTE_ID,
    PATIENT_ID,
    TEXT,
    Splitter,
    Tags,
    dictionary,
    medtext,
    memory_corpus,
    rows,
    sentences,
    sentences_of,
    with_unknown,
    write_corpus,
)
from papers.clinicalnlp_2019.split import PARTS, SplitSizes, split_notes
from papers.running import exit_code_of, say
from papers.selection import UNWANTED, selected, selection

# Paper C uses these notes of MIMIC-III.
CATEGORY = "category"
DISCHARGE = "Discharge summary"
NO_WORD = "no word in it"
SCHEMA = "clinveil.medtext/1"
SECRET = """SECRET: all of this folder. It must not leave.

The parts contain the notes in another format; only rare words are replaced, with <unk>. The
vocabulary also comes from the notes. counts.json and hashes.json contain numbers only. Anyone with
the notes and the seed can recompute the hashes and verify that these notes were used.
"""
_COLUMNS = Columns(text=TEXT, note_id=NOTE_ID, patient_id=PATIENT_ID)
SMALL_TRAIN = 1280  # paper C, Table 1


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


@cache
def spacy_splitter() -> Splitter:
    """Return the function that splits paragraphs with spaCy's tokenizer and our sentence rules.

    No spaCy model is needed. Raises MissingExtra without spaCy.
    """
    try:
        import spacy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("spaCy", extra="", pip="pip install spacy") from None
    language: Any = spacy.blank("en")
    language.tokenizer.add_special_case(DEIDENTIFIED, [{"ORTH": DEIDENTIFIED}])

    def split(paragraph: str) -> list[list[str]]:
        return list(sentences_of([t.text.strip() for t in language(paragraph) if t.text.strip()]))

    return split


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path, help="notes: a file or a folder")
    parser.add_argument("-o", "--out", type=Path, required=True, help="new folder, all secret")
    parser.add_argument("--seed", type=int, required=True, help="public seed of the split")
    parser.add_argument(
        "--size",
        choices=("small", "large", "all"),
        default="small",
        help="train on 1,280 notes, on all others, or make both with one test set",
    )
    parser.add_argument(
        "--split", choices=("patient", "note"), default="patient", help="paper: note"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--train", type=int, help="number of training notes")
    amount.add_argument("--words", type=int, help="number of training words, instead of notes")
    parser.add_argument("--valid", type=int, default=128, help="minimum of validation notes")
    parser.add_argument("--test", type=int, default=128, help="minimum of test notes")
    parser.add_argument(
        "--only", action="append", default=[], help="use only notes with COLUMN=VALUE; repeatable"
    )
    parser.add_argument(
        "--tags",
        choices=("all", "published"),
        default="all",
        help="replace all de-identification tags, or those that the paper's code replaces",
    )
    parser.add_argument("--tokenizer", choices=("rules", "spacy"), default="rules")
    parser.add_argument(
        "--min-count", type=int, default=3, help="replace words with fewer occurrences by <unk>"
    )
    parser.add_argument(
        "--min-patients", type=int, default=1, help="replace words of fewer patients by <unk>"
    )
    known = parser.parse_args(arguments)
    return exit_code_of(lambda: make_medtext(known))


def make_medtext(known: argparse.Namespace) -> None:
    """Write the corpora, and print their counts. Raises UsageError and InputError."""
    if known.out.exists():
        raise UsageError("already exists", where=known.out.name, hint="pass another --out")
    split = sentences if known.tokenizer == "rules" else spacy_splitter()
    corpus, only = _opened(known.notes, known.only)
    notes = read_medtext(corpus, only=only, tags=known.tags, split=split)
    plan = MedTextPlan(
        sizes=_sizes(known),
        seed=known.seed,
        by_note=known.split == "note",
        min_count=known.min_count,
        min_patients=known.min_patients,
    )
    with atomic(known.out) as part:
        part.mkdir(mode=0o700)
        counts = write_medtext(notes, plan, part)
        names = ("seed", "size", "split", "tags", "tokenizer", "min_count", "min_patients")
        options = {name: getattr(known, name) for name in names}
        write_records(part, counts, {**options, "left_out": dict(notes.skipped)})
    for row in table_rows(counts):
        sys.stdout.write(" ".join(f"{cell:>16}" for cell in row) + "\n")
    if not corpus.columns.has_patients and known.split == "patient":
        say("no patient column: each note counts as its own patient")
    if only and not known.only:
        say(f"notes of MIMIC-III with {CATEGORY.upper()}={DISCHARGE} (pass --only for others)")
    for reason, count in notes.skipped.items():
        say(f"  left out, {reason}: {count}")


def _opened(path: Path, only: Sequence[str]) -> tuple[Corpus, dict[str, str]]:
    """Return the corpus with the columns that select notes, and column -> value of the
    selection.
    """
    wanted = selection(only)
    corpus = open_corpus(path, NotesSettings(), keep=tuple(wanted))
    category = [name for name in corpus.columns.dropped if name.lower() == CATEGORY]
    if not wanted and corpus.preset == "mimic3" and len(category) == 1:
        wanted = {category[0]: DISCHARGE}
        corpus = open_corpus(path, NotesSettings(), keep=tuple(wanted))
    return corpus, wanted


def _sizes(known: argparse.Namespace) -> dict[str, SplitSizes]:
    """Return folder name -> sizes of each corpus to make."""
    chosen = SplitSizes(known.valid, known.test, known.train, known.words)
    is_chosen = known.train is not None or known.words is not None
    small = chosen if is_chosen else SplitSizes(known.valid, known.test, SMALL_TRAIN)
    is_large = is_chosen and known.size == "large"
    large = chosen if is_large else SplitSizes(known.valid, known.test)
    if known.size == "all":
        return {"small": small, "large": large}
    return {"": small if known.size == "small" else large}


if __name__ == "__main__":
    sys.exit(main())
