"""Label tables over ICD-9-CM diagnosis codes: ranges of the first level, and single codes (leaves).

This is the task of paper A's MIMIC experiment, as in the code that it cites (reference 28). Its
table of ranges has two gaps, which `published` keeps: 280-289 (blood) counts as 290-319, and
740-759 (congenital anomalies) as 760-779; V and E codes have no label. `corrected` has a class for
each of these.

The diagnoses come from MIMIC's DIAGNOSES_ICD table, with the columns `HADM_ID`, `SUBJECT_ID` and
`ICD9_CODE` (MIMIC-III), or `icd_code` and `icd_version` (MIMIC-IV), in any letter case. Rows with
an ICD version other than 9 are skipped.
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

from clinveil import Corpus, InputError
from clinveil.corpus import NotesSource, is_text, open_source
from papers.selection import UNWANTED, as_text, selected

# First-level ranges, as published; a range ends at its last code.
PUBLISHED = (
    "001-139", "140-239", "240-279", "290-319", "320-389", "390-459", "460-519", "520-579",
    "580-629", "630-679", "680-709", "710-739", "760-779", "780-789", "790-796", "797", "798",
    "799", "800-999",
)  # fmt: skip
HOLES = ("280-289", "740-759")
EXTERNAL = "E000-E999"
FACTORS = "V01-V91"
# The 20 most frequent leaves by number of MIMIC-III patients, without V codes.
LEAVES = (
    "4019", "41401", "42731", "4280", "5849", "2724", "25000", "51881", "5990", "2720",
    "53081", "2859", "486", "2851", "2762", "2449", "496", "99592", "0389", "5070",
)  # fmt: skip
SEPARATOR = ";"
_CODE = re.compile(r"(?:[0-9]{3}|V[0-9]{2})(?:\.?[0-9]{1,2})?|E[0-9]{3}(?:\.?[0-9])?")


@dataclass(frozen=True)
class LabelTable:
    """The labels of diagnosis codes.

    Attributes:
        classes: the labels, in the order of the table.
        class_of: the row of `classes` of a plain code; None for a code without a label.
    """

    classes: tuple[str, ...]
    class_of: Callable[[str], int | None] = field(repr=False)

    def label(self, code: str) -> str | None:
        """Return the label of a plain code, or None."""
        row = self.class_of(code)
        return None if row is None else self.classes[row]


def plain_code(written: str) -> str | None:
    """Return an ICD-9-CM code without its dot, in upper case (`038.9` -> `0389`); None for anything
    else.
    """
    code = written.strip().upper()
    return code.replace(".", "") if _CODE.fullmatch(code) else None


def first_level(table: Literal["corrected", "published"] = "corrected") -> LabelTable:
    """Return the table of ranges: a code's label is the first range that does not end before its
    three-digit category.

    Both tables keep 790-796, 797, 798 and 799 separate, as published. Source: the code of reference
    28.
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
    """Return a table in which each of these codes is a label; other codes have none."""
    rows = {code: row for row, code in enumerate(codes)}
    return LabelTable(tuple(codes), rows.get)


@dataclass(frozen=True)
class Diagnosis:
    """One row of the table: ids and the plain code."""

    admission: str = field(repr=False)
    patient: str = field(repr=False)
    code: str = field(repr=False)


@dataclass
class Diagnoses:
    """The diagnosis table of a file.

    Attributes:
        skipped: rows that the last pass left out, by reason.

    Raises:
        InputError: a missing file or column, or codes stored as numbers.
    """

    path: Path
    encoding: str = "utf-8"
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._source, _ = open_source(self.path, self.encoding)
        if len(self._columns()) < 3:
            what = "one of the columns HADM_ID, SUBJECT_ID, ICD9_CODE is missing"
            raise InputError(what, where=self.path.name, hint="use MIMIC's DIAGNOSES_ICD table")

    def _columns(self) -> list[str]:
        """Return the names of the columns for admission, patient, code and, if present, version."""
        admission, patient = (column(self._source, name) for name in ("hadm_id", "subject_id"))
        code = column(self._source, "icd9_code")
        version = None
        if code is None:
            code, version = (column(self._source, name) for name in ("icd_code", "icd_version"))
            code = code if version else None
        return [name for name in (admission, patient, code, version) if name]

    def rows(self) -> Iterator[Diagnosis]:
        """Yield all diagnoses with an ICD-9 code, in the order of the file."""
        self.skipped.clear()
        names = self._columns()
        # In JSON lines only ids may be numbers; a code stored as a number has lost its leading
        # zeros.
        ids = [name for name in names if name != names[2]]
        codes = names[2]
        for raw in self._source.read(ids, (codes,)):
            kind = raw.column(codes).type
            if not is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
                hint = "store them as text, because 0389 is not 389"
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
        """Return the codes with the most patients, ties by code; supplementary codes (V, E) are
        excluded.
        """
        patients: dict[str, set[str]] = {}
        for row in self.rows():
            if row.code[0] not in "VE":
                patients.setdefault(row.code, set()).add(row.patient)
        if len(patients) < 2:
            what = f"{len(patients)} codes other than V and E; at least 2 are needed"
            raise InputError(what, where=self.path.name, hint="use a larger table")
        return tuple(sorted(patients, key=lambda code: (-len(patients[code]), code))[:top])

    def by_admission(self, table: LabelTable) -> dict[str, int]:
        """Return a bit mask of classes per admission; bit i is class i of the table."""
        masks: dict[str, int] = {}
        for row in self.rows():
            index = table.class_of(row.code)
            masks[row.admission] = masks.get(row.admission, 0) | (
                0 if index is None else 1 << index
            )
        if not masks:
            hint = "use MIMIC's DIAGNOSES_ICD table"
            raise InputError(
                "no row has an admission and an ICD-9 code", where=self.path.name, hint=hint
            )
        return masks


@dataclass
class LabelledNotes:
    """Notes of admissions with labels, as a stream with an added `column`: labels in the table's
    order, joined by `;`.

    Attributes:
        admission: the column of the notes' admission, which the corpus must keep.
        labels: what `Diagnoses.by_admission` gave.
        only: column -> value: other notes are left out (surrounding blanks are ignored).
        skipped: notes that the last pass left out, by reason. counts: notes of each label in the
            last pass.
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
        """Yield the notes with at least one label.

        Raises:
            InputError: no note has a label.
        """
        self.skipped.clear()
        self.counts.clear()
        written = 0
        for batch in self.corpus.batches():
            labels = pa.array(self._cells(batch), pa.string())
            labelled = batch.append_column(self.column, labels).filter(labels.is_valid())
            written += labelled.num_rows
            if labelled.num_rows:
                yield labelled
        if not written:
            reasons = ", ".join(
                f"{reason}: {count}" for reason, count in self.skipped.most_common()
            )
            hint = "check that notes and diagnoses come from the same source"
            raise InputError(f"no note gets a label ({reasons})", hint=hint)

    def _cells(self, batch: pa.RecordBatch) -> list[str | None]:
        """Return the labels of each note; None for notes that are left out, which are counted."""
        cells: list[str | None] = []
        pairs = zip(as_text(batch.column(self.admission)), selected(batch, self.only), strict=True)
        for admission, wanted in pairs:
            mask = self.labels.get(admission or "")
            names = [name for row, name in enumerate(self.table.classes) if (mask or 0) >> row & 1]
            if wanted and names:
                self.counts.update(names)
                cells.append(SEPARATOR.join(names))
                continue
            cells.append(None)
            if not wanted:
                self.skipped[UNWANTED] += 1
            elif admission is None:
                self.skipped["no admission"] += 1
            else:
                without = "an admission without diagnoses"
                self.skipped[without if mask is None else "no diagnosis with a label"] += 1
        return cells


def column(source: NotesSource, name: str) -> str | None:
    """Return the source's name of a column, ignoring case; None if there is no match or more than
    one.
    """
    matches = [original for original in source.names if original.lower() == name]
    return matches[0] if len(matches) == 1 else None
