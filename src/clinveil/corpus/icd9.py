"""Label tables over ICD-9-CM diagnosis codes: ranges of the first level, and single codes (leaves).

The task of paper A's MIMIC experiment, after the code that it cites (reference 28). Its table of ranges has two holes,
which `published` keeps: 280-289 (blood) is counted with 290-319, and 740-759 (congenital anomalies) with 760-779;
codes with V or E have no label. `corrected` has a class for each of these.

The diagnoses come from MIMIC's DIAGNOSES_ICD table. Its columns are found without regard to case: `HADM_ID`,
`SUBJECT_ID` and `ICD9_CODE` (MIMIC-III), or `icd_code` with `icd_version` (MIMIC-IV), of which rows of another version
than 9 are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.file_format import Source, open_source
from clinveil.corpus.selection import UNWANTED, as_text, selected

# First-level ranges, as published; the last code of each bounds it.
PUBLISHED = (
    "001-139", "140-239", "240-279", "290-319", "320-389", "390-459", "460-519", "520-579", "580-629", "630-679",
    "680-709", "710-739", "760-779", "780-789", "790-796", "797", "798", "799", "800-999",
)  # fmt: skip
HOLES = ("280-289", "740-759")
EXTERNAL, FACTORS = "E000-E999", "V01-V91"
# The 20 leaves, most frequent first: by patients of MIMIC-III, codes with V left out.
LEAVES = (
    "4019", "41401", "42731", "4280", "5849", "2724", "25000", "51881", "5990", "2720",
    "53081", "2859", "486", "2851", "2762", "2449", "496", "99592", "0389", "5070",
)  # fmt: skip
SEPARATOR = ";"
_CODE = re.compile(r"(?:[0-9]{3}|V[0-9]{2})(?:\.?[0-9]{1,2})?|E[0-9]{3}(?:\.?[0-9])?")


@dataclass(frozen=True)
class LabelTable:
    """What label a diagnosis code has.

    Attributes:
        classes: the labels, in the order of the table.
        class_of: the row of `classes` of a plain code; None for a code without a label.
    """

    classes: tuple[str, ...]
    class_of: Callable[[str], int | None] = field(repr=False)

    def label(self, code: str) -> str | None:
        """The label of a plain code, or None."""
        row = self.class_of(code)
        return None if row is None else self.classes[row]


def plain_code(written: str) -> str | None:
    """An ICD-9-CM diagnosis code without its dot, in upper case: `038.9` is `0389`; None for anything else."""
    code = written.strip().upper()
    return code.replace(".", "") if _CODE.fullmatch(code) else None


def first_level(table: Literal["corrected", "published"] = "corrected") -> LabelTable:
    """Ranges by the first three characters: the first range whose end is not before them (facts of reference 28).

    Both tables keep 790-796, 797, 798 and 799 apart, as the published one does.
    """
    ranges = PUBLISHED if table == "published" else tuple(sorted(PUBLISHED + HOLES))
    ends = [name[-3:] for name in ranges]
    classes = ranges if table == "published" else (*ranges, EXTERNAL, FACTORS)
    supplements = {"E": EXTERNAL, "V": FACTORS}

    def class_of(code: str) -> int | None:
        if code[0] in supplements:
            return None if table == "published" else classes.index(supplements[code[0]])
        return bisect_left(ends, code[:3])

    return LabelTable(classes, class_of)


def leaves(codes: Sequence[str] = LEAVES) -> LabelTable:
    """Single codes, each its own label; all others have none."""
    rows = {code: row for row, code in enumerate(codes)}
    return LabelTable(tuple(codes), rows.get)


@dataclass(frozen=True)
class Diagnosis:
    """One row: ids and the plain code."""

    admission: str = field(repr=False)
    patient: str = field(repr=False)
    code: str = field(repr=False)


@dataclass
class Diagnoses:
    """The table at a path, read in passes.

    Attributes:
        skipped: rows that the last pass left out, by reason.

    Raises:
        InputError: no such file, a missing column, or codes stored as numbers.
    """

    path: Path
    encoding: str = "utf-8"
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._source, _ = open_source(self.path, self.encoding)
        if len(self._columns()) < 3:
            what = "it lacks one of the columns HADM_ID, SUBJECT_ID, ICD9_CODE"
            raise InputError(what, where=self.path.name, hint="give MIMIC's DIAGNOSES_ICD table")

    def _columns(self) -> list[str]:
        """Admission, patient, code and, where codes are of several versions, version."""
        admission, patient = (column(self._source, name) for name in ("hadm_id", "subject_id"))
        code, version = column(self._source, "icd9_code"), None
        if code is None:
            code, version = (column(self._source, name) for name in ("icd_code", "icd_version"))
            code = code if version else None
        return [name for name in (admission, patient, code, version) if name]

    def rows(self) -> Iterator[Diagnosis]:
        """All diagnoses with an ICD-9 code, in the order of the file."""
        self.skipped.clear()
        names = self._columns()
        # Numbers in JSON lines become text only as ids; a code that is a number there has lost its zeros.
        ids, codes = [name for name in names if name != names[2]], names[2]
        for raw in self._source.read(ids, (codes,)):
            if not _textual(raw.column(codes).type):
                hint = "read them as text and write the table again: 0389 is not 389"
                raise InputError("the diagnosis codes are numbers", where=self.path.name, hint=hint)
            yield from self._usable(*(as_text(raw.column(name)) for name in names))

    def _usable(self, *columns: list[str | None]) -> Iterator[Diagnosis]:
        for admission, patient, written, *version in zip(*columns, strict=True):
            code = plain_code(written) if written else None
            if not admission or not patient:
                self.skipped["no admission or no patient"] += 1
            elif version and version[0] != "9":
                self.skipped["a code of another version than 9"] += 1
            elif code is None:
                self.skipped["not an ICD-9-CM code" if written else "no code"] += 1
            else:
                yield Diagnosis(admission, patient, code)

    def most_common(self, top: int) -> tuple[str, ...]:
        """The codes of the most patients, ties by code; supplementary codes (V, E) are left out."""
        patients: dict[str, set[str]] = {}
        for row in self.rows():
            if row.code[0] not in "VE":
                patients.setdefault(row.code, set()).add(row.patient)
        if len(patients) < 2:
            raise InputError(f"{len(patients)} codes but V and E; two are needed", where=self.path.name)
        return tuple(sorted(patients, key=lambda code: (-len(patients[code]), code))[:top])

    def by_admission(self, table: LabelTable) -> dict[str, int]:
        """Bit i of an admission is class i of the table; 0 where none of its codes has a label."""
        found: dict[str, int] = {}
        for row in self.rows():
            at = table.class_of(row.code)
            found[row.admission] = found.get(row.admission, 0) | (0 if at is None else 1 << at)
        if not found:
            raise InputError("no row has an admission and an ICD-9 code", where=self.path.name)
        return found


@dataclass
class LabelledNotes:
    """Notes of admissions with labels, as a stream: `column` is added, labels in the table's order, `;` between.

    Attributes:
        admission: the column of the notes' admission, which the corpus must keep.
        labels: what `Diagnoses.by_admission` gave.
        only: column -> value: notes with another value are left out (blanks around values do not count).
        skipped: notes that the last pass left out, by reason. counts: notes of each label in the last pass.
    """

    corpus: Corpus
    admission: str
    labels: Mapping[str, int] = field(repr=False)
    table: LabelTable
    column: str = "icd9"
    only: Mapping[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The notes with at least one label.

        Raises:
            InputError: no note has a label.
        """
        self.skipped.clear()
        self.counts.clear()
        written = 0
        for batch in self.corpus.batches():
            cells = self._cells(batch)
            labels = pa.array(cells, pa.string())
            labelled = batch.append_column(self.column, labels).filter(labels.is_valid())
            written += labelled.num_rows
            if labelled.num_rows:
                yield labelled
        if not written:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in self.skipped.most_common())
            raise InputError(f"no note gets a label ({reasons})", hint="are notes and diagnoses of one source?")

    def _cells(self, batch: pa.RecordBatch) -> list[str | None]:
        """The labels of each note, None for one that is left out, which is counted."""
        wanted = selected(batch, self.only)
        admissions = as_text(batch.column(self.admission))
        reasons = [self._why_not(of, w) for of, w in zip(admissions, wanted, strict=True)]
        self.skipped.update(reason for reason in reasons if reason)
        return [None if reason else self._names(of) for of, reason in zip(admissions, reasons, strict=True)]

    def _why_not(self, admission: str | None, wanted: bool) -> str | None:
        if not wanted:
            return UNWANTED
        if admission is None:
            return "no admission"
        if admission not in self.labels:
            return "an admission without diagnoses"
        return None if self.labels[admission] else "no diagnosis with a label"

    def _names(self, admission: str | None) -> str:
        mask = self.labels[admission or ""]
        names = [name for row, name in enumerate(self.table.classes) if mask >> row & 1]
        self.counts.update(names)
        return SEPARATOR.join(names)


def column(source: Source, name: str) -> str | None:
    """The source's own name of a column, found without regard to case; None where none or several are called so."""
    found = [own for own in source.names if own.lower() == name]
    return found[0] if len(found) == 1 else None


def _textual(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
