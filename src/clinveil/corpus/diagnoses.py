"""MIMIC's DIAGNOSES_ICD table: the labels of each admission, joined onto its notes.

Columns are found without regard to case: `HADM_ID`, `SUBJECT_ID` and `ICD9_CODE` (MIMIC-III), or `icd_code` with
`icd_version` (MIMIC-IV), of which rows of another version than 9 are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.formats.registry import Source, open_source
from clinveil.corpus.icd9 import LabelTable, plain_code
from clinveil.corpus.selection import UNWANTED, as_text, selected

SEPARATOR = ";"


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
            raise InputError(what, where=self.path.name, remedy="give MIMIC's DIAGNOSES_ICD table")

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
                remedy = "read them as text and write the table again: 0389 is not 389"
                raise InputError("the diagnosis codes are numbers", where=self.path.name, remedy=remedy)
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
            raise InputError(f"no note gets a label ({reasons})", remedy="are notes and diagnoses of one source?")

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
